// These ops look up rows of a table by ids, and add up gradients of rows. table, dtable and x are [V, C], ids are i32
// [...], and y of embedding and dy are [..., C]:
//
// - embedding: y[..., :] = table[ids[...], :], and 0 where an id is outside 0 .. V-1. If `widened`, the table may be
//   in bf16 or a block format, and y is then f32.
// - embedding_gradient: dtable[v, :] = Σ dy[i, :] over all i with ids[i] = v.
// - embedding_gradient_add: y[v, :] = x[v, :] + Σ dy[i, :] over all i with ids[i] = v. With a fourth input, rows
//   i32 [R], x and y are [R, C] and hold only these rows of the table. The condition is then ids[i] = rows[v].
//
// embedding_gradient_add may overwrite x. If a table has another gradient x, this op adds the rows of dy to x without a
// second array [V, C]. Both gradient ops ignore an id outside 0 .. V-1. Every tile of a gradient op scans all ids in
// order, so the order of each sum is fixed.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr EmbeddingAttrs kWidened = {.widened = true};

struct EmbeddingGradientAttrs {
  int64_t rows = 1;  // number of rows of the table
  auto Fields() const { return std::tuple{AttrField{"rows", rows}}; }
};

// Returns the type of the rows that `ids` name: the shape `ids` with one more axis, of size `features`.
TensorType RowsOf(DType dtype, Shape ids, int64_t features) {
  ids.Append(features);
  return {dtype, ids};
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const DType stored = in[0].dtype;
  const bool widened = attrs.as<EmbeddingAttrs>().widened;
  if (OnlyStoresWeights(stored) && !widened) {
    return ShapeError("embedding", absl::StrCat("not defined for ", Name(stored)), in);
  }
  if (in[0].shape.rank() != 2) return ShapeError("embedding", "the table must have rank 2", in);
  if (in[1].dtype != kI32) return ShapeError("embedding", "ids must be i32", in);
  if (in[0].shape.dim(0) == 0 && in[1].shape.elements() > 0) {
    return ShapeError("embedding", "the table has no rows", in);
  }
  return Types{RowsOf(widened && IsWeightFormat(stored) ? kF32 : stored, in[1].shape, in[0].shape.dim(1))};
}

// A tile reads all inputs as a whole, except the x of embedding_gradient_add: there it reads only its own rows.
Rect Access(const OpArgs& args, int operand, Rect tile) {
  const int inputs = static_cast<int>(args.inputs.size());
  const bool is_x = inputs >= 3 && operand == 0;
  return is_x || operand == inputs ? tile : WholeRect(args.inputs[operand].shape);
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t rows = a.input_shape(0).dim(0), n = a.input_shape(0).dim(1);
  const T* const table = a.input<T>(0);
  const int32_t* const ids = a.input<int32_t>(1);
  T* const y = a.output<T>(0);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const bool known = ids[r] >= 0 && ids[r] < rows;
    if (n == 1) {  // a function call for a single element would cost more than its copy
      y[r] = known ? table[ids[r]] : T{0};
    } else if (known) {
      std::copy_n(table + ids[r] * n, n, y + r * n);
    } else {
      std::fill_n(y + r * n, n, T{0});
    }
  }
}

// Decodes rows of a table that is stored in bf16 or a block format.
void DecodeKernel(const KernelArgs& a, Rect tile) {
  const DType stored = a.inputs[0].type.dtype;
  const int64_t rows = a.input_shape(0).dim(0), n = a.input_shape(0).dim(1);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const int32_t id = a.input<int32_t>(1)[r];
    float* const y = a.output<float>(0) + r * n;
    if (id >= 0 && id < rows) {
      const std::byte* const row = a.inputs[0].data + static_cast<size_t>(id) * BytesOf(stored, n);
      DecodeWeight(stored, row, absl::MakeSpan(y, static_cast<size_t>(n)));
    } else {
      std::fill_n(y, n, 0.0f);
    }
  }
}

void KernelBF16(const KernelArgs& a, Rect tile) {
  a.attrs.as<EmbeddingAttrs>().widened ? DecodeKernel(a, tile) : Kernel<BF16>(a, tile);
}

