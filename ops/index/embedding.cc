// y[..., :] = table[ids[...], :] for table [V, C] and ids i32 [...], and 0 where an id is outside 0 .. V-1.
#include "weft/ops/index/embedding.h"

#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/index_bounds.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() != 2) return ShapeError("embedding", "the table must have rank 2", in);
  if (in[1].dtype != kI32) return ShapeError("embedding", "ids must be i32", in);
  if (in[0].shape.dim(0) == 0 && in[1].shape.elements() > 0) {
    return ShapeError("embedding", "the table has no rows", in);
  }
  TensorType out = {in[0].dtype, in[1].shape};
  out.shape.Append(in[0].shape.dim(1));
  return Types{out};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand < 2 ? WholeRect(args.inputs[operand].shape) : tile;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t rows = a.input_shape(0).dim(0), n = a.input_shape(0).dim(1);
  const T* const table = a.input<T>(0);
  const int32_t* const ids = a.input<int32_t>(1);
  T* const y = a.output<T>(0);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const bool known = ids[r] >= 0 && ids[r] < rows;
    if (n == 1) {  // a call for each single element would cost more than the copy
      y[r] = known ? table[ids[r]] : T{0};
    } else if (known) {
      std::copy_n(table + ids[r] * n, n, y + r * n);
    } else {
      std::fill_n(y + r * n, n, T{0});
    }
  }
}

// dtable[v] = Σ dy[i] over all i with ids[i] = v. An id outside the table adds nothing.
VarList Gradient(const GradientArgs& a) {
  const Attrs attrs = Attrs::Of(EmbeddingGradientAttrs{.rows = a.input(0).dim(0)});
  return {Record(kEmbeddingGradient, {a.grad(0), a.input(1)}, attrs), Var()};
}

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.input_types[0].shape.dim(1);
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const int64_t id = static_cast<int64_t>(a.inputs[1][e / n]);
    if (id >= 0 && id < a.input_types[0].shape.dim(0)) a.outputs[0][e] = a.inputs[0][id * n + e % n];
  }
}

// Calls Embedding, which checks bounds; the other examples record the op alone.
VarList Example(VarSpan in) { return {Embedding(in[0], in[1])}; }

constexpr OpExample kExamples[] = {
    {.in = "[1,1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[5,3] i32[]", .below = 5, .out = "[3]"},
    {.in = "[5,3] i32[7]", .below = 5, .out = "[7,3]"},
    {.in = "[257,17] i32[10,13]", .below = 257, .out = "[10,13,17]"},
    {.in = "[3,4] i32[3]", .below = 3},   // as many ids as rows
    {.in = "[5,3] i32[37]", .below = 9},  // some ids outside the table
    {.in = "[5,1] i32[37]", .below = 9},
    {.in = "[5,3] i32[7]", .record = Example, .below = 5},
    {.in = "[5,3] i32[0]", .out = "[0,3]"},
    {.in = "[5] i32[7]", .error = "the table must have rank 2"},
    {.in = "[0,3] i32[2,0]", .record = Example, .out = "[2,0,3]"},
    {.in = "[0,3] i32[7]", .error = "the table has no rows"},
    {.in = "[5,3] [7]", .error = "ids must be i32"},
    {.in = "[5,3] i32[7]", .record = Example, .below = 6, .error = "below = 6, wanted below <= 5"},
};

}  // namespace

constexpr OpDef kEmbedding = {.name = "embedding",
                              .infer = Infer,
                              .kernels = {Kernel<float>, Kernel<double>},
                              .cut = Cut::kRows,
                              .access = Access,
                              .gradient = Gradient,
                              .reference = Reference,
                              .examples = kExamples};

Var Embedding(Var table, Var ids) {
  const Var y = Record(kEmbedding, {table, ids});
  RequireBounds("embedding", ids, table.dim(0), "rows of the table", /*ignored=*/-1);
  return y;
}

}  // namespace weft
