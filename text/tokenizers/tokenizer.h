// A tokenizer turns a text into token ids and back. LoadTokenizer (load_tokenizer.h) reads one from a published model.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert/vocab.txt"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode("a text"));
//   const ModelInput input = tokenizer->Wrap(ids);       // [CLS] a text [SEP]
//   tokenizer->Decode(input.ids)                         // "a text"
//
// Encode("a [MASK]") has the id of [MASK], as in transformers. For texts that strangers wrote, ReadSpecial(false) makes
// it ordinary tokens for "[", "MA" and so on. A tokenizer never changes after that, so threads can share it. Only one
// that WithDropout returns belongs to one thread.
#ifndef WEFT_TEXT_TOKENIZERS_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_TOKENIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// A token that a tokenizer looks for before it splits a text into words: a special token, such as "[CLS]", or another.
struct AddedToken {
  std::string text;  // "[CLS]"
  int32_t id;
  bool strip_before = false, strip_after = false;  // the token includes the white space on this side
  bool single_word = false;  // the token is ordinary text where a letter, a digit or '_' is before or behind it
  bool normalized = false;   // the token's normalized text is looked for in the normalized text
  bool special = true;       // Decode leaves the token out, and Encode doesn't look for it
};

// AddedTokenFinder finds the texts of added tokens in a text, as Hugging Face's tokenizers do.
//
//   const AddedTokenFinder finder({{.text = "[MASK]", .id = 4}});
//   finder.Split("a [MASK]", /*special=*/true);          // {"a ", null}, {"[MASK]", the token}
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  struct Piece {
    absl::string_view text;
    const AddedToken* token;  // null: the piece is ordinary text, which is not empty
  };
  // Returns the pieces of `text`, which must be UTF-8. At each position the longest token wins. Without `special`,
  // special tokens are ordinary text.
  std::vector<Piece> Split(absl::string_view text, bool special) const;
  // Reports whether a token's text, together with the white space around it, includes or borders on byte `at`.
  bool Touches(absl::string_view text, size_t at) const;

 private:
  const AddedToken* FindAt(absl::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;  // the longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;
  size_t longest_ = 0;
  bool all_special_ = true;
};

// Holds the ids of a vocabulary's special tokens, by role. A role is empty if the vocabulary has no token for it.
struct SpecialTokens {
  std::optional<int32_t> begin, end, padding, unknown, mask, classification, separator;
};
using TokenRole = std::optional<int32_t> SpecialTokens::*;
// The text of each role's token. A role without a text has no token, whatever the tokens' names are.
using RoleTexts = std::vector<std::pair<TokenRole, std::optional<std::string>>>;

// Holds the added tokens and roles that the files beside a tokenizer name. A token's id is that of its text in the
// vocabulary.
struct TokenizerSettings {
  std::vector<AddedToken> tokens;   // replace added tokens of the same text
  std::vector<AddedToken> special;  // are added if no added token has their text
  RoleTexts roles;
  bool clean_up = false;       // Decode calls CleanUpSpaces, unless the tokenizer is BPE
  bool split_special = false;  // ReadSpecial(false)
  std::optional<bool> prefix_space;
  // Whether Wrap adds the begin token and the end token. Unset: as this kind of tokenizer does without settings.
  std::optional<bool> add_begin, add_end;
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
  // InvalidArgument with the byte offset. Only ByteTokenizer accepts texts that are not UTF-8. `special`: whether the
  // text of a special token ("<|endoftext|>") becomes this token; otherwise it is ordinary text.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text, bool special) const;
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const { return Encode(text, reads_special_); }
  // Sets `special` for Encode(text). Without a value, it stays as the tokenizer's files say, usually true.
  void ReadSpecial(std::optional<bool> special) { reads_special_ = special.value_or(reads_special_); }
  // Makes Encode lowercase texts before they are normalized, except added tokens that are not `normalized`.
  void Lowercase();
  // Reports whether the text of an added token, together with the white space around it, includes or borders on byte
  // `at` of `text`. Elsewhere a cut changes no added token.
  bool TouchesAddedToken(absl::string_view text, size_t at) const { return written_.Touches(text, at); }

  // Returns `ids` with the special tokens of the model's input format. Wrap({}) returns these special tokens alone.
  ModelInput Wrap(absl::Span<const int32_t> ids) const;
  // Returns a pair of texts in the model's input format for pairs, or InvalidArgument if there is no such format.
  absl::StatusOr<ModelInput> WrapPair(absl::Span<const int32_t> first, absl::Span<const int32_t> second) const;

  // Returns the text of `ids` without special tokens. The result may end within a UTF-8 character, because the bytes of
  // one character may be in several tokens. Returns InvalidArgument, with the index, if an id is not in
  // 0 .. vocabulary_size() - 1.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const;
  // Like Decode, but includes the texts of special tokens.
  absl::StatusOr<std::string> DecodeWithSpecial(absl::Span<const int32_t> ids) const;
  // Returns the text of one token, also of a special one, or "" if `id` is not in the vocabulary. A token of bytes that
  // are no characters, such as "<0xE2>", has these bytes.
  std::string TokenText(int32_t id) const;
  // Like Decode, before CleanUpSpaces, which Decode calls if cleans_up().
  absl::StatusOr<std::string> DecodeUncleaned(absl::Span<const int32_t> ids) const;
  bool cleans_up() const { return clean_up_; }
  // Reports whether Decode leaves `id` out.
  bool IsHidden(int32_t id) const { return IsSpecial(id) && !(keeps_unknown_ && id == special_.unknown); }

