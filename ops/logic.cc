// ops/logic.cc: y = a and b, y = a or b, of bools.
#include <functional>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class Function>
void Kernel(const KernelArgs& args, Rect tile) {
  ForRuns(args.output_shape(0), args.input_shape(0), args.input_shape(1), tile, [&](const Run& r) {
    const bool* a = args.input<bool>(0) + r.a;
    const bool* b = args.input<bool>(1) + r.b;
    bool* y = args.output<bool>(0) + r.out;
    for (int64_t i = 0; i < r.n; ++i) y[i] = Function()(a[i * r.a_step], b[i * r.b_step]);
  });
}

template <class Function>
double Reference(double a, double b) {
  return Function()(a != 0, b != 0);
}

constexpr OpExample kExamples[] = {
    {.in = "bool[] bool[]", .out = "bool[]"},
    {.in = "bool[5,19] bool[19]"},
    {.in = "bool[7] bool[3,1,1]", .out = "bool[3,1,7]"},
    {.in = "bool[0,3] bool[3]", .out = "bool[0,3]"},
    {.in = "bool[2,3] bool[4]", .error = "don't broadcast"},
    {.in = "[2] bool[2]", .error = "dtypes differ"},
    {.in = "i32[2] i32[2]", .error = "not defined for i32"},
};

constexpr const char* kOfBools = "bools have none";

}  // namespace

constexpr OpDef kAnd = {.name = "and",
                        .infer = InferBinary<kAnd>,
                        .kernels = {nullptr, nullptr, nullptr, nullptr, Kernel<std::logical_and<>>},
                        .cut = Cut::kBoth,
                        .access = BroadcastAccess,
                        .in_place = 0,
                        .no_gradient = kOfBools,
                        .reference = BinaryReference<Reference<std::logical_and<>>>,
                        .examples = kExamples};
Var And(Var a, Var b) { return Record(kAnd, {a, b}); }

constexpr OpDef kOr = {.name = "or",
                       .infer = InferBinary<kOr>,
                       .kernels = {nullptr, nullptr, nullptr, nullptr, Kernel<std::logical_or<>>},
                       .cut = Cut::kBoth,
                       .access = BroadcastAccess,
                       .in_place = 0,
                       .no_gradient = kOfBools,
                       .reference = BinaryReference<Reference<std::logical_or<>>>,
                       .examples = kExamples};
Var Or(Var a, Var b) { return Record(kOr, {a, b}); }

}  // namespace weft
