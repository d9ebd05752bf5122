#include "weft/graph/run/check_gradients.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"

namespace weft {
namespace {

double Get(const Tensor& tensor, int64_t i) {
  return Dispatch(tensor.type.dtype, [&](auto zero) { return static_cast<double>(tensor.as<decltype(zero)>()[i]); });
}

void Set(const Tensor& tensor, int64_t i, double value) {
  Dispatch(tensor.type.dtype, [&](auto zero) { tensor.as<decltype(zero)>()[i] = static_cast<decltype(zero)>(value); });
}

}  // namespace

absl::StatusOr<int64_t> CompareWithDifferences(absl::FunctionRef<absl::StatusOr<double>()> loss, const Tensor& x,
                                               const Tensor& gradient, const GradientCheckOptions& options) {
  const int64_t elements = x.type.shape.elements(), most = std::max<int64_t>(1, options.max_elements);
  const int64_t range = std::max<int64_t>(1, (elements + most - 1) / most);
  int64_t compared = 0;
  const double step = x.type.dtype == kF64 ? options.f64_step : options.f32_step;
  for (int64_t begin = 0; begin < elements; begin += range) {
    const int64_t i = begin + RandomStream{}.Below(std::min(range, elements - begin), begin);
    const double at = Get(x, i);
    double points[2], sides[2];
    for (int side = 0; side < 2; ++side) {
      Set(x, i, side == 0 ? at - step : at + step);
      points[side] = Get(x, i);
      const absl::StatusOr<double> value = loss();
      Set(x, i, at);
      if (!value.ok()) return value.status();
      sides[side] = *value;
    }
    if (points[0] == points[1]) continue;
    ++compared;
    const double distance = points[1] - points[0], wanted = (sides[1] - sides[0]) / distance, is = Get(gradient, i);
    const double rounding = options.rounding * std::max(std::abs(sides[0]), std::abs(sides[1])) / distance;
    const double allowed = options.absolute + rounding + options.relative * std::abs(wanted);
    if (std::isfinite(wanted) && std::abs(is - wanted) <= allowed) continue;
    return absl::InternalError(
        absl::StrCat("the gradient at ", IndexText(x.type.shape, i), " is ", is, ", but differences give ", wanted));
  }
  return compared;
}

absl::Status CheckGradients(Var loss, Parameters* parameters, absl::Span<const FeedPair> feeds,
                            const std::optional<GradientCheckOptions>& options) {
  Tape* const tape = loss.tape;
  const VarList weights = tape->Weights();
  for (const Var& weight : weights) {
    if (weight.dtype() == kF32 || weight.dtype() == kF64) continue;
    return InvalidArgument("parameter '", tape->ParameterName(weight), "': ", ToString(weight.type()),
                           " has no differences, wanted f32 or f64");
  }
  const VarList gradients = tape->Gradient(loss, weights);
  WEFT_ASSIGN_OR_RETURN(const Graph value, Compile(*tape, {.fetch = {loss}}));
  WEFT_ASSIGN_OR_RETURN(const Graph derivatives, Compile(*tape, {.fetch = gradients}));
  Runner forward(value, parameters), backward(derivatives, parameters);
  WEFT_ASSIGN_OR_RETURN(const Outputs got, backward.Run(feeds));
  const auto run = [&]() -> absl::StatusOr<double> {
    WEFT_ASSIGN_OR_RETURN(const Outputs out, forward.Run(feeds));
    return out.Scalar(loss);
  };
  const GradientCheckOptions used = options.value_or(loss.dtype() == kF64 ? GradientCheckOptions() : kF32GradientCheck);
  int64_t compared = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = tape->ParameterName(weights[i]);
    const absl::StatusOr<Tensor> weight = parameters->Find(name);
    if (!weight.ok()) continue;
    WEFT_ASSIGN_OR_RETURN(const int64_t count, Annotate(CompareWithDifferences(run, *weight, got[gradients[i]], used),
                                                        absl::StrCat("parameter '", name, "'")));
    compared += count;
  }
  return compared > 0 ? absl::OkStatus() : InvalidArgument("no element was compared");
}

}  // namespace weft
