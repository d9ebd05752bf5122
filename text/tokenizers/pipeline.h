// A pipeline tokenizer is composed of steps, as tokenizer.json describes it: normalizers change a text, pre-tokenizers
// split it into words, a model (a subclass) turns each word into tokens, and decoders turn tokens into a text again.
//
//   Pipeline pipeline = {.pre_tokenizers = {*ReadPreTokenizer(R"({"type": "Digits"})"_json)}};   // pipeline_steps.h
//   BpeModel model = {.vocabulary = ..., .merges = ..., .pipeline = pipeline, .characters = true};   // bpe.h
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, Bpe::Create(std::move(model)));
#ifndef WEFT_TEXT_TOKENIZERS_PIPELINE_H_
#define WEFT_TEXT_TOKENIZERS_PIPELINE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// Changes a text, which is UTF-8 before and afterwards.
using Normalizer = std::function<absl::Status(std::string* text)>;

// A part of a text, which is UTF-8 and not empty.
struct TextPiece {
  absl::string_view text;
  size_t at;    // the byte of the whole text at which the piece begins
  bool begins;  // whether the text to encode begins with the piece
};
using Emit = absl::FunctionRef<absl::Status(const TextPiece& piece)>;
// Calls `emit` with the parts of `piece` in order. They need not live longer than the call.
using PreTokenizer = std::function<absl::Status(const TextPiece& piece, Emit emit)>;

// Changes the texts of tokens. The decoded text is the concatenation of what the last decoder gives.
using Decoder = std::function<void(std::vector<std::string>* tokens)>;

struct Pipeline {
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::optional<std::vector<Decoder>> decoders;  // without a value, there are spaces between the tokens
};

// Calls `emit` with the parts of `piece` that all of `pre_tokenizers`, one after the other, give.
absl::Status SplitPiece(absl::Span<const PreTokenizer> pre_tokenizers, const TextPiece& piece, Emit emit);

class PipelineTokenizer : public Tokenizer {
 public:
  int64_t vocabulary_size() const override { return vocabulary().size(); }
  virtual const Vocabulary& vocabulary() const = 0;

 protected:
  explicit PipelineTokenizer(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}

  // Unless reuses_words_ is false, encodes each distinct word of a text once, and copies the ids when the word occurs
  // again.
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool begins) const override;
  absl::StatusOr<absl::string_view> Normalize(absl::string_view text, std::string* storage) const override;
  std::string Piece(int32_t id) const override { return vocabulary().token(id); }
  std::string Join(absl::Span<const int32_t> ids) const override;

  // Sets the added tokens and the input formats. The vocabulary must be set already.
  void SetFormats(const std::vector<AddedToken>& added, WrapFormat single, WrapFormat pair);
  // Appends the ids of a word's tokens.
  virtual absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const = 0;

  Pipeline pipeline_;
  bool reuses_words_ = true;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_PIPELINE_H_
