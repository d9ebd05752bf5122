// A tokenizer turns a text into token ids and back. LoadTokenizer (load_tokenizer.h) reads one from a published model.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert/vocab.txt"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode("a text"));
//   const ModelInput input = tokenizer->Wrap(ids);       // [CLS] a text [SEP]
//   tokenizer->Decode(input.ids)                         // "a text"
//
// Encode returns no special token except the unknown one: Encode("[CLS]") gives ordinary tokens for "[", "CL" and so
// on. A tokenizer is immutable, so threads can share it.
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
  std::string text;  // "[CLS]"
  int32_t id;
  bool strip_before = false, strip_after = false;  // EncodeWithSpecial drops white space on this side of the token
};

// Holds the ids of a vocabulary's special tokens, by role. A role is empty if the vocabulary has no token for it.
struct SpecialTokens {
  std::optional<int32_t> begin, end, padding, unknown, mask, classification, separator;
};

struct ModelInput {
  std::vector<int32_t> ids, segments;  // of equal length; in a BERT's pair, the second text has segment 1; else 0
};

// An item of a model's input format: a special token, or the first or second text.
struct WrapItem {
  enum Kind : uint8_t { kToken, kFirst, kSecond } kind;
  int32_t id = 0;  // of the token, if the item is kToken
  int32_t segment = 0;
};
using WrapFormat = std::vector<WrapItem>;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Returns the ids of `text`. If the vocabulary cannot express a character, or if the text is not UTF-8, returns
  // InvalidArgument with the byte offset. Only ByteTokenizer accepts texts that are not UTF-8.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const = 0;
  // Returns the ids of `text`, which must be UTF-8. Where the text of a special token ("<|endoftext|>") occurs, the
  // result has that token's id.
  absl::StatusOr<std::vector<int32_t>> EncodeWithSpecial(absl::string_view text) const;

  // Returns `ids` with the special tokens of the model's input format. Wrap({}) returns these special tokens alone.
  ModelInput Wrap(absl::Span<const int32_t> ids) const;
  // Returns a pair of texts in the model's input format for pairs, or InvalidArgument if there is no such format.
  absl::StatusOr<ModelInput> WrapPair(absl::Span<const int32_t> first, absl::Span<const int32_t> second) const;

  // Returns the text of `ids` without special tokens, except the unknown token. The result may end within a UTF-8
  // character, because the bytes of one character may be in several tokens. Returns InvalidArgument, with the index, if
  // an id is not in 0 .. vocabulary_size() - 1.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const;
  // Like Decode, but includes the texts of special tokens.
  absl::StatusOr<std::string> DecodeWithSpecial(absl::Span<const int32_t> ids) const;

  virtual int64_t vocabulary_size() const = 0;
  const SpecialTokens& special_tokens() const { return special_; }
  // Returns the special tokens in the order of their ids.
  absl::Span<const SpecialToken> special_token_list() const { return special_list_; }

 protected:
  // Returns the text of `ids`, including the texts of special tokens. All `ids` are in the vocabulary.
  virtual std::string Join(absl::Span<const int32_t> ids) const = 0;

  // Makes `tokens` the special tokens. A token with a usual name, such as "<s>" or "[MASK]", gets that name's role.
  void SetSpecial(std::vector<SpecialToken> tokens);
  void SetRoles(const SpecialTokens& special) { special_ = special; }  // for files that state the roles
  void SetFormat(WrapFormat single, WrapFormat pair);
  // Reports whether `id` is in special_token_list().
  bool IsSpecial(int32_t id) const;

 private:
  absl::Status CheckIds(absl::Span<const int32_t> ids) const;

  std::vector<SpecialToken> special_list_;
  SpecialTokens special_;
  WrapFormat single_ = {{WrapItem::kFirst}}, pair_;
};

// Returns the tokens with a usual special name, such as "<s>", for files that don't say which tokens are special.
std::vector<SpecialToken> UsualSpecialTokens(const Vocabulary& vocabulary);

// The usual input formats.
WrapFormat BertSingle(int32_t classification, int32_t separator);  // [CLS] a [SEP]
WrapFormat BertPair(int32_t classification, int32_t separator);    // [CLS] a [SEP] b [SEP]; segments 0 and 1
WrapFormat RobertaPair(int32_t begin, int32_t end);                // <s> a </s></s> b </s>; segments 0
WrapFormat BeginText(int32_t begin);                               // <s> a

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZER_H_
