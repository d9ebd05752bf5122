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

// The number of this step, from 1 on, i32 [], and the update that counts it.
struct Counted {
  Var step, update;
};
Counted CountSteps(const char* name, const Clipped& c, bool clips) {
  // Counted in f32, where it is exact for 2^24 steps.
  const Var count = c.norm.tape->State(name, {kF32, {}}, Zeros());
  // Not where clipping finds the gradients not finite; without it the weights whose gradients are finite go on. In both
  // cases after all gradients, because a run can be cancelled until the first write.
  const Var known = clips ? c.scale : c.norm - c.norm;  // NaN if it is not
  const Var finite = Cast(Equal(known, known), kF32);
  return {Cast(count + 1.0, kI32), Assign(count, count + finite)};
}

// What all have in common: `update` gives the next versions of weight i and its states.
template <class Update>
Minimized MinimizeEach(const Clipped& c, VarList updates, Update update) {
  for (size_t i = 0; i < c.weights.size(); ++i) {
    const VarList updated = update(c.weights[i], c.gradients[i], c.scales[i]);
    updates.insert(updates.end(), updated.begin(), updated.end());
  }
  return {c.norm.tape->Group(updates), c.norm};
}

// Biases and gains are not decayed.
double DecayOf(Var weight, double decay) { return weight.shape().rank() >= 2 ? decay : 0; }

}  // namespace

Minimized AdamW::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "adamw", Scope::kNoNames);
  const Clipped c = ClippedGradients("AdamW", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  const Counted count = CountSteps("adamw.step", c, config_.clip > 0);
  return MinimizeEach(c, {count.update}, [&](Var w, Var gradient, Var scale) {
    const AdamWOptions options = {config_.beta1, config_.beta2, config_.epsilon, DecayOf(w, config_.weight_decay)};
    return AdamWUpdate(w, StateLike("adamw.m.", w), StateLike("adamw.v.", w), gradient, rate, scale, count.step,
                       options);
  });
}

Minimized Adam::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "adam", Scope::kNoNames);
  const Clipped c = ClippedGradients("Adam", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  const Counted count = CountSteps("adam.step", c, config_.clip > 0);
  const AdamWOptions options = {config_.beta1, config_.beta2, config_.epsilon, config_.weight_decay};
  return MinimizeEach(c, {count.update}, [&](Var w, Var gradient, Var scale) {
    return AdamUpdate(w, StateLike("adam.m.", w), StateLike("adam.v.", w), gradient, rate, scale, count.step, options);
  });
}

Minimized Sgd::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "sgd", Scope::kNoNames);
  const Clipped c = ClippedGradients("Sgd", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  const SgdOptions options = {config_.momentum, config_.weight_decay, config_.nesterov};
  return MinimizeEach(c, {}, [&](Var w, Var gradient, Var scale) {
    return SgdUpdate(w, StateLike("sgd.m.", w), gradient, rate, scale, options);
  });
}

Minimized Adagrad::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "adagrad", Scope::kNoNames);
  const Clipped c = ClippedGradients("Adagrad", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  const Counted count = CountSteps("adagrad.step", c, config_.clip > 0);
  const AdagradOptions options = {config_.epsilon, config_.weight_decay, config_.rate_decay};
  return MinimizeEach(c, {count.update}, [&](Var w, Var gradient, Var scale) {
    return AdagradUpdate(w, StateLike("adagrad.sum.", w), gradient, rate, scale, count.step, options);
  });
}

Minimized Lion::Minimize(Var loss, Var rate) const {
  const Scope scope(loss.tape, "lion", Scope::kNoNames);
  const Clipped c = ClippedGradients("Lion", loss, config_.clip);
  if (c.weights.empty()) return {loss, loss};
  return MinimizeEach(c, {}, [&](Var w, Var gradient, Var scale) {
    const LionOptions options = {config_.beta1, config_.beta2, DecayOf(w, config_.weight_decay)};
    return LionUpdate(w, StateLike("lion.m.", w), gradient, rate, scale, options);
  });
}

}  // namespace weft
