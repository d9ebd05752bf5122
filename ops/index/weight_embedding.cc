// weight_embedding looks up rows of a weight [V, C] in bf16 or a block format, and gives them in f32 (f64 stays f64):
//   y[..., :] = weight[ids[...], :], and 0 where an id is outside 0 .. V-1
#include <algorithm>

#include "weft/core/block_formats.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const bool stored = IsFloat(in[0].dtype) || IsBlockFormat(in[0].dtype);
  if (!stored || in[0].shape.rank() != 2) {
    return ShapeError("weight_embedding", "the weight must be of numbers and of rank 2", in);
  }
  if (in[1].dtype != kI32) return ShapeError("weight_embedding", "ids must be i32", in);
  TensorType y = {in[0].dtype == kF64 ? kF64 : kF32, in[1].shape};
  y.shape.Append(in[0].shape.dim(1));
  return Types{y};
}

void Kernel(const KernelArgs& a, Rect tile) {
  const TensorType& weight = a.inputs[0].type;
  const int64_t rows = weight.shape.dim(0), n = weight.shape.dim(1);
  const size_t bytes = BytesOf(weight.dtype, n);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const int32_t id = a.input<int32_t>(1)[r];
    float* const y = a.output<float>(0) + r * n;
    if (id >= 0 && id < rows) {
      DecodeWeight(weight.dtype, a.inputs[0].data + static_cast<size_t>(id) * bytes,
                   absl::MakeSpan(y, static_cast<size_t>(n)));
    } else {
      std::fill_n(y, n, 0.0f);
    }
  }
}

void KernelF64(const KernelArgs& a, Rect tile) {
  const int64_t rows = a.input_shape(0).dim(0), n = a.input_shape(0).dim(1);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const int32_t id = a.input<int32_t>(1)[r];
    const bool known = id >= 0 && id < rows;
    for (int64_t k = 0; k < n; ++k) a.output<double>(0)[r * n + k] = known ? a.input<double>(0)[id * n + k] : 0;
  }
}

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.input_types[0].shape.dim(1);
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const int64_t id = static_cast<int64_t>(a.inputs[1][e / n]);
    if (id >= 0 && id < a.input_types[0].shape.dim(0)) a.outputs[0][e] = a.inputs[0][id * n + e % n];
  }
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 2 ? tile : WholeRect(args.inputs[operand].shape);
}

constexpr OpExample kExamples[] = {
    {.in = "bf16[5,3] i32[7]", .below = 7, .out = "f32[7,3]"},  // some ids outside the weight
    {.in = "f32[257,17] i32[10,13]", .below = 257, .out = "f32[10,13,17]"},
    {.in = "f32[5,3] i32[0]", .out = "f32[0,3]"},
    {.in = "f32[5] i32[7]", .error = "the weight must be of numbers and of rank 2"},
    {.in = "i32[5,3] i32[7]", .error = "the weight must be of numbers and of rank 2"},
    {.in = "bf16[5,3] f32[7]", .error = "ids must be i32"},
};

}  // namespace

constexpr OpDef kWeightEmbedding = {
    .name = "weight_embedding",
    .infer = Infer,
    .kernels = {Kernel, KernelF64, Kernel, nullptr, nullptr, Kernel, Kernel},
    .cut = Cut::kRows,
    .access = Access,
    .no_gradient = "it is recorded after gradients are expanded",
    .reference = Reference,
    .examples = kExamples,
};

}  // namespace weft
