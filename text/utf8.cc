// Classes of code points follow from utf8proc's general categories, and from lists of the code points that differ.
#include "weft/text/utf8.h"

#include <utf8proc.h>

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// Returns the length of the longest prefix of `text` with which a character can begin, or 0. `text` begins with no
// whole character. It suffices to try the lowest and the highest continuation bytes as the rest of the character.
size_t BytesOfIncompleteCharacter(absl::string_view text) {
  for (size_t bytes = std::min<size_t>(text.size(), 3); bytes > 0; --bytes) {
    for (const char* rest : {"\x80\x80\x80", "\xBF\xBF\xBF"}) {
      if (CharacterAt(absl::StrCat(text.substr(0, bytes), rest), 0).bytes > bytes) return bytes;
    }
  }
  return 0;
}

struct Range {
  int32_t first, last;
};

template <size_t n>
bool IsIn(const Range (&ranges)[n], int32_t code_point) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code_point](const Range& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

// Ranges whose punctuation, marks and controls are newer than the tables of `tokenizers` 0.23 and have no category
// there. All other characters in these ranges are of other categories in both. A scan of all code points gave the list.
constexpr Range kNewer[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},
    {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F89},
    {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x11241},
    {0x1133B, 0x1133B}, {0x11438, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF},
    {0x12FF1, 0x13455}, {0x16E97, 0x16F4F}, {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E4EF},
    {0x1E944, 0x1E95F}};

// Reports whether the category of `code_point` is in `first` .. `last`. utf8proc numbers the categories so that all L*
// follow each other, then all M*, and so on.
bool IsBetween(int32_t code_point, utf8proc_category_t first, utf8proc_category_t last) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return first <= category && category <= last;
}

}  // namespace

Utf8Character CharacterAt(absl::string_view text, size_t offset) {
  utf8proc_int32_t code_point = -1;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + offset,
                                                  static_cast<utf8proc_ssize_t>(text.size() - offset), &code_point);
  if (bytes <= 0) return {};
  return {code_point, static_cast<size_t>(bytes)};
}

size_t CountCharacters(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(byte); }));
}

size_t CharacterBegin(absl::string_view text, size_t at) {
  while (at > 0 && at < text.size() && IsContinuation(text[at])) --at;
  return at;
}

std::string ToUtf8(int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::max<utf8proc_ssize_t>(size, 0)));
}

absl::Status CheckUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {  // ASCII, of which most texts are
      ++i;
      continue;
    }
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes == 0) {
      return InvalidArgument(absl::StrFormat("not UTF-8 at byte %d (0x%02X)", i, static_cast<unsigned char>(text[i])));
    }
    i += c.bytes;
  }
  return absl::OkStatus();
}

std::string ReplaceInvalidUtf8(absl::string_view text, std::string* rest) {
  std::string valid;
  while (!text.empty()) {
    const size_t whole = CharacterAt(text, 0).bytes, begun = whole > 0 ? 0 : BytesOfIncompleteCharacter(text);
    if (begun == text.size() && rest != nullptr) {
      *rest = std::string(text);
      break;
    }
    absl::StrAppend(&valid, whole > 0 ? text.substr(0, whole) : "\uFFFD");
    text.remove_prefix(std::max<size_t>({whole, begun, 1}));
  }
  return valid;
}

std::string Describe(int32_t code_point) {
  const std::string code = absl::StrFormat("U+%04X", code_point);
  const bool invisible = utf8proc_category(code_point) == UTF8PROC_CATEGORY_CN ||
                         IsBetween(code_point, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) ||
                         IsBetween(code_point, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_CO);
  return invisible && code_point != ' ' ? code : absl::StrCat(code, " '", ToUtf8(code_point), "'");
}

bool IsLetter(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }
bool IsAnyMark(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }
bool IsNumber(int32_t code_point) { return IsBetween(code_point, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }

bool IsPunctuation(int32_t code_point) {
  if (code_point == 0x166D || code_point == 0x111C9) return true;  // a later Unicode changed their category
  return IsBetween(code_point, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) && !IsIn(kNewer, code_point);
}

bool IsMark(int32_t code_point) {
  if (code_point == 0x1734) return true;  // as above
  return utf8proc_category(code_point) == UTF8PROC_CATEGORY_MN && !IsIn(kNewer, code_point);
}

bool IsControl(int32_t code_point) {
  return IsBetween(code_point, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO) && !IsIn(kNewer, code_point);
}

bool IsWordCharacter(int32_t code_point) {
  return IsLetter(code_point) || IsCased(code_point) || code_point == 0x200C || code_point == 0x200D ||
         IsBetween(code_point, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_NL) ||
         utf8proc_category(code_point) == UTF8PROC_CATEGORY_PC;
}

bool IsSpace(int32_t code_point) {
  return (code_point >= '\t' && code_point <= '\r') || code_point == 0x85 ||
         IsBetween(code_point, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

size_t BeforeSpace(absl::string_view text, size_t end) {
  for (size_t begin; end > 0 && IsSpace(CharacterAt(text, begin = CharacterBegin(text, end - 1)).code_point);)
    end = begin;
  return end;
}

size_t BehindSpace(absl::string_view text, size_t begin) {
  while (begin < text.size() && IsSpace(CharacterAt(text, begin).code_point)) begin += CharacterAt(text, begin).bytes;
  return begin;
}

bool IsCjk(int32_t code_point) {
  // BERT's own list has 0x2B820 in place of 0x2B920, which is from `tokenizers`.
  constexpr Range kBlocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                               {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return IsIn(kBlocks, code_point);
}

bool IsCased(int32_t code_point) {
  // These have the property Other_Lowercase or Other_Uppercase: ª, º, and letters in circles and squares.
  constexpr Range kOther[] = {{0xAA, 0xAA}, {0xBA, 0xBA}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  return IsBetween(code_point, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT) || IsIn(kOther, code_point) ||
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
