// A TensorBoard writes the metrics, weights and samples of a training run to the run's event file, which the program
// `tensorboard` shows.
//
//   WEFT_ASSIGN_OR_RETURN(TensorBoard board, TensorBoard::Open("runs/gpt-1", -1));
//   WEFT_RETURN_IF_ERROR(board.Step({.step = 1, .training = {{.loss = 4.3}}}));
//   WEFT_RETURN_IF_ERROR(board.Weights(1, parameters));
#ifndef WEFT_TRAIN_RUN_TENSORBOARD_H_
#define WEFT_TRAIN_RUN_TENSORBOARD_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/train/run/event_file.h"
#include "weft/train/run/metrics.h"

namespace weft {

class TensorBoard {
 public:
  // Opens the event file in the run folder `folder` as EventFile::Open does: events of steps up to `step` are kept.
  static absl::StatusOr<TensorBoard> Open(const std::string& folder, int64_t step);

  // Appends the scalars that `metrics` has, among loss/train, loss/validation, accuracy/validation, learning_rate,
  // gradient_norm and tokens_per_second, and loss/validation_ema and accuracy/validation_ema of averaged weights. The
  // scalar memory is the number of resident bytes of the process.
  absl::Status Step(const Metrics& metrics);
  // Appends a histogram of each weight after `step` updates, with the tag "weights/NAME".
  absl::Status Weights(int64_t step, const Parameters& parameters);
  // Appends a text to be shown as it is, line by line. Bytes that are not UTF-8 become U+FFFD.
  absl::Status Text(int64_t step, const std::string& name, absl::string_view text);
  absl::Status Sync() { return file_.Sync(); }  // writes the appended events to the disk

  // Returns "" or what Open removed because it was damaged.
  const std::string& warning() const { return file_.warning(); }

 private:
  explicit TensorBoard(EventFile file) : file_(std::move(file)) {}

  EventFile file_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_TENSORBOARD_H_
