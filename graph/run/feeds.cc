// Implements two classes of runner.h. A Feed checks the type of a value that a caller feeds to a runner. Outputs gives
// the values that the runner returns.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/graph/run/runner.h"

namespace weft {

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
  WEFT_CHECK(var.tape != nullptr && "an empty Var was not fetched");
  WEFT_CHECK(var.tape->id() == tape_id_ && "this Var belongs to another tape than the graph");
  const auto it = absl::c_find_if(tensors_, [&](const auto& t) { return t.first == var.id; });
  if (it == tensors_.end()) {
    const Program& program = var.tape->program();
    const Node& node = program.producer(var.id);
    const std::string& scope = program.scope(node);
    const std::string of = scope.empty() ? "" : absl::StrCat(" of '", scope, "'");
    CheckFailed(__FILE__, __LINE__,
                absl::StrCat("this Var was not fetched: ", node.op->name, of, ", ", ToString(var.type()),
                             "; add it to CompileOptions::fetch")
                    .c_str());
  }
  return it->second;
}

double Outputs::Scalar(Var var) const {
  const Tensor tensor = (*this)[var];
  WEFT_CHECK(tensor.type.shape.elements() > 0);
  return Dispatch(tensor.type.dtype, [&](auto zero) { return static_cast<double>(tensor.as<decltype(zero)>()[0]); });
}

}  // namespace weft
