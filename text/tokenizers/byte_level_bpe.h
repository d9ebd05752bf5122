// ByteLevelBpe is the byte-pair encoding of GPT-2: it splits a text into words and merges the bytes of each word.
//
//   WEFT_ASSIGN_OR_RETURN(BpeModel model, LearnByteLevelBpe(text, {.vocabulary = 8000}));   // learn/learn_tokenizer.h
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, ByteLevelBpe::Create(std::move(model)));
//   tokenizer->Encode("Hello world")                     // "Hello" " world"
//
// LoadTokenizer (load_tokenizer.h) reads published models.
#ifndef WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_
#define WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/bpe_merges.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

struct BpeModel {
  Vocabulary vocabulary;            // tokens as bytes: " the", not "Ġthe"
  std::vector<TokenPair> merges;    // lowest rank first; both tokens and their concatenation are in the vocabulary
  std::vector<AddedToken> special;  // and other added tokens
  bool prefix_space = false;        // puts ' ' before a text that doesn't begin with ' '
  bool whole_words = false;         // a word that is in the vocabulary is one token, whatever the merges give
  std::optional<int32_t> unknown;   // the token of bytes that are not in the vocabulary; without it they are errors
  bool fuse_unknown = false;        // unknown bytes that follow each other in a word are one token
  bool gpt2_words = true;           // splits texts, or what pipeline.pre_tokenizers give, into GPT-2's words
  Pipeline pipeline;                // further steps: pre-tokenizers before the split, decoders of texts that are joined
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class ByteLevelBpe final : public PipelineTokenizer {
 public:
  // Returns InvalidArgument if MergesOf (bpe_merges.h) refuses the merges.
  static absl::StatusOr<std::unique_ptr<ByteLevelBpe>> Create(BpeModel model);

  const Vocabulary& vocabulary() const override { return model_.vocabulary; }
  const BpeModel& model() const { return model_; }
  bool SetPrefixSpace(bool space) override;

 protected:
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const override;

 private:
  explicit ByteLevelBpe(BpeModel model);

  BpeModel model_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_;  // -1 if the vocabulary has no token for the byte
};

// The functions below read what files of byte-level BPE spell: tokens, merges and vocabularies, as tokenizer.json,
// vocab.json and merges.txt have them, in the byte alphabet (byte_alphabet.h).

// These convert the tokens of a merge to bytes, if `as_bytes` is set.
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right, bool as_bytes = true);
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right, bool as_bytes = true);

// Keeps the file's spelling of tokens.
absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object);
// Converts a token to bytes. Errors name the token.
absl::StatusOr<std::string> ReadToken(absl::string_view token);
// Reads a file such as encoder.json (GPT-2) or vocab.json (Hugging Face), {"Ġthe": 262}. Converts its tokens to bytes
// if `as_bytes` is set. Errors name the file.
absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_
