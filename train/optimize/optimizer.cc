// For any row of the table of optimizers, Minimize records the gradients of a loss, their global norm and clipping, the
// count of steps if the optimizer has one, and the update of every weight.
#include "weft/train/optimize/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/distributed/piece_name.h"

namespace weft {
namespace {

absl::Status Check(const OptimizerRow& row, const OptimizerSettings& settings, VarSpan weights,
                   const UpdateOptions& options) {
  absl::Status status;
  ForEachSetting([&](const auto& setting) {
    if (!(settings.*setting.value).has_value() || (row.defaults.*setting.value).has_value()) return;
    status.Update(
        InvalidArgument(row.name, ": this optimizer has no ", absl::StrReplaceAll(setting.name, {{"-", "_"}})));
  });
  for (const ParameterGroup& group : settings.groups) {
    if (!group.adamw || row.defaults.adamw_rate) continue;
    status.Update(InvalidArgument(row.name, ": the group '", group.pattern, "' has adamw, which belongs to muon"));
  }
  if (weights.empty()) {
    status.Update(InvalidArgument(row.name, ": the tape has no weights to update"));
  }
  if (!(settings.clip_value >= 0 && std::isfinite(settings.clip_value))) {
    status.Update(InvalidArgument(row.name, ": clip_value = ", settings.clip_value, ", wanted >= 0, finite"));
  }
  if (!(options.average_decay >= 0 && options.average_decay < 1)) {
    status.Update(InvalidArgument(row.name, ": average_decay = ", options.average_decay, ", wanted in [0, 1)"));
  }
  if (options.norm && settings.clip_value > 0) {
    status.Update(InvalidArgument(row.name, ": clip_value does not work if weights are updated in pieces"));
  }
  if (const Var allowed = options.allowed; allowed.tape != nullptr && allowed.type() != TensorType{kF32, {}}) {
    status.Update(InvalidArgument(row.name, ": allowed is ", ToString(allowed.type()), ", wanted f32[]"));
  }
  return status;
}

bool IsParameter(const Tape& tape, Var v) {
  return v.tape == &tape && tape.program().value(v.id).producer != kNoNode &&
         tape.program().producer(v.id).op == &kParameterOp;
}

absl::Status CheckGradients(const OptimizerRow& row, const OptimizerSettings& settings, const Tape& tape,
                            VarSpan weights, VarSpan gradients, const std::vector<std::string>& names) {
  if (weights.size() != gradients.size()) {
    return InvalidArgument(row.name, ": ", gradients.size(), " gradients for ", weights.size(), " weights");
  }
  if (!names.empty() && names.size() != weights.size()) {
    return InvalidArgument(row.name, ": ", names.size(), " names for ", weights.size(), " weights");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (names.empty() && !IsParameter(tape, weights[i])) {
      return InvalidArgument(row.name, ": weight ", i, " is not a parameter of the learning rate's tape");
    }
    const std::string& name = names.empty() ? tape.ParameterName(weights[i]) : names[i];
    if (IsFrozen(settings.groups, WeightOfPiece(name))) {
      return InvalidArgument(row.name, ": weight '", name, "' is frozen");
    }
    if (gradients[i].type() == weights[i].type()) continue;
    return InvalidArgument(row.name, ": gradient ", i, " is ", ToString(gradients[i].type()), ", but the weight is ",
                           ToString(weights[i].type()));
  }
  return absl::OkStatus();
}

// Holds clipped elements of gradients, and the factors that clip norms. If there is no maximum norm and not
// `all_or_none`, each factor depends on its own gradient alone. A weight's update then need not wait for the gradients
// of other weights.
struct Clipped {
  VarList gradients;
  VarList scales;  // f32 []: at most 1, times `allowed`; NaN if the update must change nothing
  Var norm;        // f32 []: of all gradients before clipping
  Var finite;      // f32 []: NaN if a gradient is not finite or the step may change nothing, else finite
};

Clipped Clip(VarSpan gradients, const OptimizerSettings& settings, const UpdateOptions& options) {
  const double clip = settings.clip, limit = settings.clip_value;
  const auto times_allowed = [&](Var scale) {
    return options.allowed.tape != nullptr ? scale * options.allowed : scale;
  };
  // Clipping by value makes infinite elements finite. The scale of the clipped gradient is NaN nevertheless.
  const auto scale_of = [&](Var norm, Var clipped_norm) {
    const Var scale = ClipScale(clipped_norm, clip);
    return times_allowed(limit > 0 ? scale + Cast(norm - norm, kF32) : scale);
  };
  Clipped c;
  c.norm = Cast(options.norm ? options.norm(gradients) : GlobalNorm(gradients), kF32);
  for (Var gradient : gradients) c.gradients.push_back(limit > 0 ? Clamp(gradient, -limit, limit) : gradient);
  const bool together = clip > 0 || options.all_or_none;
  const Var clipped_norm = clip > 0 && limit > 0 ? Cast(GlobalNorm(c.gradients), kF32) : c.norm;
  const Var scale = scale_of(c.norm, clipped_norm);
  c.finite = together ? scale : times_allowed(c.norm - c.norm);
  for (Var gradient : gradients) {
    c.scales.push_back(together ? scale : times_allowed(ClipScale(Cast(SquareSum(gradient), kF32), 0)));
  }
  return c;
}

// Returns 1 if the step changes all weights, else 0: f32 [].
Var Counts(const Clipped& c) { return Cast(Equal(c.finite, c.finite), kF32); }

// Holds the number of the current step, i32 [], counted from 1, and the update of the count. The update adds 1 if all
// gradients are finite, else 0.
struct Counted {
  Var step, update;
};

Counted CountSteps(absl::string_view optimizer, const Clipped& c) {
  // Counts in f32, which is exact for 2^24 steps.
  const Var count = c.norm.tape->State(absl::StrCat(optimizer, ".step"), {kF32, {}}, Zeros());
  // The step counts only if all gradients are finite, so the count waits for all gradients. If one is not finite, no
  // weight is updated with clipping. Without clipping, each weight with a finite gradient is updated.
  return {Cast(count + 1.0, kI32), Assign(count, count + Counts(c))};
}

// Records the moving averages of `weights` after their update, and appends their updates to `updates`.
void Average(const std::vector<std::string>& names, VarSpan weights, const Clipped& c, double decay, VarList* updates) {
  Tape* const tape = c.norm.tape;
  const Var started = tape->State(kAveragesStarted, {kF32, {}}, Zeros()), counts = Counts(c);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Var weight = weights[i];
    const Var average = tape->State(absl::StrCat(kAveragePrefix, names[i]), weight.type(), Zeros());
    // The average e moves by a fraction of w - e, for the weight w: by 1 in the first step that counts, then by 1-d.
    const Var moved = Where(Greater(started, Fill(tape, {kF32, {}}, 0)), Number(weight, 1 - decay), Number(weight, 1));
    const Var fraction = moved * Cast(counts, weight.dtype());
    updates->push_back(Assign(average, average + fraction * (weight - average)));
  }
  updates->push_back(Assign(started, Maximum(started, counts)));
}

// Records the updates of statistics (kNextState), which a step without effect leaves as they are.
void UpdateStates(const Clipped& c, VarList* updates) {
  Tape* const tape = c.norm.tape;
  Var counts;
  for (const auto& [name, next] : tape->probes()) {
    absl::string_view state_name = name;
    if (!absl::ConsumeSuffix(&state_name, kNextState)) continue;
    if (!counts) counts = Greater(Counts(c), Fill(tape, {kF32, {}}, 0));
    const Var state = tape->FindParameter(state_name);
    updates->push_back(Assign(state, Where(counts, next, state)));
  }
}

// Reports whether a weight is a matrix between hidden layers. Names tell embeddings and output layers, because an
// update may be recorded without the model.
bool IsHiddenMatrix(Var weight, absl::string_view name, const ParameterGroup* group) {
  if (weight.shape().rank() != 2 || (group != nullptr && group->adamw)) return false;
  constexpr absl::string_view kOthers[] = {"wte.",  "wpe.",    "embed", "shared.",          "attention_bias",
                                           "head.", "classif", "score", "seq_relationship", "vocabulary"};
  return std::none_of(std::begin(kOthers), std::end(kOthers),
                      [&](absl::string_view part) { return absl::StrContains(name, part); });
}

// Declares the states of one weight, the last one first.
VarList StatesOf(const OptimizerRow& row, Var weight, absl::string_view weight_name, bool is_hidden_matrix) {
  VarList states(row.states.size());
  Tape* const tape = weight.tape;
  for (size_t i = states.size(); i-- > 0;) {
    const std::string name = absl::StrCat(row.name, ".", row.states[i], ".", weight_name);
    const std::optional<TensorType> type =
        row.state_type != nullptr ? row.state_type(weight.type(), is_hidden_matrix, i) : weight.type();
    if (type) states[i] = tape->State(name, *type, Zeros());
  }
  return states;
}

}  // namespace