// The gradient by the table is embedding_gradient.
VarList Gradient(const GradientArgs& a) { return {EmbeddingGradient(a.grad(0), a.input(1), a.input(0).dim(0)), Var()}; }

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.input_types[0].shape.dim(1);
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const int64_t id = static_cast<int64_t>(a.inputs[1][e / n]);
    if (id >= 0 && id < a.input_types[0].shape.dim(0)) a.outputs[0][e] = a.inputs[0][id * n + e % n];
  }
}

// Embedding checks the declared bounds of ids. Examples without it record only the op.
constexpr OpExample kExamples[] = {
    {.in = "[1,1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[5,3] i32[]", .below = 5, .out = "[3]"},
    {.in = "[5,3] i32[7]", .below = 5, .out = "[7,3]"},
    {.in = "[257,17] i32[10,13]", .below = 257, .out = "[10,13,17]"},
    {.in = "[3,4] i32[3]", .below = 3},   // the table has as many rows as there are ids
    {.in = "[5,3] i32[37]", .below = 9},  // some ids outside the table
    {.in = "[5,1] i32[37]", .below = 9},
    {.in = "[5,3] i32[7]", .record = RecordCall<Embedding>, .below = 5},
    {.in = "[5,3] i32[0]", .out = "[0,3]"},
    {.in = "bf16[5,3] i32[7]", .record = RecordWith<kEmbedding, kWidened>, .below = 7, .out = "f32[7,3]"},
    {.in = "f32[257,17] i32[10,13]", .record = RecordWith<kEmbedding, kWidened>, .below = 257, .out = "f32[10,13,17]"},
    {.in = "[5] i32[7]", .error = "the table must have rank 2"},
    {.in = "[0,3] i32[2,0]", .record = RecordCall<Embedding>, .out = "[2,0,3]"},
    {.in = "[0,3] i32[7]", .error = "the table has no rows"},
    {.in = "[5,3] [7]", .error = "ids must be i32"},
    {.in = "[5,3] i32[7]", .record = RecordCall<Embedding>, .below = 6, .error = "below = 6, wanted below <= 5"},
};

absl::StatusOr<Types> InferGradient(const Attrs& attrs, TypeSpan in) {
  if (in[1].dtype != kI32) return ShapeError("embedding_gradient", "ids must be i32", in);
  const int64_t features = in[0].shape.dim(-1);
  if (in[0] != RowsOf(in[0].dtype, in[1].shape, features)) {
    return ShapeError("embedding_gradient", "dy must have ids' shape and one axis more", in);
  }
  return Types{{in[0].dtype, {attrs.as<EmbeddingGradientAttrs>().rows, features}}};
}

absl::StatusOr<Types> InferGradientAdd(const Attrs&, TypeSpan in) {
  if (in[2].dtype != kI32) return ShapeError("embedding_gradient_add", "ids must be i32", in);
  if (in.size() > 3 && in[3] != TensorType{kI32, {in[0].shape.rows()}}) {
    return ShapeError("embedding_gradient_add", "rows must be i32, one for each row of x", in);
  }
  if (in[0].shape.rank() != 2) return ShapeError("embedding_gradient_add", "x must have rank 2", in);
  if (in[1] != RowsOf(in[0].dtype, in[2].shape, in[0].shape.dim(1))) {
    return ShapeError("embedding_gradient_add", "dy must have ids' shape, and x's columns as one axis more", in);
  }
  return Types{in[0]};
}

// Adds each row of dy to the output row that its id names, if this row is in the tile. Input `dy` is dy, and the next
// input is ids.
template <class T>
void AddRows(const KernelArgs& a, Rect tile, int dy) {
  const int64_t n = a.output_shape(0).dim(1), count = a.input_shape(dy + 1).elements();
  const int32_t* const ids = a.input<int32_t>(dy + 1);
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < tile.row_begin || ids[i] >= tile.row_end) continue;
    Rows<T>().add_to(a.input<T>(dy) + i * n, a.output<T>(0) + ids[i] * n, n);
  }
}