  virtual int64_t vocabulary_size() const = 0;
  const SpecialTokens& special_tokens() const { return special_; }
  // Returns the special tokens in the order of their ids.
  absl::Span<const AddedToken> special_token_list() const { return special_list_; }
  // Reports whether `id` is in special_token_list().
  bool IsSpecial(int32_t id) const;

  // Returns the tokenizer with which the model's targets are encoded, or null if it is this one. It has the same ids.
  virtual std::unique_ptr<Tokenizer> ForTargets() const { return nullptr; }

  // Returns a copy with BPE dropout, for training (Provilkov et al., 2020): before each merge in a word, each candidate
  // is left out with `probability`. Each call of Encode draws the next numbers of `random`. Returns null if this kind
  // of tokenizer cannot leave out merges.
  virtual std::unique_ptr<Tokenizer> WithDropout(double /*probability*/, const RandomStream& /*random*/) const {
    return nullptr;
  }

  // Follows `settings`. Tokens and roles whose text is no token of the vocabulary are left out.
  void Configure(const TokenizerSettings& settings);
  // Returns a sentence for the user about an oddity of the files, or "". LoadTokenizer prints it.
  const std::string& note() const { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }
  // Sets whether Encode puts a space before a text that does not begin with one. Returns false if the tokenizer would
  // need it, but does not support `space`. Must be called before threads share the tokenizer.
  virtual bool SetPrefixSpace(bool /*space*/) { return true; }

 protected:
  // Returns the ids of a normalized text that has no added token. `begins`: whether the text of Encode begins with
  // `text`, and not with an added token.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool begins) const = 0;
  // Returns the normalized form of `text`, which `storage` may keep.
  virtual absl::StatusOr<absl::string_view> Normalize(absl::string_view text, std::string* /*storage*/) const {
    return text;
  }
  // Returns a token before it is decoded, such as "<0xE2>".
  virtual std::string Piece(int32_t id) const { return Join({id}); }
  // Returns the text of `ids`, including the texts of special tokens. All `ids` are in the vocabulary.
  virtual std::string Join(absl::Span<const int32_t> ids) const = 0;

  // Makes `tokens` the added tokens. Unless `keep_roles` is set, special tokens with names such as "[MASK]" get roles.
  void SetAdded(std::vector<AddedToken> tokens, bool keep_roles = false);
  // Join writes `text` for the token `id`, in place of its text in the vocabulary.
  void Respell(int32_t id, std::string text) { respelt_[id] = std::move(text); }
  const std::string& Spelling(int32_t id, const Vocabulary& vocabulary) const {
    const auto found = respelt_.find(id);
    return found == respelt_.end() ? vocabulary.token(id) : found->second;
  }
  void AllowCleanUp() { may_clean_up_ = true; }  // for tokenizers that are no BPE, as in transformers
  void KeepUnknown() { keeps_unknown_ = true; }  // Decode then has the text of the unknown token
  void SetRoles(const SpecialTokens& special) { special_ = special; }  // for files that state the roles
  void SetFormat(WrapFormat single, WrapFormat pair);

 private:
  // Returns the lowercased, if Lowercase was called, and normalized form of `text`. `storage` may keep it.
  absl::StatusOr<absl::string_view> NormalForm(absl::string_view text, std::string* storage) const;
  absl::Status CheckIds(absl::Span<const int32_t> ids) const;

  std::vector<AddedToken> added_, special_list_;  // in the order of the ids; the latter: those that are special
  AddedTokenFinder written_, normalized_;         // of texts as they are written, and of normalized texts
  absl::flat_hash_map<int32_t, std::string> respelt_;
  SpecialTokens special_;
  std::string note_;
  bool reads_special_ = true, keeps_unknown_ = false, may_clean_up_ = false, clean_up_ = false, lowercases_ = false;
  WrapFormat single_ = {{WrapItem::kFirst}}, pair_;
};

// Returns the tokens with a usual special name, such as "<s>", for files that don't say which tokens are special.
std::vector<AddedToken> UsualSpecialTokens(const Vocabulary& vocabulary);

// Returns `text` without the spaces before the marks and contractions of English, as transformers'
// clean_up_tokenization does it.
std::string CleanUpSpaces(std::string text);

// Returns, by id, how many bytes a token adds to a text after an ordinary token, so that the loss of tokens can be
// stated for bytes, which compares models with different tokenizers. Special tokens add none; the unknown token has
// kUnknownBytes, because it stands for any text. A tokenizer that changes texts, for example to lower case, has the
// bytes of the changed text.
inline constexpr int32_t kUnknownBytes = -1;
std::vector<int32_t> TokenBytes(const Tokenizer& tokenizer);

// Returns the format of a text between two special tokens of the same segment. A token without a value is left out.
WrapFormat Surrounded(std::optional<int32_t> before, const WrapItem& text, std::optional<int32_t> after);
// Returns the format of a pair of texts from those of its two texts.
WrapFormat Joined(WrapFormat first, const WrapFormat& second);

// The usual input formats.
WrapFormat BertSingle(int32_t classification, int32_t separator);  // [CLS] a [SEP]
WrapFormat BertPair(int32_t classification, int32_t separator);    // [CLS] a [SEP] b [SEP]; segments 0 and 1
WrapFormat RobertaPair(int32_t begin, int32_t end);                // <s> a </s></s> b </s>; segments 0

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKENIZER_H_
