// Adds up the gradient of an embedding for some rows of the table only. x are these rows [R, C] of another gradient of
// the table, rows are their numbers i32 [R], dy is [..., C], and ids are i32 [...]:
//   y[r, :] = x[r, :] + Σ dy[i, :] over all i with ids[i] = rows[r]
//
// The additions have the order of embedding_gradient_add (ops/index/embedding.cc), so y has the bits of these rows of
// its result. Several r may name one row, and all get its sum.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const Shape &x = in[0].shape, &ids = in[3].shape;
  if (in[1].dtype != kI32 || in[3].dtype != kI32) {
    return ShapeError("embedding_gradient_at", "rows and ids must be i32", in);
  }
  if (x.rank() != 2 || in[1].shape != Shape({x.dim(0)})) {
    return ShapeError("embedding_gradient_at", "wanted x [R,C] and rows [R]", in);
  }
  Shape wanted = ids;
  wanted.Append(x.dim(1));
  if (in[2] != TensorType{in[0].dtype, wanted}) {
    return ShapeError("embedding_gradient_at", "dy must have ids' shape, and x's columns as one axis more", in);
  }
  return Types{in[0]};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 || operand == 4 ? tile : WholeRect(args.inputs[operand].shape);
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).dim(1), count = a.input_shape(3).elements();
  const int32_t *const rows = a.input<int32_t>(1), *const ids = a.input<int32_t>(3);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const T* const x = a.input<T>(0) + r * n;
    T* const y = a.output<T>(0) + r * n;
    if (x != y) std::copy_n(x, n, y);
    for (int64_t i = 0; i < count; ++i) {
      if (ids[i] == rows[r]) Rows<T>().add_to(a.input<T>(2) + i * n, y, n);
    }
  }
}

void Reference(const ReferenceArgs& a) {
  const size_t n = static_cast<size_t>(a.input_types[0].shape.dim(1));
  a.outputs[0] = a.inputs[0];
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    for (size_t i = 0; i < a.inputs[3].size(); ++i) {
      if (a.inputs[3][i] == a.inputs[1][e / n]) a.outputs[0][e] += a.inputs[2][i * n + e % n];
    }
  }
}

// Each row of x is compared with all ids, eight at a time.
Cost CostOf(const OpArgs& args) {
  const double comparisons = static_cast<double>(args.inputs[1].shape.elements() * args.inputs[3].shape.elements());
  return {.flops = static_cast<double>(args.inputs[2].shape.elements()) + comparisons / 8,
          .bytes = 2.0 * static_cast<double>(args.inputs[0].bytes()) + static_cast<double>(args.inputs[2].bytes())};
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1] i32[1] [1,1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[9,3] i32[9] [7,3] i32[7]", .below = 5},  // some rows are named several times, by rows and by ids
    {.in = "[37,17] i32[37] [10,13,17] i32[10,13]", .below = 99, .out = "[37,17]"},
    {.in = "[4,3] i32[4] [3] i32[]", .below = 3},
    {.in = "[0,3] i32[0] [2,3] i32[2]"},
    {.in = "[5,3] i32[5] [0,3] i32[0]"},
    {.in = "[5,3] [5] [7,3] i32[7]", .error = "rows and ids must be i32"},
    {.in = "[5,3] i32[4] [7,3] i32[7]", .error = "wanted x [R,C] and rows [R]"},
    {.in = "[5,3] i32[5] [7,4] i32[7]", .error = "dy must have ids' shape"},
};

}  // namespace

constexpr OpDef kEmbeddingGradientAt = {.name = "embedding_gradient_at",
                                        .infer = Infer,
                                        .kernels = {Kernel<float>, Kernel<double>},
                                        .cut = Cut::kRows,
                                        .access = Access,
                                        .in_place = 0,
                                        .no_gradient = "it is recorded after gradients",
                                        .reference = Reference,
                                        .cost = CostOf,
                                        .examples = kExamples};

Var EmbeddingGradientAt(Var x, Var rows, Var dy, Var ids) { return Record(kEmbeddingGradientAt, {x, rows, dy, ids}); }

}  // namespace weft
