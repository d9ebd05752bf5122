#include "weft/lab/page.h"

#include "absl/strings/str_replace.h"

namespace weft {

std::string FillPage(absl::string_view page, absl::string_view json) {
  return absl::StrReplaceAll(page, {{"/*DATA*/", absl::StrReplaceAll(json, {{"<", "\\u003c"}})}});
}

}  // namespace weft
