#include "weft/ops/update/scaled_gradient.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/ops.h"

namespace weft {

absl::Status CheckUpdateTypes(const char* op, TypeSpan in, size_t states) {
  const TensorType scalar = {kF32, {}};
  for (size_t i = 1; i < states + 2; ++i) {
    if (in[i] != in[0]) return ShapeError(op, "w, its states and grad must have one type", in);
  }
  if (in[states + 2] != scalar || in[states + 3] != scalar) {
    return ShapeError(op, "rate and grad_scale must be f32[]", in);
  }
  const bool has_step = in.size() > states + 4;
  if (has_step && in[states + 4] != TensorType{kI32, {}}) return ShapeError(op, "step must be i32[]", in);
  return absl::OkStatus();
}

absl::StatusOr<ScaledGradient> ScaleGradient(const char* op, VarSpan in, size_t states,
                                             std::initializer_list<NamedOption> options) {
  Types types;
  for (Var v : in) types.push_back(v.type());
  WEFT_RETURN_IF_ERROR(CheckUpdateTypes(op, types, states));
  const Var w = in[0], grad = in[states + 1], rate = in[states + 2], grad_scale = in[states + 3];
  for (const auto& [name, value, limit] : options) {
    if (value >= 0 && value < limit) continue;
    const std::string wanted = std::isfinite(limit) ? absl::StrCat("in [0, ", limit, ")") : ">= 0, finite";
    return ShapeError(op, absl::StrCat(name, " = ", value, ", wanted ", wanted), types);
  }
  return ScaledGradient{.gradient = grad * Cast(grad_scale, w.dtype()),
                        .rate = Cast(rate, w.dtype()),
                        .skip = IsNan(grad_scale - grad_scale)};
}

}  // namespace weft
