// Implements the defaults of OpDef's optional fields, the choice of a kernel by dtype, and the printing of attributes.
#include "weft/core/op.h"

#include "absl/strings/str_cat.h"

namespace weft {

absl::Status ShapeError(absl::string_view op, absl::string_view message, TypeSpan inputs) {
  return absl::InvalidArgumentError(absl::StrCat(op, ": ", message, "; inputs ", ToString(inputs)));
}

const Shape& DomainShape(const OpDef& op, const OpArgs& args) {
  return op.domain < 0 ? args.outputs[0].shape : args.inputs[op.domain].shape;
}

Rect DefaultAccess(const OpArgs& args, const Shape& domain, int operand, Rect tile) {
  const int inputs = static_cast<int>(args.inputs.size());
  const Shape& shape = operand < inputs ? args.inputs[operand].shape : args.outputs[operand - inputs].shape;
  Rect rect = WholeRect(shape);
  if (shape.rows() != domain.rows()) return rect;
  rect.row_begin = tile.row_begin;
  rect.row_end = tile.row_end;
  if (shape.cols() != domain.cols()) return rect;
  return tile;
}

Rect Access(const OpDef& op, const OpArgs& args, int operand, Rect tile) {
  return op.access != nullptr ? op.access(args, operand, tile)
                              : DefaultAccess(args, DomainShape(op, args), operand, tile);
}

KernelFunction KernelFor(const OpDef& op, TypeSpan inputs, TypeSpan outputs) {
  const DType dtype = inputs.empty() ? outputs[0].dtype : inputs[0].dtype;
  return op.kernels[static_cast<int>(dtype)];
}

bool IsCall(const OpDef& op, TypeSpan inputs, TypeSpan outputs) {
  return !op.view && (op.messages != nullptr || KernelFor(op, inputs, outputs) != nullptr);
}

Cost CostOf(const OpDef& op, const OpArgs& args) {
  return op.cost != nullptr ? op.cost(args) : FlopsPerElement<1>(args);
}

double OperandBytes(const OpArgs& args) {
  size_t bytes = 0;
  for (TypeSpan types : {TypeSpan(args.inputs), TypeSpan(args.outputs)}) {
    for (const TensorType& type : types) bytes += type.bytes();
  }
  return static_cast<double>(bytes);
}

std::string PrintAttrs(const OpDef& op, const Attrs& attrs) {
  return op.attrs.print == nullptr ? "" : op.attrs.print(attrs);
}

std::string PrintAttr(bool value) { return value ? "true" : "false"; }
std::string PrintAttr(double value) { return absl::StrCat(value); }
std::string PrintAttr(const Shape& value) { return ToString(value); }
std::string PrintAttr(DType value) { return std::string(Name(value)); }

}  // namespace weft
