// Makes a given value the next version of a state.
#include <cstring>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0] != in[1]) return ShapeError("assign", "the value must have the state's type", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    std::memmove(a.output<T>(0) + begin, a.input<T>(1) + begin, count * sizeof(T));
  });
}

void Reference(const ReferenceArgs& a) { a.outputs[0] = a.inputs[1]; }

constexpr OpExample kExamples[] = {
    {.in = "[] []", .out = "[]"},
    {.in = "[130,17] [130,17]", .out = "[130,17]"},
    {.in = "i32[7] i32[7]", .below = 100},
    {.in = "[0,3] [0,3]"},
    {.in = "[3] [1]", .error = "the value must have the state's type"},
    {.in = "f32[3] i32[3]", .error = "the value must have the state's type"},
};

}  // namespace

constexpr OpDef kAssign = {.name = "assign",
                           .infer = Infer,
                           .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                           .cut = Cut::kBoth,
                           .writes = 1,
                           .no_gradient = "a gradient through a write is an error",
                           .reference = Reference,
                           .examples = kExamples};

Var Assign(Var state, Var value) { return Record(kAssign, {state, value}); }

}  // namespace weft
