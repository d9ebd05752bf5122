// Adds a value to a state that holds a sum: s ← 0 + x for the first value, else s ← s + x. A bf16 state takes values in
// bf16 or f32. It rounds each value and each sum to nearest even.
//
// The op exists so that x is computed before it is added. Otherwise the gradient of an embedding could be added to s
// row by row, which rounds differently. Sums over micro-batches would then depend on the rank that computes them.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape != in[1].shape || (in[0].dtype != in[1].dtype && (in[0].dtype != kBF16 || in[1].dtype != kF32))) {
    return ShapeError("accumulate", "the value must have the sum's type, or f32 for a bf16 sum", in);
  }
  if (in[2] != TensorType{kI32, {}}) return ShapeError("accumulate", "first must be i32[]", in);
  return Types{in[0]};
}

template <class T, class X>
void Kernel(const KernelArgs& a, Rect tile) {
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

void KernelBF16(const KernelArgs& a, Rect tile) {
  a.inputs[1].type.dtype == kF32 ? Kernel<BF16, float>(a, tile) : Kernel<BF16, BF16>(a, tile);
}

void Reference(const ReferenceArgs& a) {
  for (size_t i = 0; i < a.outputs[0].size(); ++i) {
    a.outputs[0][i] = (a.inputs[2][0] != 0 ? 0 : a.inputs[0][i]) + a.inputs[1][i];
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[] [] i32[]", .out = "[]"},
    {.in = "[130,17] [130,17] i32[]", .out = "[130,17]"},
    {.in = "[2,3,4] [2,3,4] i32[]"},
    {.in = "bf16[5] f32[5] i32[]", .out = "bf16[5]", .tolerance = 1e-2},
    {.in = "[3] [1] i32[]", .error = "the value must have the sum's type"},
    {.in = "f32[3] bf16[3] i32[]", .error = "the value must have the sum's type"},
    {.in = "[3] [3] f32[]", .error = "first must be i32[]"},
};

}  // namespace

constexpr OpDef kAccumulate = {.name = "accumulate",
                               .infer = Infer,
                               .kernels = {Kernel<float, float>, Kernel<double, double>, KernelBF16},
                               .cut = Cut::kBoth,
                               .writes = 1,
                               .no_gradient = "a gradient through a write is an error",
                               .reference = Reference,
                               .examples = kExamples};

Var Accumulate(Var sum, Var value, Var first) { return Record(kAccumulate, {sum, value, first}); }

}  // namespace weft
