// The regular expression is matched by hand. Apart from contractions, the first character of a word, after at most one
// space, decides which alternative can match.
#include "weft/text/tokenizers/gpt2_words.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "weft/text/unicode.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

enum class Kind : uint8_t { kLetter, kNumber, kSpace, kOther, kEnd };

Kind KindOf(int32_t code_point) {
  if (IsLetter(code_point)) return Kind::kLetter;
  if (IsNumber(code_point)) return Kind::kNumber;
  return IsSpace(code_point) ? Kind::kSpace : Kind::kOther;
}

struct Classified {
  Kind kind;
  size_t end;
};

Classified ClassifyAt(absl::string_view text, size_t begin) {
  if (begin == text.size()) return {Kind::kEnd, begin};
  const Utf8Character c = CharacterAt(text, begin);
  return {KindOf(c.code_point), begin + c.bytes};
}

}  // namespace

size_t Gpt2WordEnd(absl::string_view text, size_t begin) {
  for (const absl::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (absl::StartsWith(text.substr(begin), contraction)) return begin + contraction.size();
  }
  // ` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+`
  Classified c = ClassifyAt(text, begin + (text[begin] == ' '));
  if (c.kind != Kind::kSpace && c.kind != Kind::kEnd) {
    for (Classified next = c; next.kind == c.kind; next = ClassifyAt(text, next.end)) c.end = next.end;
    return c.end;
  }
  // `\s+(?!\S)|\s+` matches white space. If other text follows several white-space characters, the last of them is left
  // for the next word.
  size_t last = begin, end = begin;
  for (c = ClassifyAt(text, begin); c.kind == Kind::kSpace; c = ClassifyAt(text, end)) {
    last = end;
    end = c.end;
  }
  return c.kind == Kind::kEnd || last == begin ? end : last;
}

}  // namespace weft
