// These ops give a state s its next version:
//   assign: s ← x.
//   accumulate: s ← 0 + x for the first value of a sum, else s ← s + x. A bf16 state takes values in bf16 or f32. It
//     rounds each value and each sum to nearest even.
//   write_rows: s[rows[r] - begin, :] ← values[r, :], for s [V, C], rows i32 [R] and values [R, C]. A row outside
//     begin .. begin + V - 1 is not written. If several r name one row, the last of them is written.
//
// accumulate exists so that x is computed before it is added. Otherwise the gradient of an embedding could be added to
// s row by row, which rounds differently. Sums over micro-batches would then depend on the rank that computes them.
#include <cstring>
#include <tuple>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr char kNoGradient[] = "a gradient through a write is an error";

absl::StatusOr<Types> InferAssign(const Attrs&, TypeSpan in) {
  if (in[0] != in[1]) return ShapeError("assign", "the value must have the state's type", in);
  return Types{in[0]};
}

void AssignKernel(const KernelArgs& a, Rect tile) {
  const size_t size = SizeOf(a.outputs[0].type.dtype);
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    std::memmove(a.outputs[0].data + begin * size, a.inputs[1].data + begin * size, count * size);
  });
}

void AssignReference(const ReferenceArgs& a) { a.outputs[0] = a.inputs[1]; }

constexpr OpExample kAssignExamples[] = {
    {.in = "[] []", .out = "[]"},
    {.in = "[130,17] [130,17]", .out = "[130,17]"},
    {.in = "i32[7] i32[7]", .below = 100},
    {.in = "[0,3] [0,3]"},
    {.in = "[3] [1]", .error = "the value must have the state's type"},
    {.in = "f32[3] i32[3]", .error = "the value must have the state's type"},
};

absl::StatusOr<Types> InferAccumulate(const Attrs&, TypeSpan in) {
  if (in[0].shape != in[1].shape || (in[0].dtype != in[1].dtype && (in[0].dtype != kBF16 || in[1].dtype != kF32))) {
    return ShapeError("accumulate", "the value must have the sum's type, or f32 for a bf16 sum", in);
  }
  if (in[2] != TensorType{kI32, {}}) return ShapeError("accumulate", "first must be i32[]", in);
  return Types{in[0]};
}

template <class T, class X>
void AccumulateKernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const bool first = *a.input<int32_t>(2) != 0;
  const T* const sum = a.input<T>(0);
  const X* const x = a.input<X>(1);
  T* const out = a.output<T>(0);
  const auto rounded = [](X value) { return static_cast<C>(static_cast<T>(value)); };
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count; ++i) {
      out[i] = static_cast<T>((first ? C{0} : static_cast<C>(sum[i])) + rounded(x[i]));
    }
  });
}

void AccumulateKernelBF16(const KernelArgs& a, Rect tile) {
  a.inputs[1].type.dtype == kF32 ? AccumulateKernel<BF16, float>(a, tile) : AccumulateKernel<BF16, BF16>(a, tile);
}

void AccumulateReference(const ReferenceArgs& a) {
  for (size_t i = 0; i < a.outputs[0].size(); ++i) {
    a.outputs[0][i] = (a.inputs[2][0] != 0 ? 0 : a.inputs[0][i]) + a.inputs[1][i];
  }
}

constexpr OpExample kAccumulateExamples[] = {
    {.in = "[] [] i32[]", .out = "[]"},
    {.in = "[130,17] [130,17] i32[]", .out = "[130,17]"},
    {.in = "[2,3,4] [2,3,4] i32[]"},
    {.in = "bf16[5] f32[5] i32[]", .out = "bf16[5]", .tolerance = 1e-2},
    {.in = "[3] [1] i32[]", .error = "the value must have the sum's type"},
    {.in = "f32[3] bf16[3] i32[]", .error = "the value must have the sum's type"},
    {.in = "[3] [3] f32[]", .error = "first must be i32[]"},
};

struct WriteRowsAttrs {
  int64_t begin = 0;  // the number of the state's first row
  auto Fields() const { return std::tuple{AttrField{"begin", begin}}; }
};

absl::StatusOr<Types> InferWriteRows(const Attrs&, TypeSpan in) {
  const Shape &state = in[0].shape, &rows = in[1].shape;
  if (in[1].dtype != kI32) return ShapeError("write_rows", "rows must be i32", in);
  if (state.rank() != 2 || rows.rank() != 1 || in[2] != TensorType{in[0].dtype, {rows.dim(0), state.dim(1)}}) {
    return ShapeError("write_rows", "wanted a state [V,C], rows [R] and values [R,C] of the state's dtype", in);
  }
  return Types{in[0]};
}

