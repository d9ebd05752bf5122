// Plateau reduces a learning rate when a metric stops improving, as PyTorch's ReduceLROnPlateau does.
//
//   Plateau plateau({.factor = 0.5, .patience = 3});
//   if (plateau.Observe(validation_loss)) ...        // after an evaluation; true if the scale fell
//   const double rate = schedule(step) * plateau.scale();
//   Plateau resumed(settings, saved_state);          // continues as the plateau that had this state
#ifndef WEFT_TRAIN_PLATEAU_H_
#define WEFT_TRAIN_PLATEAU_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"

namespace weft {

struct PlateauSettings {
  double factor = 0.1;      // by which the scale is multiplied; in [0, 1)
  int64_t patience = 10;    // observations in a row without improvement after which the next one reduces the scale
  double threshold = 1e-4;  // a metric improves if it is below best · (1 - threshold); in [0, 1)
  double min_scale = 0;     // the scale never falls below it; in [0, 1]
};
// Returns InvalidArgument if a setting is out of its range.
absl::Status Validate(const PlateauSettings& settings);

struct PlateauState {
  double best = std::numeric_limits<double>::infinity();  // the lowest metric so far
  int64_t bad = 0;                                        // observations in a row that did not improve it
  double scale = 1;
};

class Plateau {
 public:
  explicit Plateau(const PlateauSettings& settings, const PlateauState& state = {})
      : settings_(settings), state_(state) {}

  // Takes the metric of one evaluation; lower is better, and NaN does not improve. Returns true if the scale falls.
  bool Observe(double metric);
  double scale() const { return state_.scale; }
  const PlateauState& state() const { return state_; }

 private:
  PlateauSettings settings_;
  PlateauState state_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_PLATEAU_H_
