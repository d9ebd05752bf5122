// ReportRuns is the part of `weft report` that is about training runs.
//
//   return ReportRuns({"runs/gpt-1"}, {.out = "report.html", .follow = true});
#ifndef WEFT_APPS_INSPECT_RUN_REPORTS_H_
#define WEFT_APPS_INSPECT_RUN_REPORTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace weft {

struct RunReportFlags {
  std::string out;
  bool overwrite = false;
  bool follow = false;  // writes the page again as the runs grow, until no training writes them or until Ctrl-C
  std::string text;     // the page shows its attention weights with each kept checkpoint; empty: none
};
absl::Status ReportRuns(const std::vector<std::string>& folders, const RunReportFlags& flags);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_RUN_REPORTS_H_
