// An optimizer records the gradients of a loss, their clipping, and the update of every weight on the loss's tape.
//
//   const Minimized step = AdamW({.clip = 1.0}).Minimize(loss, rate);
//   Compile(tape, {.fetch = {loss, step.gradient_norm}, .update = {step}});
//
// Every optimizer is an OptimizerRow: a name, its states, its default settings and a function that records the update
// of one weight. A new optimizer is one row of the table in optimizer_table.cc.
#ifndef WEFT_TRAIN_OPTIMIZE_OPTIMIZER_H_
#define WEFT_TRAIN_OPTIMIZE_OPTIMIZER_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/ops/ops.h"

namespace weft {

// Another learning rate or weight decay for the weights whose names match a pattern, or no training of them.
struct ParameterGroup {
  std::string pattern;                      // of full names: * matches any text, ? one character, [ab] one of these
  double rate_scale = 1;                    // factor of the learning rate; at least 0
  std::optional<double> weight_decay = {};  // also of vectors; unset: the optimizer's
  bool frozen = false;                      // whether the weights stay as they are, without gradients and states
  bool adamw = false;                       // whether the optimizer Muon updates the weights by AdamW
};
// Returns the groups that `text` describes: PATTERN:SETTING,... for each, separated by ';', as in "*.bias:decay=0;
// wte.*:frozen; h.0.*:rate=0.5,decay=0.1". A setting is rate=FACTOR, decay=NUMBER, frozen or adamw. An empty text has
// no groups. Returns InvalidArgument if a setting is unknown or invalid.
absl::StatusOr<std::vector<ParameterGroup>> ParseParameterGroups(absl::string_view text);
// Returns the first group whose pattern matches `name`, or null.
const ParameterGroup* FindGroup(absl::Span<const ParameterGroup> groups, absl::string_view name);
// Reports whether the first group whose pattern matches `name` is frozen.
bool IsFrozen(absl::Span<const ParameterGroup> groups, absl::string_view name);
// Returns InvalidArgument if a group's setting is invalid, or if its pattern matches none of `names`.
absl::Status CheckGroups(absl::Span<const ParameterGroup> groups, const std::vector<std::string>& names);

// The settings of all optimizers; each optimizer uses some of them. If a setting has no value, the optimizer's default
// applies. The update functions in ops/ops.h, such as AdamWUpdate, give the formulas.
struct OptimizerSettings {
  std::optional<double> momentum = {};
  std::optional<double> beta1 = {}, beta2 = {};
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};
  std::optional<double> rate_decay = {};   // Adagrad: the rate in step s is rate / (1 + (s - 1) · rate_decay)
  std::optional<double> beta2_decay = {};  // Adafactor: the decay rate of squares in step s is 1 - s^-beta2_decay
  std::optional<double> adamw_rate = {};   // Muon: factor of the rate for the weights that AdamW updates
  double clip = 0;                         // maximum global norm of the gradients; 0: no maximum
  std::optional<bool> nesterov = {};       // whether momentum is Nesterov's
  // Maximum absolute value of a gradient's element; 0: no maximum. It comes before `clip`, whose norm is then that of
  // the clipped elements.
  double clip_value = 0;
  std::vector<ParameterGroup> groups = {};  // the first group whose pattern matches a weight's name applies
};

