// This file has the table of optimizers. Each row has a function that records the update of one weight.
#include <optional>
#include <vector>

#include "weft/base/status.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

// Records AdamWUpdate or AdamUpdate.
VarList UpdateWithMoments(decltype(&AdamWUpdate) update, const UpdateInputs& in, Var rate) {
  const OptimizerSettings& s = in.settings;
  return update(in.weight, in.states[0], in.states[1], in.gradient, rate, in.scale, in.step,
                {*s.beta1, *s.beta2, *s.epsilon, in.weight_decay});
}

VarList UpdateAdamW(const UpdateInputs& in) { return UpdateWithMoments(AdamWUpdate, in, in.rate); }
VarList UpdateAdam(const UpdateInputs& in) { return UpdateWithMoments(AdamUpdate, in, in.rate); }

VarList UpdateSgd(const UpdateInputs& in) {
  return SgdUpdate(in.weight, in.states[0], in.gradient, in.rate, in.scale,
                   {*in.settings.momentum, in.weight_decay, *in.settings.nesterov});
}

VarList UpdateAdagrad(const UpdateInputs& in) {
  return AdagradUpdate(in.weight, in.states[0], in.gradient, in.rate, in.scale, in.step,
                       {*in.settings.epsilon, in.weight_decay, *in.settings.rate_decay});
}

VarList UpdateLion(const UpdateInputs& in) {
  return LionUpdate(in.weight, in.states[0], in.gradient, in.rate, in.scale,
                    {*in.settings.beta1, *in.settings.beta2, in.weight_decay});
}

VarList UpdateMuon(const UpdateInputs& in) {
  const OptimizerSettings& s = in.settings;
  if (!in.is_hidden_matrix) return UpdateWithMoments(AdamWUpdate, in, Scale(in.rate, *s.adamw_rate));
  return MuonUpdate(in.weight, in.states[0], in.gradient, in.rate, in.scale,
                    {*s.momentum, in.weight_decay, *s.nesterov, in.precision == kBF16});
}

std::optional<TensorType> MuonState(const TensorType& weight, bool is_hidden_matrix, size_t state) {
  if (is_hidden_matrix && state == 1) return std::nullopt;
  return weight;
}

VarList UpdateAdafactor(const UpdateInputs& in) {
  VarList squares;
  for (Var state : in.states) {
    if (state.tape != nullptr) squares.push_back(state);
  }
  return AdafactorUpdate(in.weight, squares, in.gradient, in.rate, in.scale, in.step,
                         {*in.settings.beta2_decay, in.weight_decay});
}

std::optional<TensorType> AdafactorState(const TensorType& weight, bool /*is_hidden_matrix*/, size_t state) {
  const std::vector<TensorType> types = AdafactorStates(weight);
  const size_t first = types.size() == 1 ? 2 : 0;
  if (state < first || state >= first + types.size()) return std::nullopt;
  return types[state - first];
}

constexpr absl::string_view kMoments[] = {"m", "v"}, kMomentum[] = {"m"}, kSquares[] = {"sum"},
                            kMeanSquares[] = {"row", "column", "v"};

constexpr OptimizerRow kOptimizers[] = {
    {.name = "adamw",
     .states = kMoments,
     .counts_steps = true,
     .decays_only_matrices = true,
     .defaults = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01},
     .update = UpdateAdamW},
    {.name = "adam",
     .states = kMoments,
     .counts_steps = true,
     .defaults = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01},
     .update = UpdateAdam},
    {.name = "sgd",
     .states = kMomentum,
     .defaults = {.momentum = 0, .weight_decay = 0, .nesterov = false},
     .update = UpdateSgd},
    {.name = "adagrad",
     .states = kSquares,
     .counts_steps = true,
     .defaults = {.epsilon = 1e-10, .weight_decay = 0, .rate_decay = 0},
     .update = UpdateAdagrad},
    {.name = "lion",
     .states = kMomentum,
     .decays_only_matrices = true,
     .defaults = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0},
     .update = UpdateLion},
    {.name = "muon",
     .states = kMoments,
     .state_type = MuonState,
     .elementwise = false,
     .counts_steps = true,
     .decays_only_matrices = true,
     .defaults = {.momentum = 0.95,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .epsilon = 1e-8,
                  .weight_decay = 0.1,
                  .adamw_rate = 0.05,
                  .nesterov = true},
     .update = UpdateMuon},
    {.name = "adafactor",
     .states = kMeanSquares,
     .state_type = AdafactorState,
     .elementwise = false,
     .counts_steps = true,
     .decays_only_matrices = true,
     .defaults = {.weight_decay = 0, .beta2_decay = 0.8},
     .update = UpdateAdafactor},
};

}  // namespace

absl::Span<const OptimizerRow> Optimizers() { return kOptimizers; }

const OptimizerRow* FindOptimizer(absl::string_view name) { return FindRow(kOptimizers, name); }

}  // namespace weft
