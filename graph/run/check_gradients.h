// CheckGradients compares the gradients of autograd with central differences of the loss:
//
//   const Var loss = Mean(Square(layer(x) - y));  // in f64
//   WEFT_RETURN_IF_ERROR(CheckGradients(loss, &parameters, {{x, xs}, {y, ys}}));
//
// Record the loss in f64 where possible. The rounding of an f32 loss hides errors of small gradients.
#ifndef WEFT_GRAPH_RUN_CHECK_GRADIENTS_H_
#define WEFT_GRAPH_RUN_CHECK_GRADIENTS_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/run/runner.h"

namespace weft {

struct GradientCheckOptions {
  double f64_step = 1e-6, f32_step = 1e-3;  // by which an element is moved down and up, by the dtype of the parameter
  // `rounding`: relative error of the loss. With the distance d between the two values of the element, a gradient may
  // differ from the quotient of differences q by `absolute` + `relative` · |q| + `rounding` · |loss| / d. The defaults
  // are for a loss in f64.
  double relative = 1e-5, absolute = 1e-6, rounding = 2e-15;
  // Maximum number of elements that are compared, at least 1. A larger parameter is cut into equal ranges, and a random
  // element of each is compared.
  int64_t max_elements = 48;
};
// For a loss in f32. A smaller step would drown in its rounding, whatever the dtype of the parameter.
inline constexpr GradientCheckOptions kF32GradientCheck = {
    .f64_step = 1e-3, .relative = 1e-2, .absolute = 1e-4, .rounding = 1e-6};

// Checks the gradients of `loss` by all weights of its tape. `feeds`: the inputs of the loss. Records one node on the
// tape. A weight that the loss does not need is skipped. If `options` is not set, the loss's dtype chooses them. The
// weights keep their values. Returns the errors of Compile and Runner::Run, InvalidArgument for a weight that is
// neither f32 nor f64 and if no element was compared, and Internal for the first gradient that differs, such as
// "parameter 'w': the gradient at [1,2] is 0.5, but differences give 0.25".
absl::Status CheckGradients(Var loss, Parameters* parameters, absl::Span<const FeedPair> feeds = {},
                            const std::optional<GradientCheckOptions>& options = std::nullopt);

// Compares elements of `gradient` with differences of `loss`, a function of the elements of `x`, which is changed and
// restored. Skips elements of `x` so large that the step rounds to 0. Returns the number of elements compared.
absl::StatusOr<int64_t> CompareWithDifferences(absl::FunctionRef<absl::StatusOr<double>()> loss, const Tensor& x,
                                               const Tensor& gradient, const GradientCheckOptions& options);

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_CHECK_GRADIENTS_H_
