// Insights appends to insights.jsonl, at each evaluation of a training, a histogram of each weight, how much the last
// step changed the weight, and a sample of the model. `weft report` shows them. Two equal runs write equal bytes.
//
//   WEFT_ASSIGN_OR_RETURN(Insights insights, Insights::Open("run/insights.jsonl", -1));
//   insights.Remember(parameters);                                                      // before step 500
//   WEFT_RETURN_IF_ERROR(insights.Append(500, "To be, or not", parameters));            // after step 500
#ifndef WEFT_TRAIN_RUN_INSIGHTS_H_
#define WEFT_TRAIN_RUN_INSIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/train/run/step_lines.h"

namespace weft {

// Each figure is of at most this number of evenly spaced values of a weight: enough for a histogram, and a few
// milliseconds for a hundred weights.
inline constexpr size_t kInsightValues = 16'384;

class Insights {
 public:
  // Opens `path`, or creates it. Keeps the lines of steps up to `step`, so a negative `step` keeps none.
  static absl::StatusOr<Insights> Open(const std::string& path, int64_t step);

  // Copies values of the trained weights before a step that an evaluation follows.
  void Remember(const Parameters& parameters);
  // Appends a line on the trained weights after `step` updates. Bytes of `sample` that are not UTF-8 become U+FFFD.
  // The line has a weight's "log10_update", log10 of RMS(now - remembered) / RMS(now), if Remember was called since the
  // last line and the weight has changed.
  absl::Status Append(int64_t step, absl::string_view sample, const Parameters& parameters);
  absl::Status Sync() { return lines_.Sync(); }  // writes the appended lines to the disk

 private:
  StepLines lines_;
  std::map<std::string, std::vector<double>> remembered_;  // by weight
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_INSIGHTS_H_
