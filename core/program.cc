#include "weft/core/program.h"

#include <algorithm>

namespace weft {
namespace {

absl::StatusOr<Types> InferSource(const Attrs& attrs, TypeSpan) { return Types{attrs.as<SourceAttrs>().type}; }
absl::StatusOr<Types> InferGroup(const Attrs&, TypeSpan) { return Types{TensorType{kBool, {}}}; }
// Input 0 is the loss. Output i is the gradient of the loss with respect to input i + 1, and has that input's type.
absl::StatusOr<Types> InferGradient(const Attrs&, TypeSpan in) { return Types(in.begin() + 1, in.end()); }

constexpr OpDef Source(const char* name) {
  return {.name = name, .infer = InferSource, .no_gradient = "it has no inputs", .attrs = AttrOpsOf<SourceAttrs>()};
}

}  // namespace

constexpr OpDef kInputOp = Source("input");
constexpr OpDef kParameterOp = Source("parameter");
constexpr OpDef kConstantOp = Source("constant");
constexpr OpDef kGroupOp = {.name = "group", .infer = InferGroup, .no_gradient = "it only orders"};
constexpr OpDef kGradientOp = {.name = "gradient",
                               .infer = InferGradient,
                               .outputs = 0,
                               .no_gradient = "it is expanded before it is differentiated",
                               .attrs = AttrOpsOf<GradientAttrs>()};

DType HeldDType(const ParameterSpec& spec, DType wanted, absl::string_view* reason) {
  constexpr int64_t kMinAxis = 64;  // smaller weights are not worth a format
  const auto because = [&](absl::string_view why, DType dtype) {
    if (reason != nullptr) *reason = why;
    return dtype;
  };
  const TensorType& type = spec.type;
  if (spec.kind > ParameterKind::kFrozen || type.dtype != kF32 || type.shape.rank() != 2) {
    return because("it is no matrix of weights", type.dtype);
  }
  if (std::min(type.shape.dim(0), type.shape.dim(1)) < kMinAxis) {
    return because("it has fewer than 64 rows or columns", type.dtype);
  }
  if (BytesOfElement(wanted) < BytesOfElement(spec.least)) {
    return because("the model needs it more precisely", spec.least);
  }
  if (DType other; type.shape.dim(1) % RowOf(wanted).block != 0 && ParseDType(RowOf(wanted).otherwise, &other)) {
    return because("its rows are no multiple of 256", other);
  }
  return wanted;
}

absl::InlinedVector<ValueId, 2> Node::outputs() const {
  absl::InlinedVector<ValueId, 2> ids(output_count);
  for (uint32_t i = 0; i < output_count; ++i) ids[i] = output(i);
  return ids;
}

Types Program::InputTypes(const Node& n) const {
  Types types;
  for (ValueId id : n.inputs) types.push_back(value(id).type);
  return types;
}

Types Program::OutputTypes(const Node& n) const {
  Types types;
  for (uint32_t i = 0; i < n.output_count; ++i) types.push_back(value(n.output(i)).type);
  return types;
}

NodeId Program::Append(const OpDef& op, const Attrs& attrs, absl::Span<const ValueId> inputs, TypeSpan outputs,
                       ScopeId scope) {
  const NodeId id{static_cast<uint32_t>(nodes.size())};
  nodes.push_back({.op = &op,
                   .attrs = attrs,
                   .inputs = {inputs.begin(), inputs.end()},
                   .first_output = ValueId{static_cast<uint32_t>(values.size())},
                   .output_count = static_cast<uint32_t>(outputs.size()),
                   .scope = scope});
  for (const TensorType& type : outputs) values.push_back({type, id});
  return id;
}

}  // namespace weft
