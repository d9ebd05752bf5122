// y[v, :] = x[v, :] + Σ dy[i, :] over all i with ids[i] = v, in order. x is [V, C], dy [..., C] and ids i32 [...].
//
// An id outside 0 .. V-1 adds nothing. The op works in place. If a table has another gradient too, the rows of an
// embedding are added to that gradient, without a second array [V, C].
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/embedding.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[2].dtype != kI32) return ShapeError("embedding_gradient_add", "ids must be i32", in);
  if (in[0].shape.rank() != 2) return ShapeError("embedding_gradient_add", "x must have rank 2", in);
  TensorType rows = {in[0].dtype, in[2].shape};
  rows.shape.Append(in[0].shape.dim(1));
  if (in[1] != rows) {
    return ShapeError("embedding_gradient_add", "dy must have ids' shape, and x's columns as one axis more", in);
  }
  return Types{in[0]};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 1 || operand == 2 ? WholeRect(args.inputs[operand].shape) : tile;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).dim(1), count = a.input_shape(2).elements();
  const int32_t* const ids = a.input<int32_t>(2);
  T* const y = a.output<T>(0);
  if (y != a.input<T>(0)) std::copy_n(a.input<T>(0) + tile.row_begin * n, tile.rows() * n, y + tile.row_begin * n);
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < tile.row_begin || ids[i] >= tile.row_end) continue;
    Rows<T>().add_to(a.input<T>(1) + i * n, y + ids[i] * n, n);
  }
}

VarList Elementary(const Attrs&, VarSpan in) {
  const Attrs attrs = Attrs::Of(EmbeddingGradientAttrs{.rows = in[0].dim(0)});
  return {in[0] + Record(kEmbeddingGradient, {in[1], in[2]}, attrs)};
}

// Counts the cost of an update in place: dy is read, and rows of x are read and written.
Cost CostOf(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[1].shape.elements()), .bytes = 3.0 * args.inputs[1].bytes()};
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1] [1,1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[5,3] [3] i32[]", .below = 5, .out = "[5,3]"},
    {.in = "[5,3] [7,3] i32[7]", .below = 5},  // several ids name one row
    {.in = "[257,17] [10,13,17] i32[10,13]", .below = 257, .out = "[257,17]"},
    {.in = "[5,3] [37,3] i32[37]", .below = 9},  // some ids outside the table
    {.in = "[5,3] [0,3] i32[0]"},
    {.in = "[5,3] [7,3] [7]", .error = "ids must be i32"},
    {.in = "[5,1,3] [7,3] i32[7]", .error = "x must have rank 2"},
    {.in = "[5,3] [7,4] i32[7]", .error = "dy must have ids' shape, and x's columns"},
    {.in = "[5,3] [6,3] i32[7]", .error = "dy must have ids' shape, and x's columns"},
};

}  // namespace

constexpr OpDef kEmbeddingGradientAdd = {.name = "embedding_gradient_add",
                                         .infer = Infer,
                                         .kernels = {Kernel<float>, Kernel<double>},
                                         .cut = Cut::kRows,
                                         .access = Access,
                                         .in_place = 0,
                                         .elementary = Elementary,
                                         .cost = CostOf,
                                         .examples = kExamples};

}  // namespace weft