template <class T>
void GradientKernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).dim(1);
  std::fill_n(a.output<T>(0) + tile.row_begin * n, tile.rows() * n, T{0});
  AddRows<T>(a, tile, 0);
}

template <class T>
void GradientAddKernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).dim(1), begin = tile.row_begin * n;
  const T* const x = a.input<T>(0);
  T* const y = a.output<T>(0);
  if (x != y) std::copy_n(x + begin, tile.rows() * n, y + begin);
  if (a.inputs.size() == 3) return AddRows<T>(a, tile, 1);
  const int32_t *const ids = a.input<int32_t>(2), *const rows = a.input<int32_t>(3);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    for (int64_t i = 0; i < a.input_shape(2).elements(); ++i) {
      if (ids[i] == rows[r]) Rows<T>().add_to(a.input<T>(1) + i * n, y + r * n, n);
    }
  }
}

// The gradient of embedding_gradient by dy is embedding(gradient of dtable, ids).
VarList GradientOfGradient(const GradientArgs& a) { return {Record(kEmbedding, {a.grad(0), a.input(1)}), Var()}; }

VarList ElementaryGradientAdd(const Attrs&, VarSpan in) {
  const Var x = in[0], dy = in[1], ids = in[2];
  if (in.size() == 3) return {x + EmbeddingGradient(dy, ids, x.dim(0))};
  const int64_t count = ids.shape().elements();
  const Var named = Equal(Reshape(in[3], {x.dim(0), 1}), Reshape(ids, {1, count}));
  return {x + MatMul(Cast(named, x.dtype()), Reshape(dy, {count, x.dim(1)}))};
}

void ReferenceGradient(const ReferenceArgs& a) {
  const int64_t n = a.output_types[0].shape.dim(1);
  for (size_t e = 0; e < a.inputs[0].size(); ++e) {
    const int64_t id = static_cast<int64_t>(a.inputs[1][e / n]);
    if (id >= 0 && id < a.output_types[0].shape.dim(0)) a.outputs[0][id * n + e % n] += a.inputs[0][e];
  }
}

Cost CostOfGradient(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[0].shape.elements()),
          .bytes = static_cast<double>(args.inputs[0].bytes() + args.outputs[0].bytes())};
}

// Assumes that the op runs in place: dy is read, and as many bytes of x are read and written. With rows, each row of x
// is compared with all ids, eight at a time.
Cost CostOfGradientAdd(const OpArgs& args) {
  Cost cost = {.flops = static_cast<double>(args.inputs[1].shape.elements()), .bytes = 3.0 * args.inputs[1].bytes()};
  if (args.inputs.size() == 3) return cost;
  cost.flops += static_cast<double>(args.inputs[2].shape.elements() * args.inputs[3].shape.elements()) / 8;
  cost.bytes = 2.0 * static_cast<double>(args.inputs[0].bytes()) + static_cast<double>(args.inputs[1].bytes());
  return cost;
}

constexpr OpExample kGradientExamples[] = {
    {.in = "[1,1] i32[1]", .record = RecordCall<EmbeddingGradient, 1>, .below = 1, .out = "[1,1]"},
    {.in = "[3] i32[]", .record = RecordCall<EmbeddingGradient, 5>, .below = 5, .out = "[5,3]"},
    {.in = "[7,3] i32[7]", .record = RecordCall<EmbeddingGradient, 5>, .below = 5, .out = "[5,3]"},
    {.in = "[10,13,17] i32[10,13]", .record = RecordCall<EmbeddingGradient, 257>, .below = 257, .out = "[257,17]"},
    {.in = "[3,4] i32[3]",
     .record = RecordCall<EmbeddingGradient, 3>,
     .below = 3},  // the table has as many rows as there are ids
    {.in = "[37,3] i32[37]", .record = RecordCall<EmbeddingGradient, 5>, .below = 9},  // some ids outside the table
    {.in = "[0,3] i32[0]", .record = RecordCall<EmbeddingGradient, 5>, .out = "[5,3]"},
    {.in = "[7,3] [7]", .record = RecordCall<EmbeddingGradient, 5>, .error = "ids must be i32"},
    {.in = "[6,3] i32[7]", .record = RecordCall<EmbeddingGradient, 5>, .error = "dy must have ids' shape"},
};

