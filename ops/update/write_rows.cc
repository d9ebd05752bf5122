// Replaces some rows of a state s [V, C] by values [R, C]: s[rows[r] - begin, :] ← values[r, :], for rows i32 [R]. A
// row outside begin .. begin + V - 1 is not written. If several r name one row, the last of them is written.
#include <cstring>
#include <tuple>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct WriteRowsAttrs {
  int64_t begin = 0;  // the number of the state's first row
  auto Fields() const { return std::tuple{AttrField{"begin", begin}}; }
};

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const Shape &state = in[0].shape, &rows = in[1].shape;
  if (in[1].dtype != kI32) return ShapeError("write_rows", "rows must be i32", in);
  if (state.rank() != 2 || rows.rank() != 1 || in[2] != TensorType{in[0].dtype, {rows.dim(0), state.dim(1)}}) {
    return ShapeError("write_rows", "wanted a state [V,C], rows [R] and values [R,C] of the state's dtype", in);
  }
  return Types{in[0]};
}

// A tile of the state scans all rows.
Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 || operand == 3 ? tile : WholeRect(args.inputs[operand].shape);
}

void Kernel(const KernelArgs& a, Rect tile) {
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

void Reference(const ReferenceArgs& a) {
  const size_t n = static_cast<size_t>(a.input_types[0].shape.dim(1));
  const auto begin = static_cast<double>(a.attrs.as<WriteRowsAttrs>().begin);
  a.outputs[0] = a.inputs[0];
  for (size_t e = 0; e < a.inputs[2].size(); ++e) {
    const double to = a.inputs[1][e / n] - begin;
    if (to < 0 || to >= static_cast<double>(a.input_types[0].shape.dim(0))) continue;
    a.outputs[0][static_cast<size_t>(to) * n + e % n] = a.inputs[2][e];
  }
}

Cost CostOf(const OpArgs& args) { return {.bytes = 2.0 * static_cast<double>(args.inputs[2].bytes())}; }

template <int64_t begin>
VarList Example(VarSpan in) {
  return {WriteRows(in[0], in[1], in[2], begin)};
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1] i32[1] [1,1]", .record = Example<0>, .below = 1, .out = "[1,1]"},
    {.in = "[130,17] i32[9] [9,17]", .record = Example<0>, .below = 130, .out = "[130,17]"},
    {.in = "[5,3] i32[9] [9,3]", .record = Example<0>, .below = 4},     // some rows are named several times
    {.in = "[5,3] i32[19] [19,3]", .record = Example<4>, .below = 12},  // some rows are not in the state
    {.in = "[5,3] i32[0] [0,3]", .record = Example<0>},
    {.in = "[0,3] i32[4] [4,3]", .record = Example<0>},
    {.in = "[5,3] [4] [4,3]", .record = Example<0>, .error = "rows must be i32"},
    {.in = "[5,3] i32[4] [5,3]", .record = Example<0>, .error = "wanted a state [V,C], rows [R] and values [R,C]"},
    {.in = "f32[5,3] i32[4] bf16[4,3]", .record = Example<0>, .error = "of the state's dtype"},
};

}  // namespace

constexpr OpDef kWriteRows = {.name = "write_rows",
                              .infer = Infer,
                              .kernels = {Kernel, Kernel, Kernel},
                              .cut = Cut::kRows,
                              .access = Access,
                              .writes = 1,
                              .no_gradient = "a gradient through a write is an error",
                              .reference = Reference,
                              .cost = CostOf,
                              .attrs = AttrOpsOf<WriteRowsAttrs>(),
                              .examples = kExamples};

Var WriteRows(Var state, Var rows, Var values, int64_t begin) {
  return Record(kWriteRows, {state, rows, values}, Attrs::Of(WriteRowsAttrs{begin}));
}

}  // namespace weft
