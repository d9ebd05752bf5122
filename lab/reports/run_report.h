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

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/lab/page.h"
#include "weft/lab/reports/attention_report.h"

namespace weft {

// JsonLines reads a file of JSON objects, one a line, to which another program may be appending.
//
//   JsonLines lines("runs/gpt-1/metrics.jsonl");
//   const auto add = [&](const nlohmann::json& line) { steps.push_back(line.at("step")); };
//   WEFT_RETURN_IF_ERROR(lines.Read([&] { steps.clear(); }, add).status());   // and again, as the file grows
class JsonLines {
 public:
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  // Calls `add` with each line that was appended since the last call. If the file was replaced or cut, first calls
  // `restart`, and then `add` with all its lines again. A missing file has no lines. A last line without its end may
  // still be growing and is left for the next call. Returns whether `restart` or `add` was called.
  absl::StatusOr<bool> Read(absl::FunctionRef<void()> restart, absl::FunctionRef<void(nlohmann::json)> add);

  // Returns the number of complete lines that are not JSON objects. Read passes over them.
  int64_t damaged() const { return damaged_; }

 private:
  std::string path_;
  size_t end_ = 0;         // of the bytes that Read has taken
  std::string last_line_;  // ends at `end_`; tells whether the file is still the same
  int64_t damaged_ = 0;
};

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
    nlohmann::ordered_map<std::string, Curve> figures;  // by key of metrics.jsonl, in the order of appearance
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
