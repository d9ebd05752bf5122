#include "weft/formats/onnx/onnx_node.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"

namespace weft {
namespace {

// Attributes that say how results are computed, or what follows from the inputs. TopK always sorts. BatchNormalization
// has a momentum for training.
constexpr absl::string_view kWithoutEffect[] = {"hidden_size",       "momentum", "round_mode", "saturate",     "seed",
                                                "softmax_precision", "sorted",   "stash_type", "storage_order"};

using Table = std::map<std::pair<absl::string_view, absl::string_view>, const OnnxOp*>;

const Table& AllOps() {
  static const Table* const all = [] {
    auto* const table = new Table;
    for (const auto& ops : {OnnxAttention(), OnnxConvolutions(), OnnxElementwise(), OnnxNetworks(), OnnxRecurrent(),
                            OnnxReductions(), OnnxShapes()}) {
      for (const OnnxOp& op : ops) WEFT_CHECK(table->emplace(std::pair(op.domain, op.name), &op).second);
    }
    return table;
  }();
  return *all;
}

}  // namespace

const OnnxOp* FindOnnxOp(absl::string_view domain, absl::string_view name) {
  const auto found = AllOps().find({domain == "ai.onnx" ? "" : domain, name});
  return found == AllOps().end() ? nullptr : found->second;
}

std::vector<std::string> OnnxOpNames() {
  std::vector<std::string> names = {"Constant", "If"};  // OnnxRecorder has them
  for (const auto& [key, op] : AllOps()) names.emplace_back(op->name);
  absl::c_sort(names);
  return names;
}

absl::Status CheckOnnxSteps(int64_t steps) {
  if (steps <= kMaxOnnxSteps) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("it would become ", steps, " nodes; the limit is ", kMaxOnnxSteps));
}

Var InFloats(Var x) { return IsFloat(x.dtype()) ? x : Cast(x, kF64); }

Var WrapTo(Var x, int type) {
  const bool byte = type == onnx::Tensor::INT8 || type == onnx::Tensor::UINT8;
  const bool is_signed = type == onnx::Tensor::INT8 || type == onnx::Tensor::INT16;
  const bool narrow = byte || type == onnx::Tensor::INT16 || type == onnx::Tensor::UINT16;
  if (!narrow || x.dtype() != kI32) return x;
  const double period = byte ? 256 : 65536, low = is_signed ? -period / 2 : 0;
  const Var shifted = x - low, rest = shifted - period * (shifted / period);  // the quotient is truncated
  return Where(Less(rest, Number(rest, 0)), rest + period, rest) + low;
}

OnnxNode::OnnxNode(const onnx::Node& node, const OnnxOp& op, Tape* tape, std::vector<OnnxValue> inputs)
    : node_(node),
      op_(op),
      tape_(tape),
      inputs_(std::move(inputs)),
      found_(static_cast<size_t>(node.attribute_size())) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (!node.output(i).empty()) output_count_ = static_cast<size_t>(i) + 1;
  }
}

Var OnnxNode::in(size_t i) const {
  if (!has(i)) return tape_->Fail(InvalidArgument("it has no input ", i));
  OnnxValue& value = inputs_[i];
  if (value.var) return value.var;
  if (!value.weight.empty()) {
    const TensorType type = value.known->tensor.type;
    return value.var = tape_->HasParameter(value.weight) ? tape_->FindParameter(value.weight)
                       : value.is_frozen ? tape_->State(value.weight, type, Zeros(), ParameterKind::kFrozen)
                                         : tape_->Parameter(value.weight, type, Zeros());
  }
  if (!value.known->wide.empty() && op_.integers != OnnxIntegers::kMoves) {
    return tape_->Fail(InvalidArgument("an integer of input ", i, " does not fit 32 bits"));
  }
  return value.var = tape_->Constant(value.known->tensor);
}

absl::StatusOr<std::vector<int64_t>> OnnxNode::Integers(size_t i) const {
  if (!has(i)) return InvalidArgument("it has no input ", i);
  if (!inputs_[i].known) {
    const std::string name = i < static_cast<size_t>(node_.input_size()) ? node_.input(static_cast<int>(i)) : "";
    return absl::FailedPreconditionError(absl::StrCat("the numbers of its input '", name,
                                                      "' must be known while the model is recorded, but depend on "
                                                      "inputs of the model"));
  }
  const OnnxConstant& known = *inputs_[i].known;
  if (!known.wide.empty()) return known.wide;
  std::vector<int64_t> numbers(static_cast<size_t>(known.tensor.type.shape.elements()));
  Dispatch(known.tensor.type.dtype, [&](auto zero) {
    const auto* const elements = known.tensor.as<const decltype(zero)>();
    for (size_t k = 0; k < numbers.size(); ++k) {
      // A float beyond 2^62 is at that bound, and NaN is 0.
      const double number = static_cast<double>(elements[k]);
      numbers[k] = number == number ? static_cast<int64_t>(std::clamp(number, -0x1p62, 0x1p62)) : 0;
    }
  });
  return numbers;
}

absl::StatusOr<double> OnnxNode::Number(size_t i) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> integers, Integers(i));
  if (integers.size() != 1) return InvalidArgument("input ", i, " has ", integers.size(), " elements, not 1");
  const OnnxConstant& known = *inputs_[i].known;
  if (!known.wide.empty()) return static_cast<double>(known.wide[0]);
  return Dispatch(known.tensor.type.dtype,
                  [&](auto zero) { return static_cast<double>(*known.tensor.as<const decltype(zero)>()); });
}

absl::StatusOr<int> OnnxNode::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) return InvalidArgument("its axis ", axis, " is not one of ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

const onnx::Attribute* OnnxNode::Find(absl::string_view name) const {
  const auto found =
      absl::c_find_if(node_.attribute(), [&](const onnx::Attribute& each) { return each.name() == name; });
  if (found == node_.attribute().end()) return nullptr;
  found_[static_cast<size_t>(found - node_.attribute().begin())] = true;
  return &*found;
}
absl::Status OnnxNode::CheckAttributes() const {
  for (size_t i = 0; i < found_.size(); ++i) {
    const std::string& name = node_.attribute(static_cast<int>(i)).name();
    if (found_[i] || absl::c_linear_search(kWithoutEffect, name)) continue;
    return absl::UnimplementedError(absl::StrCat("its attribute '", name, "' is not read"));
  }
  return absl::OkStatus();
}
const onnx::Attribute* OnnxNode::Find(absl::string_view name, onnx::Attribute::Type type) const {
  const onnx::Attribute* const found = Find(name);
  if (found == nullptr || found->type() == type) return found;
  tape_->Fail(InvalidArgument("its attribute '", name, "' has type ", found->type(), " in place of ", type));
  return nullptr;
}
int64_t OnnxNode::Int(absl::string_view name, int64_t otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::INT);
  return found == nullptr ? otherwise : found->i();
}
double OnnxNode::Float(absl::string_view name, double otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::FLOAT);
  return found == nullptr ? otherwise : static_cast<double>(found->f());
}
std::vector<int64_t> OnnxNode::Ints(absl::string_view name, std::vector<int64_t> otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::INTS);
  return found == nullptr ? std::move(otherwise) : std::vector<int64_t>(found->ints().begin(), found->ints().end());
}
std::string OnnxNode::String(absl::string_view name, const std::string& otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::STRING);
  return found == nullptr ? otherwise : found->s();
}

}  // namespace weft