constexpr OpExample kAddExamples[] = {
    {.in = "[1,1] [1,1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[5,3] [3] i32[]", .below = 5, .out = "[5,3]"},
    {.in = "[5,3] [7,3] i32[7]", .below = 5},  // several ids name one row
    {.in = "[257,17] [10,13,17] i32[10,13]", .below = 257, .out = "[257,17]"},
    {.in = "[5,3] [37,3] i32[37]", .below = 9},  // some ids outside the table
    {.in = "[5,3] [0,3] i32[0]"},
    {.in = "[1,1] [1,1] i32[1] i32[1]", .below = 1, .out = "[1,1]"},
    {.in = "[9,3] [7,3] i32[7] i32[9]", .below = 5},  // some rows are named several times, by rows and by ids
    {.in = "[37,17] [10,13,17] i32[10,13] i32[37]", .below = 99, .out = "[37,17]"},
    {.in = "[4,3] [3] i32[] i32[4]", .below = 3},
    {.in = "[0,3] [2,3] i32[2] i32[0]"},
    {.in = "[5,3] [0,3] i32[0] i32[5]"},
    {.in = "[5,3] [7,3] i32[7] [5]", .error = "rows must be i32"},
    {.in = "[5,3] [7,3] i32[7] i32[4]", .error = "rows must be i32, one for each row of x"},
    {.in = "[5,3] [7,3] [7]", .error = "ids must be i32"},
    {.in = "[5,1,3] [7,3] i32[7]", .error = "x must have rank 2"},
    {.in = "[5,3] [7,4] i32[7]", .error = "dy must have ids' shape, and x's columns"},
    {.in = "[5,3] [6,3] i32[7]", .error = "dy must have ids' shape, and x's columns"},
};

}  // namespace

constexpr OpDef kEmbedding = {.name = "embedding",
                              .infer = Infer,
                              .kernels = WithStoredWeights({Kernel<float>, Kernel<double>, KernelBF16}, DecodeKernel),
                              .cut = Cut::kRows,
                              .access = Access,
                              .gradient = Gradient,
                              .reference = Reference,
                              .attrs = AttrOpsOf<EmbeddingAttrs>(),
                              .examples = kExamples};

Var Embedding(Var table, Var ids) {
  const Var y = Record(kEmbedding, {table, ids});
  RequireBounds("embedding", ids, table.dim(0), "rows of the table", /*ignored=*/-1);
  return y;
}

constexpr OpDef kEmbeddingGradient = {.name = "embedding_gradient",
                                      .infer = InferGradient,
                                      .kernels = {GradientKernel<float>, GradientKernel<double>},
                                      .cut = Cut::kRows,
                                      .access = Access,
                                      .gradient = GradientOfGradient,
                                      .reference = ReferenceGradient,
                                      .cost = CostOfGradient,
                                      .attrs = AttrOpsOf<EmbeddingGradientAttrs>(),
                                      .examples = kGradientExamples};

Var EmbeddingGradient(Var dy, Var ids, int64_t rows) {
  return Record(kEmbeddingGradient, {dy, ids}, Attrs::Of(EmbeddingGradientAttrs{.rows = rows}));
}

constexpr OpDef kEmbeddingGradientAdd = {.name = "embedding_gradient_add",
                                         .infer = InferGradientAdd,
                                         .kernels = {GradientAddKernel<float>, GradientAddKernel<double>},
                                         .cut = Cut::kRows,
                                         .access = Access,
                                         .in_place = 0,
                                         .elementary = ElementaryGradientAdd,
                                         .cost = CostOfGradientAdd,
                                         .examples = kAddExamples};

Var EmbeddingGradientAt(Var x, Var rows, Var dy, Var ids) { return Record(kEmbeddingGradientAdd, {x, dy, ids, rows}); }

}  // namespace weft