// A setting that some optimizers use.
template <class T>
struct SettingRow {
  const char *name, *help;
  std::optional<T> OptimizerSettings::*value;
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr double kBelowOne = 0.99999999;
inline constexpr SettingRow<double> kNumberSettings[] = {
    {"momentum", "decay rate of the running sum of gradients", &OptimizerSettings::momentum, kBelowOne},
    {"beta1", "decay rate of the mean gradient", &OptimizerSettings::beta1, kBelowOne},
    {"beta2", "decay rate of the mean squared gradient; lion: of the mean gradient that it keeps",
     &OptimizerSettings::beta2, kBelowOne},
    {"epsilon", "number added to the divisor of an update, against division by 0", &OptimizerSettings::epsilon},
    {"weight-decay", "factor of weight decay; adam, sgd and adagrad apply it to all weights, others to matrices only",
     &OptimizerSettings::weight_decay},
    {"rate-decay", "the rate in step s is divided by 1 + (s - 1) * this number", &OptimizerSettings::rate_decay},
    {"beta2-decay", "the decay rate of squares in step s is 1 - s ^ -(this number)", &OptimizerSettings::beta2_decay},
    {"adamw-rate", "factor of the learning rate for embeddings, output layers and vectors, which adamw updates",
     &OptimizerSettings::adamw_rate},
};
inline constexpr SettingRow<bool> kNesterovSetting = {"nesterov", "look ahead along the running sum of gradients",
                                                      &OptimizerSettings::nesterov};
// Calls `visit` with the row of each setting of type std::optional.
template <class Visit>
void ForEachSetting(Visit visit) {
  for (const SettingRow<double>& row : kNumberSettings) visit(row);
  visit(kNesterovSetting);
}

// The inputs of the update of one weight: values on the tape, and the optimizer's settings.
struct UpdateInputs {
  Var weight;
  VarList states;  // in the order of OptimizerRow::states; null where the weight lacks one
  Var gradient;
  Var rate;                 // f32 []: the learning rate of this weight
  Var scale;                // f32 []: the factor that clips the gradient; if it is NaN, nothing may change
  Var step;                 // i32 []: the number of this step, from 1; null unless OptimizerRow::counts_steps
  double weight_decay = 0;  // of this weight
  // Whether the weight is a matrix, but neither an embedding nor an output layer. Muon applies to such weights.
  bool is_hidden_matrix = false;
  DType precision = kF32;  // as UpdateOptions::precision
  const OptimizerSettings& settings;
};

struct OptimizerRow {
  absl::string_view name;                      // "adamw"; the names of its states begin with it
  absl::Span<const absl::string_view> states;  // "m": each weight NAME has a state "adamw.m.NAME" of zeros
  // Returns the type of state `state` for a weight of type `weight`, or nothing if the weight lacks the state. Null:
  // each weight has all states, with its own type.
  std::optional<TensorType> (*state_type)(const TensorType& weight, bool is_hidden_matrix, size_t state) = nullptr;
  // Whether each element of an update depends only on the same element of gradient and states, and on scalars. If so, a
  // weight can be updated in pieces.
  bool elementwise = true;
  bool counts_steps = false;          // the state "adamw.step" counts the updates
  bool decays_only_matrices = false;  // whether weight decay leaves out tensors of rank 1, such as biases and gains
  OptimizerSettings defaults;         // the settings that the optimizer uses, with default values
  // Returns the next versions of the weight and of its states.
  VarList (*update)(const UpdateInputs& inputs) = nullptr;
};

// All optimizers.
absl::Span<const OptimizerRow> Optimizers();
// Returns the optimizer of this name, or null.
const OptimizerRow* FindOptimizer(absl::string_view name);

struct Minimized {
  Var update;         // for CompileOptions::update
  Var gradient_norm;  // f32 []: the global norm of the gradients before clipping
  VarList weights;    // the updated weights
  operator Var() const { return update; }
};

// What an update does beside the optimizer's rule.
struct UpdateOptions {
  // f32 []: a factor by which every gradient is multiplied after clipping, such as 1. If the factor is NaN, the update
  // changes nothing. Null: no factor.
  Var allowed = {};
  // If true, a gradient that is not finite keeps every weight and state as it is. If false and there is no maximum
  // norm, it keeps only its own weight.
  bool all_or_none = false;
  // If d = `average_decay` > 0, each weight NAME has a state "ema.NAME": its exponential moving average, e ← e + (1-d)
  // · (w - e) after each update. The first update sets e to w, as PyTorch's AveragedModel does; the state "ema_started"
  // is then 1. Before this update e is 0. If a gradient is not finite, no average moves.
  double average_decay = 0;
  // The precision with which the update is compiled. kBF16: matrix products of Muon are in bf16.
  DType precision = kF32;
  // Names of the weights, which select parameter groups and name states. Empty: the weights are parameters, whose names
  // are taken. With names, weights may be any versions of states, such as pieces of weights (distributed/piece_name.h).
  std::vector<std::string> names = {};
  // Returns the global norm of all gradients, f32 []. Set on a rank that updates only some weights or pieces, whose
  // gradients are the argument. OptimizerSettings::clip_value must then be 0. Null: GlobalNorm.
  std::function<Var(VarSpan gradients)> norm = nullptr;
};
// The names of the states of averages: "ema." before the name of each weight, and "ema_started".
inline constexpr char kAveragePrefix[] = "ema.", kAveragesStarted[] = "ema_started";

// One optimizer with its settings.
class Optimizer {
 public:
  // `row` must outlive the optimizer.
  Optimizer(const OptimizerRow& row, const OptimizerSettings& settings);

