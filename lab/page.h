// Pages that show data: one file of HTML with the data in it, which needs nothing else.
//
//   std::fputs(FillPage(kGraphPage, json.dump()).c_str(), stdout);  // kGraphPage: weft_page of tools/weft.bzl
#ifndef WEFT_LAB_PAGE_H_
#define WEFT_LAB_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// `page` with `json` where it says /*DATA*/, inside of a <script>. Each '<' of the data, which JSON has in strings
// only, is written \u003c, so that no name can end the script.
std::string FillPage(absl::string_view page, absl::string_view json);

}  // namespace weft

#endif  // WEFT_LAB_PAGE_H_
