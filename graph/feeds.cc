// Checks the values that a caller feeds to a runner, and reads the values that the runner returns.
#include "weft/graph/feeds.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/graph/runner.h"

namespace weft {
namespace {

// Returns the position of element `i`, like "[2,5]".
std::string Position(const Shape& shape, int64_t i) {
  Shape position = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    position.set_dim(axis, i % shape.dim(axis));
    i /= shape.dim(axis);
  }
  return ToString(position);
}

}  // namespace

absl::Status CheckBounds(const InputSpec& spec, const Tensor& tensor) {
  if (spec.bounds.below == 0 || spec.type.dtype != kI32) return absl::OkStatus();
  const absl::Span<const int32_t> values = tensor.span<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i];
    if ((value >= 0 && value < spec.bounds.below) || value == spec.bounds.ignored) continue;
    return absl::OutOfRangeError(absl::StrCat("input '", spec.name, "' ", ToString(spec.type), ": ", value, " at ",
                                              Position(spec.type.shape, static_cast<int64_t>(i)), " is not below ",
                                              spec.bounds.below, " and at least 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Feed::As(const TensorType& wanted) const {
  Tensor tensor = tensor_;
  if (is_scalar_) tensor.data = reinterpret_cast<std::byte*>(const_cast<float*>(&scalar_));
  const bool fits =
      tensor.type.dtype == wanted.dtype &&
      (typed_ ? tensor.type.shape == wanted.shape : tensor.type.shape.elements() == wanted.shape.elements());
  if (!fits) return InvalidArgument("fed ", ToString(tensor.type), ", wanted ", ToString(wanted));
  tensor.type = wanted;
  return tensor;
}

Tensor Outputs::operator[](Var var) const {
  const auto it = absl::c_find_if(tensors_, [&](const auto& t) { return t.first == var.id; });
  WEFT_CHECK(var.tape != nullptr && var.tape->id() == tape_id_ && it != tensors_.end() && "this Var was not fetched");
  return it->second;
}

double Outputs::Scalar(Var var) const {
  const Tensor tensor = (*this)[var];
  WEFT_CHECK(tensor.type.shape.elements() > 0);
  return Dispatch(tensor.type.dtype, [&](auto zero) { return static_cast<double>(tensor.as<decltype(zero)>()[0]); });
}

}  // namespace weft
