// Texts as token ids and back. LoadTokenizer (load_tokenizer.h) makes one from the files of a published model.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert/vocab.txt"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode("a text"));
//   const ModelInput input = tokenizer->Wrap(ids);       // [CLS] a text [SEP]
//   tokenizer->Decode(input.ids)                         // "a text"
//
// A special token is one that no ordinary text gives: Encode("[CLS]") is four tokens or so, none of them special.
// A tokenizer doesn't change, so any number of threads can share one.
#ifndef WEFT_TEXT_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/vocabulary.h"

namespace weft {

struct SpecialToken {
  std::string text;  // as it is written: "[CLS]"
  int32_t id;
  bool strip_before = false, strip_after = false;  // whether the white space beside it belongs to it
};

// The special tokens that a vocabulary has, by what they are for.
struct SpecialTokens {
  std::optional<int32_t> begin, end, padding, unknown, mask, classification, separator;
};

struct ModelInput {
  std::vector<int32_t> ids, segments;  // of equal length; segments are 0 and, in the second text of a pair, 1
};

// What a model's format puts around a text, or around two.
struct WrapPart {
  enum Kind : uint8_t { kToken, kFirst, kSecond } kind;
  int32_t id = 0;  // of kToken
  int32_t segment = 0;
};
using WrapFormat = std::vector<WrapPart>;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The ids of a text. InvalidArgument, naming the byte, if it isn't UTF-8 or has what the vocabulary can't express.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const = 0;
  // The same, but a special token that is written out ("<|endoftext|>") gives its id.
  absl::StatusOr<std::vector<int32_t>> EncodeWithSpecial(absl::string_view text) const;

  // Puts the special tokens of the model's format around ids; Wrap({}) shows how many there are.
  ModelInput Wrap(absl::Span<const int32_t> ids) const;
  // InvalidArgument if the format has no pairs.
  absl::StatusOr<ModelInput> WrapPair(absl::Span<const int32_t> first, absl::Span<const int32_t> second) const;

  // The text of ids, without special tokens, but with the unknown one. The bytes need not be UTF-8, as a character may
  // have several tokens. InvalidArgument, naming the place, if an id is not in 0 .. vocabulary_size() - 1.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const;
  // The same with special tokens, written out.
  absl::StatusOr<std::string> DecodeWithSpecial(absl::Span<const int32_t> ids) const;

  virtual int64_t vocabulary_size() const = 0;
  const SpecialTokens& special_tokens() const { return special_; }
  // The special tokens, in the order of their ids.
  absl::Span<const SpecialToken> special_token_list() const { return special_list_; }

 protected:
  // The text of ids that are in the vocabulary, special tokens written out.
  virtual std::string Join(absl::Span<const int32_t> ids) const = 0;

  // `tokens` that no ordinary text gives. Those with a usual name, "<s>" or "[MASK]", get their role.
  void SetSpecial(std::vector<SpecialToken> tokens);
  void SetRoles(const SpecialTokens& special) { special_ = special; }  // where the file says which is which
  void SetFormat(WrapFormat single, WrapFormat pair);

 private:
  absl::Status CheckIds(absl::Span<const int32_t> ids) const;
  bool IsSpecial(int32_t id) const;

  std::vector<SpecialToken> special_list_;
  SpecialTokens special_;
  WrapFormat single_ = {{WrapPart::kFirst}}, pair_;
};

// The tokens with usual names, of a vocabulary whose files don't say which are special.
std::vector<SpecialToken> UsualSpecialTokens(const Vocabulary& vocabulary);

// The formats that most models have.
WrapFormat BertSingle(int32_t classification, int32_t separator);  // [CLS] a [SEP]
WrapFormat BertPair(int32_t classification, int32_t separator);    // [CLS] a [SEP] b [SEP]; segments 0 and 1
WrapFormat RobertaPair(int32_t begin, int32_t end);                // <s> a </s></s> b </s>; segments 0
WrapFormat BeginText(int32_t begin);                               // <s> a

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZER_H_