// A tile of the state scans all rows.
Rect WriteRowsAccess(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 || operand == 3 ? tile : WholeRect(args.inputs[operand].shape);
}

void WriteRowsKernel(const KernelArgs& a, Rect tile) {
  const int64_t begin = a.attrs.as<WriteRowsAttrs>().begin;
  const size_t bytes = static_cast<size_t>(a.input_shape(2).dim(1)) * SizeOf(a.inputs[2].type.dtype);
  const int32_t* const rows = a.input<int32_t>(1);
  for (int64_t r = 0; r < a.input_shape(1).elements(); ++r) {
    const int64_t to = rows[r] - begin;
    if (to < tile.row_begin || to >= tile.row_end) continue;
    std::memcpy(a.outputs[0].data + static_cast<size_t>(to) * bytes, a.inputs[2].data + static_cast<size_t>(r) * bytes,
                bytes);
  }
}

void WriteRowsReference(const ReferenceArgs& a) {
  const size_t n = static_cast<size_t>(a.input_types[0].shape.dim(1));
  const auto begin = static_cast<double>(a.attrs.as<WriteRowsAttrs>().begin);
  a.outputs[0] = a.inputs[0];
  for (size_t e = 0; e < a.inputs[2].size(); ++e) {
    const double to = a.inputs[1][e / n] - begin;
    if (to < 0 || to >= static_cast<double>(a.input_types[0].shape.dim(0))) continue;
    a.outputs[0][static_cast<size_t>(to) * n + e % n] = a.inputs[2][e];
  }
}

Cost WriteRowsCost(const OpArgs& args) { return {.bytes = 2.0 * static_cast<double>(args.inputs[2].bytes())}; }

constexpr OpExample kWriteRowsExamples[] = {
    {.in = "[1,1] i32[1] [1,1]", .record = RecordCall<WriteRows, 0>, .below = 1, .out = "[1,1]"},
    {.in = "[130,17] i32[9] [9,17]", .record = RecordCall<WriteRows, 0>, .below = 130, .out = "[130,17]"},
    {.in = "[5,3] i32[9] [9,3]", .record = RecordCall<WriteRows, 0>, .below = 4},  // some rows are named several times
    {.in = "[5,3] i32[19] [19,3]", .record = RecordCall<WriteRows, 4>, .below = 12},  // some rows are not in the state
    {.in = "[5,3] i32[0] [0,3]", .record = RecordCall<WriteRows, 0>},
    {.in = "[0,3] i32[4] [4,3]", .record = RecordCall<WriteRows, 0>},
    {.in = "[5,3] [4] [4,3]", .record = RecordCall<WriteRows, 0>, .error = "rows must be i32"},
    {.in = "[5,3] i32[4] [5,3]",
     .record = RecordCall<WriteRows, 0>,
     .error = "wanted a state [V,C], rows [R] and values [R,C]"},
    {.in = "f32[5,3] i32[4] bf16[4,3]", .record = RecordCall<WriteRows, 0>, .error = "of the state's dtype"},
};

}  // namespace

constexpr OpDef kAssign = {.name = "assign",
                           .infer = InferAssign,
                           .kernels = ForAllDTypes(AssignKernel),
                           .cut = Cut::kBoth,
                           .writes = 1,
                           .no_gradient = kNoGradient,
                           .reference = AssignReference,
                           .examples = kAssignExamples};

Var Assign(Var state, Var value) { return Record(kAssign, {state, value}); }

constexpr OpDef kAccumulate = {
    .name = "accumulate",
    .infer = InferAccumulate,
    .kernels = {AccumulateKernel<float, float>, AccumulateKernel<double, double>, AccumulateKernelBF16},
    .cut = Cut::kBoth,
    .writes = 1,
    .no_gradient = kNoGradient,
    .reference = AccumulateReference,
    .examples = kAccumulateExamples};

Var Accumulate(Var sum, Var value, Var first) { return Record(kAccumulate, {sum, value, first}); }

constexpr OpDef kWriteRows = {.name = "write_rows",
                              .infer = InferWriteRows,
                              .kernels = {WriteRowsKernel, WriteRowsKernel, WriteRowsKernel},
                              .cut = Cut::kRows,
                              .access = WriteRowsAccess,
                              .writes = 1,
                              .no_gradient = kNoGradient,
                              .reference = WriteRowsReference,
                              .cost = WriteRowsCost,
                              .attrs = AttrOpsOf<WriteRowsAttrs>(),
                              .examples = kWriteRowsExamples};

Var WriteRows(Var state, Var rows, Var values, int64_t begin) {
  return Record(kWriteRows, {state, rows, values}, Attrs::Of(WriteRowsAttrs{begin}));
}

}  // namespace weft
