// FillPage makes pages that show data: self-contained HTML files with the data inside.
//
//   std::fputs(FillPage(kGraphPage, json.dump()).c_str(), stdout);  // kGraphPage: weft_page of tools/weft.bzl
#ifndef WEFT_LAB_PAGE_H_
#define WEFT_LAB_PAGE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// Returns `page` with `json` in place of the text /*DATA*/, which must be inside a <script>. Each '<' of the data
// becomes \u003c, so that no string in the data can end the script.
std::string FillPage(absl::string_view page, absl::string_view json);

// Returns the first bytes of `text`, at most `max_bytes`, cut between characters. If any bytes are left out, `mark`
// follows.
std::string Shortened(absl::string_view text, size_t max_bytes, absl::string_view mark = "…");

}  // namespace weft

#endif  // WEFT_LAB_PAGE_H_
