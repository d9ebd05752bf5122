#include "weft/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>

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
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return code;
    case UTF8PROC_CATEGORY_ZS:
      return code_point == ' ' ? absl::StrCat(code, " ' '") : code;
    default:
      return absl::StrCat(code, " '", ToUtf8(code_point), "'");
  }
}

}  // namespace weft
