#include "weft/lab/page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/text/utf8.h"

namespace weft {

std::string FillPage(absl::string_view page, absl::string_view json) {
  return absl::StrReplaceAll(page, {{"/*DATA*/", absl::StrReplaceAll(json, {{"<", "\\u003c"}})}});
}

std::string Shortened(absl::string_view text, size_t max_bytes, absl::string_view mark) {
  if (text.size() <= max_bytes) return std::string(text);
  return absl::StrCat(text.substr(0, CharacterBegin(text, max_bytes)), mark);
}

}  // namespace weft
