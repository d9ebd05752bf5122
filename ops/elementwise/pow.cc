// ops/elementwise/pow.cc: y = a^b, with the special values of <cmath>'s pow.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class T>
void Kernel(const KernelArgs& args, Rect tile) {
  ForRuns(args.output_shape(0), args.input_shape(0), args.input_shape(1), tile, [&](const Run& r) {
    const T* a = args.input<T>(0) + r.a;
    const T* b = args.input<T>(1) + r.b;
    T* y = args.output<T>(0) + r.out;
    for (int64_t i = 0; i < r.n; ++i) {
      y[i] = static_cast<T>(std::pow(Computed<T>{a[i * r.a_step]}, Computed<T>{b[i * r.b_step]}));
    }
  });
}

// da = dy · b · a^(b-1), 0 where b is 0; db = dy · y · log(a), 0 where a is 0 and b is not negative.
VarList Gradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), dy = g.grad(0), zero = Number(a, 0);
  const Var constant = Equal(b, zero), at_zero = And(Equal(a, zero), GreaterEqual(b, zero));
  const Var da = Where(constant, zero, b * Pow(a, Where(constant, Number(b, 1), b - 1)));
  const Var db = Where(at_zero, zero, g.output(0) * Log(Where(at_zero, Number(a, 1), a)));
  return {SumTo(dy * da, a.shape()), SumTo(dy * db, b.shape())};
}

double Reference(double a, double b) { return std::pow(a, b); }

constexpr OpExample kExamples[] = {
    {.in = "[] []", .low = 0.5, .high = 2, .out = "[]"},
    {.in = "[37] [37]", .low = 0.5, .high = 2},
    {.in = "[5,19] [19]", .low = 0.5, .high = 2},
    {.in = "[7] [3,1,1]", .low = 0.5, .high = 2, .out = "[3,1,7]"},
    {.in = "[4,33] []", .low = 0.5, .high = 2},
    {.in = "[0,3] [3]", .out = "[0,3]"},
    {.in = "[9]", .record = [](VarSpan in) { return VarList{Pow(in[0], Number(in[0], 3))}; }},  // of negative ones, too
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[2] i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kPow = {.name = "pow",
                        .infer = InferBinary<kPow>,
                        .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                        .cut = Cut::kBoth,
                        .access = BroadcastAccess,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = BinaryReference<Reference>,
                        .cost = FlopsPerElement<40>,
                        .examples = kExamples};
Var Pow(Var a, Var b) { return Record(kPow, {a, b}); }

}  // namespace weft
