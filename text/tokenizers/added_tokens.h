// AddedTokenFinder finds the texts of added tokens in a text, as Hugging Face's tokenizers do. Added tokens are those
// that a tokenizer looks for before it splits a text into words: special tokens, such as "[CLS]", and others.
//
//   const AddedTokenFinder finder({{.text = "[MASK]", .id = 4}});
//   finder.Split("a [MASK]", /*special=*/true);          // {"a ", null}, {"[MASK]", the token}
#ifndef WEFT_TEXT_TOKENIZERS_ADDED_TOKENS_H_
#define WEFT_TEXT_TOKENIZERS_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

struct AddedToken {
  std::string text;  // "[CLS]"
  int32_t id;
  bool strip_before = false, strip_after = false;  // the token includes the white space on this side
  bool single_word = false;  // the token is ordinary text where a letter, a digit or '_' is before or behind it
  bool normalized = false;   // the token's normalized text is looked for in the normalized text
  bool special = true;       // Decode leaves the token out, and Encode doesn't look for it
};

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

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_ADDED_TOKENS_H_
