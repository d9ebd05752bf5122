// A RunReport makes a page on training runs from the files in their folders: curves of the figures in metrics.jsonl,
// samples and layers from insights.jsonl, and the configurations.
//
//   WEFT_ASSIGN_OR_RETURN(RunReport report, RunReport::Open({"runs/gpt-1", "runs/gpt-2"}));
//   WEFT_RETURN_IF_ERROR(WriteFile("report.html", {report.Page()}));
#ifndef WEFT_LAB_REPORTS_RUN_REPORT_H_
#define WEFT_LAB_REPORTS_RUN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/lab/page.h"
#include "weft/lab/reports/attention_report.h"
#include "weft/lab/reports/json_lines.h"

namespace weft {

inline constexpr size_t kMaxReportedRuns = 24;

class RunReport {
 public:
  // Opens the runs and reads their files as they are now. Each of `folders` must hold a config.json of a training. With
  // a `text`, the page shows its attention weights with each kept checkpoint. Errors name the folder.
  static absl::StatusOr<RunReport> Open(absl::Span<const std::string> folders, const std::string& text = "");

  // Reads the lines that the trainings have written since the last call. Returns whether the page has changed.
  absl::StatusOr<bool> Update();
  // Returns the page. Its size has a limit: long curves lose points between extremes, and the page tells how many.
  // `reload_seconds`: the time after which the page loads itself again; 0: never.
  std::string Page(int reload_seconds = 0) const;

  // Returns the number of steps of all runs together that the page shows.
  int64_t steps() const;
  // Reports whether a training is writing one of the runs at this moment.
  bool going_on() const;

 private:
  struct Run {
    explicit Run(std::string path);

    std::string folder;
    nlohmann::ordered_json config;
    JsonLines metrics, insights;
    std::vector<std::pair<std::string, Curve>> figures;  // by key of metrics.jsonl, in the order of appearance
    Curve tokens, seconds;
    int64_t step = -1;     // of the last line; -1: there is no line
    int64_t skipped = 0;   // steps that changed no weight
    int64_t disorder = 0;  // lines whose step does not exceed the step before
    bool running = false;
    std::vector<nlohmann::json> evaluations;  // the lines of insights.jsonl
    std::optional<RunAttention> attention;
  };

  static absl::StatusOr<bool> Update(Run* run);
  static void AddLine(const nlohmann::json& line, Run* run);

  std::vector<Run> runs_;
};

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_RUN_REPORT_H_
