#include "weft/train/optimizer.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// What every optimizer begins with: the weights, their gradients, and the factors that clip these. Without a limit a
// gradient's factor is of itself alone, so that its update need not wait for the others.
struct Clipped {
  VarList weights, gradients;
  VarList scales;   // f32 []: 1 or less; NaN where nothing is to change
  Var norm, scale;  // f32 [], of all
};

Clipped ClippedGradients(const char* optimizer, Var loss, double clip) {
  Clipped c;
  c.weights = loss.tape->Weights();
  if (c.weights.empty()) {
    loss.tape->Fail(absl::InvalidArgumentError(absl::StrCat(optimizer, ": the tape has no weights to update")));
    return c;
  }
  c.gradients = Gradient(loss, c.weights);
  c.norm = GlobalNorm(c.gradients);
  c.norm = Cast(c.norm, kF32);
  c.scale = ClipScale(c.norm, clip);
  for (Var gradient : c.gradients) {
    c.scales.push_back(clip > 0 ? c.scale : ClipScale(Cast(SquareSum(gradient), kF32), 0));
  }
  return c;
}

Var StateLike(const char* prefix, Var weight) {
  Tape* tape = weight.tape;
  return tape->State(absl::StrCat(prefix, tape->ParameterName(weight)), weight.type(), Zeros());
}

}  // namespace

Minimized AdamW::Minimize(Var loss, Var rate) const {
  Tape* tape = loss.tape;
  const Scope scope(tape, "adamw", Scope::kNoNames);
  const Clipped c = ClippedGradients("AdamW", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  // Counted in f32, where + is: exact for 2^24 steps.
  const Var count = tape->State("adamw.step", {kF32, {}}, Zeros());
  // Not where clipping finds the gradients not finite; without it the weights whose gradients are finite go on. In both
  // cases after all gradients, because a run can be cancelled until the first write.
  const Var known = config_.clip > 0 ? c.scale : Cast(Equal(c.norm, c.norm), kF32);
  const Var finite = Cast(Equal(known, known), kF32);
  const Var step = Cast(count + 1.0, kI32);
  VarList updates = {Assign(count, count + finite)};
  for (size_t i = 0; i < c.weights.size(); ++i) {
    const Var w = c.weights[i];
    const AdamWOptions options = {.beta1 = config_.beta1,
                                  .beta2 = config_.beta2,
                                  .epsilon = config_.epsilon,
                                  .weight_decay = w.shape().rank() >= 2 ? config_.weight_decay : 0};
    const VarList updated = AdamWUpdate(w, StateLike("adamw.m.", w), StateLike("adamw.v.", w), c.gradients[i], rate,
                                        c.scales[i], step, options);
    updates.insert(updates.end(), updated.begin(), updated.end());
  }
  return {tape->Group(updates), c.norm};
}

Minimized Sgd::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "sgd", Scope::kNoNames);
  const Clipped c = ClippedGradients("Sgd", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  const SgdOptions options = {.momentum = config_.momentum, .weight_decay = config_.weight_decay};
  VarList updates;
  for (size_t i = 0; i < c.weights.size(); ++i) {
    const Var w = c.weights[i];
    const VarList updated = SgdUpdate(w, StateLike("sgd.m.", w), c.gradients[i], rate, c.scales[i], options);
    updates.insert(updates.end(), updated.begin(), updated.end());
  }
  return {loss.tape->Group(updates), c.norm};
}

}  // namespace weft
