// OptimizerOptions are the choice of an optimizer by name, its settings, and parameter groups. OptimizerHyperparameters
// gives the rows by which a command line or a configuration file sets them.
//
//   OptimizerOptions options = AdamW({.beta2 = 0.99, .clip = 1.0});   // the default of this training
//   Hyperparameters table = OptimizerHyperparameters(&options);       // "optimizer", "beta1", ..., "groups"
//   WEFT_RETURN_IF_ERROR(Validate(options));                          // after all rows are set
//   const Optimizer optimizer = options;
#ifndef WEFT_TRAIN_OPTIMIZER_OPTIONS_H_
#define WEFT_TRAIN_OPTIMIZER_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/hyperparameters.h"
#include "weft/train/optimizer.h"

namespace weft {

struct OptimizerOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): options are written {.optimizer = AdamW({...})}
  OptimizerOptions(const Optimizer& initial)
      : name(initial.row().name),
        given{.clip = initial.settings().clip, .clip_value = initial.settings().clip_value},
        initial(initial) {}

  std::string name;         // of a row of Optimizers()
  OptimizerSettings given;  // a setting without a value has that of Defaults()
  std::string groups;       // as ParseParameterGroups reads them; empty: those of `initial`
  Optimizer initial;

  // Returns the settings of `initial` if it has this name, else the default settings of the optimizer `name`.
  OptimizerSettings Defaults() const;
  // Returns the optimizer. Returns InvalidArgument if there is no such optimizer, if a setting is given that it does
  // not use, or if the groups can't be read.
  absl::StatusOr<Optimizer> Make() const;
  // Returns the optimizer of valid options.
  operator Optimizer() const { return Make().value(); }  // NOLINT(google-explicit-constructor): they stand for it
};

// Returns rows that point into `options`, which must outlive them. The value of a setting that is not given, and that
// the chosen optimizer does not use, is null.
Hyperparameters OptimizerHyperparameters(OptimizerOptions* options);
// Returns the error of `options.Make()`, which begins with the row's name.
absl::Status Validate(const OptimizerOptions& options);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZER_OPTIONS_H_
