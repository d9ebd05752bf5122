// Adagrad, Lion and Adam, composed of other ops. The compiler fuses these, so that an update is one pass over memory.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct Scaled {
  Var gradient, rate;  // grad · grad_scale, in w's dtype
  Var skip;            // bool []: grad_scale is not finite
};

// An option whose value must be at least 0 and below `limit`.
struct NamedOption {
  const char* name;
  double value, limit = std::numeric_limits<double>::infinity();
};

absl::StatusOr<Scaled> ScaleGradient(const char* op, Var w, Var state, Var grad, Var rate, Var grad_scale,
                                     std::initializer_list<NamedOption> options) {
  const TensorType type = w.type(), scalar = {kF32, {}};
  if (state.type() != type || grad.type() != type) {
    return ShapeError(op, "w, its state and grad must have one type", {type, state.type(), grad.type()});
  }
  if (rate.type() != scalar || grad_scale.type() != scalar) {
    return ShapeError(op, "rate and grad_scale must be f32[]", {rate.type(), grad_scale.type()});
  }
  for (const auto& [name, value, limit] : options) {
    if (value >= 0 && value < limit) continue;
    const std::string wanted = std::isfinite(limit) ? absl::StrCat("in [0, ", limit, ")") : ">= 0, finite";
    return ShapeError(op, absl::StrCat(name, " = ", value, ", wanted ", wanted), {type});
  }
  return Scaled{.gradient = grad * Cast(grad_scale, type.dtype),
                .rate = Cast(rate, type.dtype),
                .skip = IsNan(grad_scale - grad_scale)};
}

}  // namespace

VarList AdagradUpdate(Var w, Var sum, Var grad, Var rate, Var grad_scale, Var step, const AdagradOptions& options) {
  return CompositeAll("adagrad", {w, sum, grad, rate, grad_scale, step}, 2, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const Scaled scaled, ScaleGradient("adagrad", w, sum, grad, rate, grad_scale,
                                                             {{"epsilon", options.epsilon},
                                                              {"weight_decay", options.weight_decay},
                                                              {"rate_decay", options.rate_decay}}));
    if (step.type() != TensorType{kI32, {}}) return ShapeError("adagrad", "step must be i32[]", {step.type()});
    const Var g = scaled.gradient + Scale(w, options.weight_decay);
    const Var next_sum = sum + MaskFill(Square(g), scaled.skip, 0);
    const Var done = Cast(step - 1, w.dtype());
    const Var change = scaled.rate / (1 + Scale(done, options.rate_decay)) * g / (Sqrt(next_sum) + options.epsilon);
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)), Assign(sum, next_sum)};
  });
}

VarList LionUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const LionOptions& options) {
  return CompositeAll("lion", {w, m, grad, rate, grad_scale}, 2, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const Scaled scaled, ScaleGradient("lion", w, m, grad, rate, grad_scale,
                                                             {{"beta1", options.beta1, 1},
                                                              {"beta2", options.beta2, 1},
                                                              {"weight_decay", options.weight_decay}}));
    const Var gradient = scaled.gradient;
    const Var ahead = m + Scale(gradient - m, 1 - options.beta1);
    const Var next_m = m + MaskFill(Scale(gradient - m, 1 - options.beta2), scaled.skip, 0);
    const Var change = scaled.rate * (Sign(ahead) + Scale(w, options.weight_decay));
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)), Assign(m, next_m)};
  });
}

// Adam is AdamW without decay, applied to the gradient plus decay·w.
VarList AdamUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options) {
  return CompositeAll("adam", {w, m, v, grad, rate, grad_scale, step}, 3, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const Scaled scaled, ScaleGradient("adam", w, m, grad, rate, grad_scale,
                                                             {{"weight_decay", options.weight_decay}}));
    AdamWOptions plain = options;
    plain.weight_decay = 0;
    const Var one = MaskFill(FillLike(grad_scale, 1), scaled.skip, std::numeric_limits<double>::quiet_NaN());
    return AdamWUpdate(w, m, v, scaled.gradient + Scale(w, options.weight_decay), rate, one, step, plain);
  });
}

}  // namespace weft
