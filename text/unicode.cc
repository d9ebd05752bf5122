// Classes follow from utf8proc's general categories. Only IsSpace and IsCjk list code points of their own.
#include "weft/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "weft/text/utf8.h"

namespace weft {
namespace {

// Reports whether the category of `code_point` is in `first` .. `last`. utf8proc numbers the categories so that all L*
// follow each other, then all M*, and so on.
bool IsBetween(int32_t code_point, utf8proc_category_t first, utf8proc_category_t last) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return first <= category && category <= last;
}

}  // namespace

bool IsLetter(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }
bool IsNumber(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
bool IsPunctuation(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO); }
bool IsMark(int32_t code_point) { return utf8proc_category(code_point) == UTF8PROC_CATEGORY_MN; }
bool IsControl(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO); }

bool IsSpace(int32_t code_point) {
  return (code_point >= '\t' && code_point <= '\r') || code_point == 0x85 ||
         IsBetween(code_point, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool IsCjk(int32_t code_point) {
  constexpr struct {
    int32_t first, last;
  } kBlocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                 {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [code_point](const auto& block) { return block.first <= code_point && code_point <= block.last; });
}

bool IsCased(int32_t code_point) {
  return IsBetween(code_point, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT) ||
         utf8proc_tolower(code_point) != code_point || utf8proc_toupper(code_point) != code_point;
}

bool IsCaseIgnorable(int32_t code_point) {
  constexpr int32_t kInsideWords[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kInsideWords), std::end(kInsideWords), code_point) != std::end(kInsideWords);
  }
}

void AppendLowercase(int32_t code_point, std::string* text) {
  if (code_point == 0x130) {  // 'İ' is the only letter whose lowercase form is two code points
    *text += "i\u0307";
  } else {
    *text += ToUtf8(utf8proc_tolower(code_point));
  }
}

}  // namespace weft