Optimizer::Optimizer(const OptimizerRow& row, const OptimizerSettings& settings) : row_(&row), settings_(settings) {
  ForEachSetting([&](const auto& setting) {
    if (!(settings_.*setting.value).has_value()) settings_.*setting.value = row.defaults.*setting.value;
  });
}

VarList Optimizer::TrainedWeights(Tape* tape) const {
  const VarList weights = tape->Weights();
  if (settings_.groups.empty()) return weights;
  VarList trained;
  std::vector<std::string> names;
  for (Var weight : weights) {
    names.push_back(tape->ParameterName(weight));
    if (!IsFrozen(settings_.groups, names.back())) trained.push_back(weight);
  }
  tape->Fail(Annotate(CheckGroups(settings_.groups, names), row_->name));
  return trained;
}

Minimized Optimizer::Minimize(Var loss, Var rate, const UpdateOptions& options) const {
  Tape* const tape = loss.tape;
  const Scope scope(tape, row_->name, Scope::kNoNames);
  const VarList weights = TrainedWeights(tape);
  tape->Fail(Check(*row_, settings_, weights, options));
  if (!tape->status().ok()) return {tape->Poison(), tape->Poison(), {}};
  return RecordUpdates(weights, Gradient(loss, weights), rate, options);
}

Minimized Optimizer::Update(VarSpan weights, VarSpan gradients, Var rate, const UpdateOptions& options) const {
  Tape* const tape = rate.tape;
  const Scope scope(tape, row_->name, Scope::kNoNames);
  tape->Fail(Check(*row_, settings_, weights, options));
  if (tape->status().ok()) tape->Fail(CheckGradients(*row_, settings_, *tape, weights, gradients, options.names));
  if (!tape->status().ok()) return {tape->Poison(), tape->Poison(), VarList(weights.size(), tape->Poison())};
  return RecordUpdates(weights, gradients, rate, options);
}