  const OptimizerRow& row() const { return *row_; }
  // Returns the settings in use. Each setting that row().defaults has is set here, too.
  const OptimizerSettings& settings() const { return settings_; }

  // Returns the weights of `tape` that the optimizer trains, in the order in which they were recorded: those that no
  // group freezes. If a group's pattern matches no weight, the tape gets an error (Tape::Fail).
  VarList TrainedWeights(Tape* tape) const;
  // Records the gradients of `loss` by the trained weights that the loss's tape has now, and then their update. `rate`
  // is an f32 scalar. If the tape has no such weights, if a setting is given that the optimizer does not use, or if an
  // option is invalid, the tape gets an error (Tape::Fail).
  Minimized Minimize(Var loss, Var rate, const UpdateOptions& options = {}) const;
  // Records the clipping of gradients[i] and the update of weights[i] for each i. `weights` are parameters on the tape
  // of `rate`, and none of them is frozen; `gradients` have their types. Gradients may come from anywhere, for example
  // from sums over batches.
  Minimized Update(VarSpan weights, VarSpan gradients, Var rate, const UpdateOptions& options = {}) const;

 private:
  Minimized RecordUpdates(VarSpan weights, VarSpan gradients, Var rate, const UpdateOptions& options) const;

  const OptimizerRow* row_;
  OptimizerSettings settings_;
};

// Short names for the rows.

// AdamW (Loshchilov and Hutter, 2019). Weight decay applies to tensors of rank 2 and more. The states are
// "adamw.m.NAME", "adamw.v.NAME" and "adamw.step".
inline Optimizer AdamW(const OptimizerSettings& settings) { return {*FindOptimizer("adamw"), settings}; }
// Adam (Kingma and Ba, 2015). Weight decay applies to all weights and is added to the gradient. The states are
// "adam.m.NAME", "adam.v.NAME" and "adam.step".
inline Optimizer Adam(const OptimizerSettings& settings) { return {*FindOptimizer("adam"), settings}; }
// SGD with momentum, and Nesterov's variant. Its state is "sgd.m.NAME".
inline Optimizer Sgd(const OptimizerSettings& settings) { return {*FindOptimizer("sgd"), settings}; }
// Adagrad (Duchi et al., 2011). Its states are "adagrad.sum.NAME" and "adagrad.step".
inline Optimizer Adagrad(const OptimizerSettings& settings) { return {*FindOptimizer("adagrad"), settings}; }
// Lion (Chen et al., 2023). Weight decay applies to tensors of rank 2 and more. The state is "lion.m.NAME".
inline Optimizer Lion(const OptimizerSettings& settings) { return {*FindOptimizer("lion"), settings}; }
// Muon (Jordan et al., 2024) for matrices, and AdamW for embeddings, output layers and vectors, at the rate times
// `adamw_rate`. Embeddings and output layers are recognised by their names, such as "wte.weight" and "lm_head.weight",
// or by ParameterGroup::adamw. Weight decay applies to tensors of rank 2 and more. The states are "muon.m.NAME", for
// AdamW also "muon.v.NAME", and "muon.step".
inline Optimizer Muon(const OptimizerSettings& settings) { return {*FindOptimizer("muon"), settings}; }
// Adafactor (Shazeer and Stern, 2018) without momentum, whose states take little memory. Weight decay applies to
// tensors of rank 2 and more. These tensors have the states "adafactor.row.NAME" and "adafactor.column.NAME", and any
// other weight has the state "adafactor.v.NAME". The state "adafactor.step" counts the updates.
inline Optimizer Adafactor(const OptimizerSettings& settings) { return {*FindOptimizer("adafactor"), settings}; }

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZE_OPTIMIZER_H_
