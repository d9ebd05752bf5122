// These functions check the inputs of an update, and scale its gradient. All updates that are composed of other ops
// begin with them.
//
//   WEFT_ASSIGN_OR_RETURN(const ScaledGradient scaled, ScaleGradient("lion", in, 1, {{"beta1", options.beta1, 1}}));
//   const Var change = scaled.rate * Sign(scaled.gradient);
//   return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0))};
#ifndef WEFT_OPS_UPDATE_SCALED_GRADIENT_H_
#define WEFT_OPS_UPDATE_SCALED_GRADIENT_H_

#include <initializer_list>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/op.h"
#include "weft/core/tape.h"

namespace weft {

// Checks the types of w, `states` states of w, grad, rate and grad_scale, which `in` begins with, and of a step.
absl::Status CheckUpdateTypes(const char* op, TypeSpan in, size_t states);

struct ScaledGradient {
  Var gradient, rate;  // grad · grad_scale, and the rate, in w's dtype
  Var skip;            // bool []: true if grad_scale is not finite
};

// An option and its value, which must be at least 0 and below `limit`.
struct NamedOption {
  const char* name;
  double value, limit = std::numeric_limits<double>::infinity();
};

// Checks the inputs and options of an optimizer that is composed of other ops. `in` begins with w, `states` states of
// w, grad, rate and grad_scale.
absl::StatusOr<ScaledGradient> ScaleGradient(const char* op, VarSpan in, size_t states,
                                             std::initializer_list<NamedOption> options);

}  // namespace weft

#endif  // WEFT_OPS_UPDATE_SCALED_GRADIENT_H_