Minimized Optimizer::RecordUpdates(VarSpan weights, VarSpan gradients, Var rate, const UpdateOptions& options) const {
  Tape* const tape = rate.tape;
  const Clipped c = Clip(gradients, settings_, options);
  Counted count;
  VarList updates, updated_weights;
  std::vector<std::string> names = options.names;
  for (size_t i = names.size(); i < weights.size(); ++i) names.push_back(tape->ParameterName(weights[i]));
  if (row_->counts_steps) {
    count = CountSteps(row_->name, c);
    updates.push_back(count.update);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = names[i];
    const ParameterGroup* const group = FindGroup(settings_.groups, WeightOfPiece(name));
    const bool is_hidden_matrix = IsHiddenMatrix(weights[i], name, group);
    const bool decays = !row_->decays_only_matrices || weights[i].shape().rank() >= 2;
    double weight_decay = decays ? settings_.weight_decay.value_or(0) : 0;
    if (group != nullptr) weight_decay = group->weight_decay.value_or(weight_decay);
    const bool scaled = group != nullptr && group->rate_scale != 1;
    const VarList updated = row_->update({.weight = weights[i],
                                          .states = StatesOf(*row_, weights[i], name, is_hidden_matrix),
                                          .gradient = c.gradients[i],
                                          .rate = scaled ? Scale(rate, group->rate_scale) : rate,
                                          .scale = c.scales[i],
                                          .step = count.step,
                                          .weight_decay = weight_decay,
                                          .is_hidden_matrix = is_hidden_matrix,
                                          .precision = options.precision,
                                          .settings = settings_});
    updates.insert(updates.end(), updated.begin(), updated.end());
    updated_weights.push_back(updated[0]);
  }
  UpdateStates(c, &updates);
  if (options.average_decay > 0) Average(names, updated_weights, c, options.average_decay, &updates);
  return {tape->Group(updates), c.norm, updated_weights};
}

}  // namespace weft
