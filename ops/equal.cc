// ops/equal.cc: y = (a == b), as bool; NaN equals nothing.
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  absl::StatusOr<Types> types = BroadcastTypes("equal", in);
  if (types.ok()) types->front().dtype = kBool;
  return types;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const auto run = [&](const Run& r) {
    const T* x = a.input<T>(0) + r.a;
    const T* y = a.input<T>(1) + r.b;
    bool* out = a.output<bool>(0) + r.out;
    for (int64_t i = 0; i < r.n; ++i) out[i] = x[i * r.a_step] == y[i * r.b_step];
  };
  ForRuns(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, run);
}

double Reference(double a, double b) { return a == b; }

constexpr OpExample kExamples[] = {
    {.in = "i32[] i32[]", .out = "bool[]"},
    {.in = "i32[5,19] i32[19]", .below = 3},
    {.in = "i32[7] i32[3,1,1]", .below = 3, .out = "bool[3,1,7]"},
    {.in = "bool[4,5] bool[4,1]"},
    {.in = "[3,7]", .record = [](VarSpan in) { return VarList{Equal(in[0], in[0])}; }},
    {.in = "[3,7] [7]"},
    {.in = "[0,3] [3]", .out = "bool[0,3]"},
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
};

}  // namespace

constexpr OpDef kEqual = {.name = "equal",
                          .infer = Infer,
                          .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                          .cut = Cut::kBoth,
                          .access = BroadcastAccess,
                          .no_gradient = "it is constant but for jumps",
                          .reference = BinaryReference<Reference>,
                          .examples = kExamples};
Var Equal(Var a, Var b) { return Record(kEqual, {a, b}); }

}  // namespace weft
