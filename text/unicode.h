// These functions classify code points by Unicode's general categories, and lowercase them. Hugging Face's tokenizers
// take punctuation, marks and controls from older tables, where later characters have no category.
#ifndef WEFT_TEXT_UNICODE_H_
#define WEFT_TEXT_UNICODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

bool IsLetter(int32_t code_point);         // L*
bool IsNumber(int32_t code_point);         // N*
bool IsPunctuation(int32_t code_point);    // P* in the tables of `tokenizers`
bool IsMark(int32_t code_point);           // Mn there: accents and other combining marks of no width
bool IsControl(int32_t code_point);        // Cc, Cf, Co, Cs there: controls, formatting, private use
bool IsSpace(int32_t code_point);          // the property White_Space
bool IsWordCharacter(int32_t code_point);  // `\w` of regular expressions: letters, marks, digits, '_'
bool IsCjk(int32_t code_point);            // CJK ideographs; not Hangul or kana
bool IsCased(int32_t code_point);          // the property Cased: upper, lower and title case, and letters like ª
// Reports whether a rule of letter case looks past `code_point`: marks, formats, modifiers, and marks such as ' . ·
// inside words (the property Case_Ignorable).
bool IsCaseIgnorable(int32_t code_point);
// Appends the lowercase form of `code_point`. The form doesn't depend on context: 'Σ' gives 'σ' even at a word's end.
void AppendLowercase(int32_t code_point, std::string* text);

}  // namespace weft

#endif  // WEFT_TEXT_UNICODE_H_
