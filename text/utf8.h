// These functions read UTF-8 one code point at a time, check that texts are UTF-8, and classify code points.
//
//   for (size_t i = 0; i < text.size();) {
//     const Utf8Character c = CharacterAt(text, i);
//     if (c.bytes == 0) ...                            // text is not UTF-8 at byte i
//     i += c.bytes;
//   }
#ifndef WEFT_TEXT_UTF8_H_
#define WEFT_TEXT_UTF8_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weft {

inline constexpr int32_t kCodePoints = 0x110000;

struct Utf8Character {
  int32_t code_point = -1;
  size_t bytes = 0;  // 0: not UTF-8
};

// Returns the character that begins at byte `offset`.
Utf8Character CharacterAt(absl::string_view text, size_t offset);
// Calls `take` with the code point and the bytes of each character. A byte that is not UTF-8 is a character of its own,
// whose code point is -1.
template <class Take>
void ForEachCharacter(absl::string_view text, const Take& take) {
  for (size_t i = 0, bytes; i < text.size(); i += bytes) {
    const Utf8Character c = CharacterAt(text, i);
    bytes = std::max<size_t>(c.bytes, 1);
    take(c.code_point, text.substr(i, bytes));
  }
}
std::string ToUtf8(int32_t code_point);
inline bool IsContinuation(char byte) { return (byte & 0xC0) == 0x80; }  // no character begins with such a byte
// Returns the number of characters: of bytes that are no continuation.
size_t CountCharacters(absl::string_view text);
// Returns where the character of byte `at` begins, so that a cut there is between two characters. `at` may be the end.
size_t CharacterBegin(absl::string_view text, size_t at);
// Returns InvalidArgument "not UTF-8 at byte 12 (0xE9)" for the first byte that is not UTF-8.
absl::Status CheckUtf8(absl::string_view text);
// Returns `text` with U+FFFD in place of bytes that are not UTF-8: one for the bytes that begin a character and are not
// followed by its rest, and one for each other byte, as Unicode recommends and Python's bytes.decode(errors="replace")
// does. If `rest` is not null, it gets an incomplete character at the end, which is then not replaced.
std::string ReplaceInvalidUtf8(absl::string_view text, std::string* rest = nullptr);
// Returns "U+00E9 'é'" for an error message. Combining marks and code points without a visible character, except ' ',
// appear as numbers only.
std::string Describe(int32_t code_point);

// These functions classify code points by Unicode's general categories, and lowercase them. Hugging Face's tokenizers
// take punctuation, marks and controls from older tables, where later characters have no category.
bool IsLetter(int32_t code_point);         // L*
bool IsNumber(int32_t code_point);         // N*
bool IsPunctuation(int32_t code_point);    // P* in the tables of `tokenizers`
bool IsMark(int32_t code_point);           // Mn there: accents and other combining marks of no width
bool IsAnyMark(int32_t code_point);        // M*
bool IsControl(int32_t code_point);        // Cc, Cf, Co, Cs there: controls, formatting, private use
bool IsSpace(int32_t code_point);          // the property White_Space
bool IsWordCharacter(int32_t code_point);  // `\w` of regular expressions: letters, marks, digits, '_'
bool IsCjk(int32_t code_point);            // CJK ideographs; not Hangul or kana
bool IsCased(int32_t code_point);          // the property Cased: upper, lower and title case, and letters like ª
// Reports whether a rule of letter case looks past `code_point`: marks, formats, modifiers, and marks such as ' . ·
// inside words (the property Case_Ignorable).
bool IsCaseIgnorable(int32_t code_point);
// Return where the white space before byte `end` begins, and where the white space at byte `begin` ends.
size_t BeforeSpace(absl::string_view text, size_t end);
size_t BehindSpace(absl::string_view text, size_t begin);
// Appends the lowercase form of `code_point`. The form doesn't depend on context: 'Σ' gives 'σ' even at a word's end.
void AppendLowercase(int32_t code_point, std::string* text);

}  // namespace weft

#endif  // WEFT_TEXT_UTF8_H_
