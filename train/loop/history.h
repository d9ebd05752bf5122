// A TrainingHistory is the training loop's memory of earlier steps: the best evaluation, the running mean of the loss,
// and the number of skipped steps. A checkpoint keeps the history, so that a resumed run decides as an uninterrupted
// run.
//
//   TrainingHistory history;
//   const bool best = history.Evaluated(step, "val_loss", 2.31);
//   if (loss > history.LossLimit(5)) history.Skipped(); else history.Trained(loss);
#ifndef WEFT_TRAIN_LOOP_HISTORY_H_
#define WEFT_TRAIN_LOOP_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/train/optimize/learning_rate.h"
#include "weft/train/run/metrics.h"

namespace weft {

// Returns the figure called `metric` (TrainerOptions::metric) of the evaluations in `line`, or nullopt if it was not
// measured.
std::optional<double> MetricValue(const Metrics& line, absl::string_view metric);

class TrainingHistory {
 public:
  // Takes the metric of an evaluation after `step` updates; an undefined one has no value. Reports whether the metric
  // is the best so far.
  bool Evaluated(int64_t step, absl::string_view metric, std::optional<double> value);
  // Returns the number of evaluations since the best one, or that of all if none was defined.
  int64_t evaluations_since_best() const { return evaluations_since_best_; }
  int64_t best_step() const { return best_step_; }
  std::optional<double> best() const { return best_; }

  // Adds the loss of a step that changed the weights to the running mean and deviation.
  void Trained(double loss);
  // Counts a step that changed no weight.
  void Skipped();
  int64_t skipped() const { return skipped_; }  // in the whole run
  int64_t skipped_in_a_row() const { return skipped_in_a_row_; }
  // Returns the running mean plus `deviations` running standard deviations of the loss. A new loss has the weight 1/100
  // in both. Returns infinity before 100 losses, or if `deviations` is 0.
  double LossLimit(double deviations) const;

  // The state of a plateau that scales the learning rate (TrainerOptions::plateau).
  Plateau plateau;
  // The line of metrics of the newest step, if its evaluation was interrupted. A resumed run evaluates first.
  std::optional<Metrics> pending;

  // ToJson returns the history as a JSON object, and FromJson reads that object. An empty object gives an empty
  // history. FromJson returns an error if the text is no object, or if a value has the wrong type.
  std::string ToJson() const;
  static absl::StatusOr<TrainingHistory> FromJson(const std::string& json);

 private:
  // A number of the JSON object: json[group][key].
  struct Field {
    const char *group, *key;
    std::variant<double*, int64_t*> number;
    bool left_out = false;  // whether ToJson leaves the number out
  };
  std::vector<Field> Fields();

  std::optional<double> best_;
  int64_t best_step_ = 0, evaluations_since_best_ = 0;
  int64_t losses_ = 0;  // number of losses noted
  double mean_ = 0, variance_ = 0;
  int64_t skipped_ = 0, skipped_in_a_row_ = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_HISTORY_H_
