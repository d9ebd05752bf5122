// What kind of character a code point is, by Unicode's general categories, and its lower case.
#ifndef WEFT_TEXT_UNICODE_H_
#define WEFT_TEXT_UNICODE_H_

#include <cstdint>
#include <string>

namespace weft {

bool IsLetter(int32_t code_point);       // L*
bool IsNumber(int32_t code_point);       // N*
bool IsPunctuation(int32_t code_point);  // P*
bool IsMark(int32_t code_point);         // Mn: accents, vowel signs and the like that take no room
bool IsControl(int32_t code_point);      // Cc, Cf, Co, Cs: controls, formatting, private use
bool IsSpace(int32_t code_point);        // the property White_Space
bool IsCjk(int32_t code_point);          // an ideograph, of which none ends a word; neither Hangul nor kana
// Appends its lower case, by itself: 'Σ' is 'σ' also at the end of a word.
void AppendLowercase(int32_t code_point, std::string* text);

}  // namespace weft

#endif  // WEFT_TEXT_UNICODE_H_
