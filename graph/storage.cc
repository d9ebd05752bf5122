#include "weft/graph/storage.h"

#include <cstring>

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) { return Types{in[0]}; }

void Kernel(const KernelArgs& a, Rect tile) {
  const size_t row = SizeOf(a.outputs[0].type.dtype) * a.output_shape(0).cols();
  std::memcpy(a.outputs[0].data + tile.row_begin * row, a.inputs[0].data + tile.row_begin * row, tile.rows() * row);
}

}  // namespace

constexpr OpDef kCopyOp = {.name = "copy",
                           .infer = Infer,
                           .kernels = {Kernel, Kernel, Kernel, Kernel, Kernel},
                           .cut = Cut::kRows,
                           .gradient = [](const GradientArgs& a) { return VarList{a.grad(0)}; }};

ValueId StorageRoot(const Program& program, ValueId id) {
  for (;;) {
    const NodeId producer = program.value(id).producer;
    if (producer == kNoNode || !program.node(producer).op->view) return id;
    id = program.node(producer).inputs[0];
  }
}

}  // namespace weft
