// A vocabulary maps tokens to ids, which are 0 .. size - 1, and ids to tokens.
#ifndef WEFT_TEXT_TOKENIZERS_VOCABULARY_H_
#define WEFT_TEXT_TOKENIZERS_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

using VocabularyEntries = std::vector<std::pair<std::string, int64_t>>;  // tokens and their ids

class Vocabulary {
 public:
  Vocabulary() = default;
  // Returns a vocabulary in which tokens[i] has id i, or InvalidArgument if a token occurs twice.
  static absl::StatusOr<Vocabulary> Create(std::vector<std::string> tokens);
  // Returns a vocabulary with the given ids. Find does not find `unfound`, which may have texts of `tokens`. Ids
  // without a token, which a vocab.txt with a token twice gives, have the text "". Returns InvalidArgument if one of
  // `tokens` or an id occurs twice, or if more ids than half have no token.
  static absl::StatusOr<Vocabulary> FromIds(VocabularyEntries tokens, const VocabularyEntries& unfound = {});

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  std::optional<int32_t> Find(absl::string_view token) const;
  // Gives `token` the next id. Returns InvalidArgument if the vocabulary has the token.
  absl::Status Add(std::string token);
  // Gives `token` the next id. If the vocabulary has the token, its earlier id keeps no token but "".
  void AddOrMove(std::string token);

 private:
  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string, int32_t> ids_;
};

// Returns `token` in quotes for an error message: 'abc'. Control characters are escaped. If the token is not UTF-8, all
// its bytes that are not ASCII are escaped too: '\xe9'.
std::string Quoted(absl::string_view token);

// The byte alphabet has a printable character for each byte. The files of byte-level BPE spell their tokens in it: "
// the" is written "Ġthe".

// Returns one UTF-8 character for each byte (bytes_to_unicode in GPT-2's encoder.py). A visible Latin-1 character keeps
// its code point. The other 68 bytes, including ' ', become U+0100, U+0101, ... in order.
std::string ToByteAlphabet(absl::string_view bytes);
// Converts the characters of ToByteAlphabet back to bytes. Returns InvalidArgument if `text` is not UTF-8, or, with the
// character, if a character stands for no byte.
absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text);
// Returns the byte that a token such as "<0x0A>" stands for, or -1.
int ByteOf(absl::string_view token);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_VOCABULARY_H_
