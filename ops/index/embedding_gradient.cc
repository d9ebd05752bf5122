// dtable[v, :] = Σ dy[i, :] over all i with ids[i] = v, for dy [..., C], ids i32 [...] and dtable [V, C].
//
// An id outside 0 .. V-1 adds nothing. Each tile of rows of dtable scans all ids in order, which fixes the order of
// sums.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/embedding.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  if (in[1].dtype != kI32) return ShapeError("embedding_gradient", "ids must be i32", in);
  Shape shape = in[1].shape;
  shape.Append(in[0].shape.dim(-1));
  if (in[0].shape != shape) {
    return ShapeError("embedding_gradient", "dy must have ids' shape and one axis more", in);
  }
  return Types{{in[0].dtype, {attrs.as<EmbeddingGradientAttrs>().rows, in[0].shape.dim(-1)}}};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand < 2 ? WholeRect(args.inputs[operand].shape) : tile;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).dim(1), count = a.input_shape(1).elements();
  const int32_t* const ids = a.input<int32_t>(1);
  T* const dtable = a.output<T>(0);
  std::fill_n(dtable + tile.row_begin * n, tile.rows() * n, T{0});
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < tile.row_begin || ids[i] >= tile.row_end) continue;
    Rows<T>().add_to(a.input<T>(0) + i * n, dtable + ids[i] * n, n);
  }
}

// The gradient by dy is embedding(gradient of dtable, ids).
VarList Gradient(const GradientArgs& a) { return {Record(kEmbedding, {a.grad(0), a.input(1)}), Var()}; }

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.output_types[0].shape.dim(1);
  for (size_t e = 0; e < a.inputs[0].size(); ++e) {
    const int64_t id = static_cast<int64_t>(a.inputs[1][e / n]);
    if (id >= 0 && id < a.output_types[0].shape.dim(0)) a.outputs[0][id * n + e % n] += a.inputs[0][e];
  }
}

Cost CostOf(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[0].shape.elements()),
          .bytes = static_cast<double>(args.inputs[0].bytes() + args.outputs[0].bytes())};
}

template <int64_t rows>
VarList Example(VarSpan in) {
  return {Record(kEmbeddingGradient, {in[0], in[1]}, Attrs::Of(EmbeddingGradientAttrs{.rows = rows}))};
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1] i32[1]", .record = Example<1>, .below = 1, .out = "[1,1]"},
    {.in = "[3] i32[]", .record = Example<5>, .below = 5, .out = "[5,3]"},
    {.in = "[7,3] i32[7]", .record = Example<5>, .below = 5, .out = "[5,3]"},
    {.in = "[10,13,17] i32[10,13]", .record = Example<257>, .below = 257, .out = "[257,17]"},
    {.in = "[3,4] i32[3]", .record = Example<3>, .below = 3},    // as many ids as rows
    {.in = "[37,3] i32[37]", .record = Example<5>, .below = 9},  // some ids outside the table
    {.in = "[0,3] i32[0]", .record = Example<5>, .out = "[5,3]"},
    {.in = "[7,3] [7]", .record = Example<5>, .error = "ids must be i32"},
    {.in = "[6,3] i32[7]", .record = Example<5>, .error = "dy must have ids' shape"},
};

}  // namespace

constexpr OpDef kEmbeddingGradient = {.name = "embedding_gradient",
                                      .infer = Infer,
                                      .kernels = {Kernel<float>, Kernel<double>},
                                      .cut = Cut::kRows,
                                      .access = Access,
                                      .gradient = Gradient,
                                      .reference = Reference,
                                      .cost = CostOf,
                                      .attrs = AttrOpsOf<EmbeddingGradientAttrs>(),
                                      .examples = kExamples};

}  // namespace weft
