// An EventFile holds the metrics, weights and samples of a training run in the format of the program `tensorboard`,
// which shows them.
//
//   WEFT_ASSIGN_OR_RETURN(EventFile file, EventFile::Open("runs/gpt-1", -1));
//   WEFT_RETURN_IF_ERROR(file.AppendMetrics({.step = 1, .training = {{.loss = 4.3}}}));
//   WEFT_RETURN_IF_ERROR(file.AppendWeights(1, parameters));
//
// Two files to which the same values were appended differ only in wall times, which have a fixed size. So a file that
// TensorBoard is reading while its run is resumed stays readable: the repeated events take the places of the old ones.
#ifndef WEFT_TRAIN_RUN_EVENT_FILE_H_
#define WEFT_TRAIN_RUN_EVENT_FILE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/core/parameters.h"
#include "weft/core/tensor.h"
#include "weft/train/run/metrics.h"

namespace weft {

// The file's name in the folder of a run. TensorBoard reads every file whose name contains "tfevents".
inline constexpr char kEventFile[] = "events.out.tfevents.weft";

inline constexpr int kHistogramIntervals = 30;  // the default of TensorBoard's own function

struct HistogramInterval {
  double left = 0, right = 0, count = 0;
};
using Histogram = std::array<HistogramInterval, kHistogramIntervals>;

// Counts values in intervals of equal width, for the histograms of a run's event file and insights: value x in interval
// floor((x - min) / width), and the maximum in the last interval. If all values are equal, the last interval counts
// them. Values that are not finite do not count. TensorBoard's function histogram_pb counts in this way.
template <class T>
Histogram CountIntervals(absl::Span<const T> values) {
  Histogram histogram;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (low > high) return histogram;
  const double width = (high - low) / kHistogramIntervals;
  for (int i = 0; i < kHistogramIntervals; ++i) {
    histogram[i].left = low + i * width;
    histogram[i].right = i + 1 < kHistogramIntervals ? low + (i + 1) * width : high;
  }
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    if (!std::isfinite(x)) continue;
    const double index = width > 0 ? std::floor((x - low) / width) : kHistogramIntervals;
    histogram[static_cast<int>(std::min<double>(index, kHistogramIntervals - 1))].count += 1;
  }
  return histogram;
}

class EventFile {
 public:
  struct Scalar {
    std::string tag;
    double value = 0;  // the file has it as an f32
  };

  // Opens the event file of `folder`, or creates it. Removes the events from the first one whose step exceeds `step`,
  // so a negative `step` keeps none. Also removes a record that a killed program left incomplete. If a record is
  // damaged, removes it and all later records, and `warning` says so.
  static absl::StatusOr<EventFile> Open(const std::string& folder, int64_t step);

  // Appends the scalars that `metrics` has, among loss/train, learning_rate, gradient_norm, tokens_per_second, memory,
  // and NAME/validation for each figure of an evaluation, or NAME/validation_ema of averaged weights.
  absl::Status AppendMetrics(const Metrics& metrics);
  // Appends a histogram of each weight after `step` updates, with the tag "weights/NAME".
  absl::Status AppendWeights(int64_t step, const Parameters& parameters);
  // Appends a text to be shown as it is, line by line. Bytes that are not UTF-8 become U+FFFD.
  absl::Status AppendLines(int64_t step, const std::string& tag, absl::string_view text);

  // These functions append one event. `step` is at least that of the previous event; `wall_time` is in seconds since
  // 1970. A file has a tag at most once for each step: values whose tag the last step already has are left out. So a
  // resumed run may append the events of its last step again.
  absl::Status AppendScalars(int64_t step, double wall_time, absl::Span<const Scalar> scalars);
  // Appends CountIntervals of `values`, which have a floating-point dtype.
  absl::Status AppendHistogram(int64_t step, double wall_time, const std::string& tag, const Tensor& values);
  // Appends a text, which is UTF-8. TensorBoard shows it as Markdown.
  absl::Status AppendText(int64_t step, double wall_time, const std::string& tag, absl::string_view text);
  absl::Status Sync();  // writes the appended events to the disk

  // Returns "" or what Open removed because it was damaged.
  const std::string& warning() const { return warning_; }

 private:
  EventFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Keep(int64_t step);
  // Appends `record` with its length and checksums.
  absl::Status Write(absl::string_view record);
  // Reports whether the file lacks `tag` at `step`, and notes the tag.
  absl::StatusOr<bool> IsNew(int64_t step, const std::string& tag);

  std::string path_, warning_;
  Descriptor file_;
  int64_t step_ = 0;            // of the last event
  std::set<std::string> tags_;  // of the events of step_
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_EVENT_FILE_H_
