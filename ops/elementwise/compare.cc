// Defines the elementwise comparisons and logic, whose output is bool.
//
// Equal, Less, LessEqual, And and Or are ops with kernels. Equal, Less and LessEqual are false if an input is NaN. The
// other functions, such as Greater and Not, are composed of these ops and Fill.
#include <functional>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/kernels/select.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class T, Comparison comparison>
void CompareKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& loop) {
    Selects<T>().compare(comparison, a.input<T>(0) + loop.a, loop.a_stride, a.input<T>(1) + loop.b, loop.b_stride,
                         a.output<bool>(0) + loop.out, loop.n);
  });
}

template <class Function>
void BoolKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& loop) {
    const bool* const x = a.input<bool>(0) + loop.a;
    const bool* const y = a.input<bool>(1) + loop.b;
    bool* const out = a.output<bool>(0) + loop.out;
    for (int64_t i = 0; i < loop.n; ++i) out[i] = Function()(x[i * loop.a_stride], y[i * loop.b_stride]);
  });
}

template <const OpDef& op>
absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  absl::StatusOr<Types> types = BroadcastTypes(op.name, in);
  if (types.ok()) types->front().dtype = kBool;
  return types;
}

template <class Function>
double Reference(double a, double b) {
  return Function()(a, b);
}

// Fills in the OpDef's fields that all ops of this file share.
template <const OpDef& op>
constexpr OpDef Predicate(OpDef row) {
  row.infer = Infer<op>;
  row.cut = Cut::kBoth;
  row.access = BroadcastAccess;
  row.no_gradient = "it is constant except for jumps";
  return row;
}

absl::Status CheckBools(const char* op, VarSpan inputs) {
  for (Var x : inputs) {
    if (x.dtype() != kBool) return ShapeError(op, absl::StrCat("not defined for ", Name(x.dtype())), {x.type()});
  }
  return absl::OkStatus();
}

constexpr OpExample kEqualExamples[] = {
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

template <Var (*op)(Var, Var)>
constexpr OpExample kOrderExamples[] = {
    {.in = "i32[] i32[]", .out = "bool[]"},
    {.in = "i32[5,19] i32[5,1]", .below = 9},
    {.in = "[3,7] [7]"},
    {.in = "[3,7]", .record = [](VarSpan in) { return VarList{op(in[0], in[0])}; }},
    {.in = "[0,3] [3]", .out = "bool[0,3]"},
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "bool[2] bool[2]", .error = "not defined for bool"},
};

constexpr OpExample kLogicExamples[] = {
    {.in = "bool[] bool[]", .out = "bool[]"},
    {.in = "bool[5,19] bool[19]"},
    {.in = "bool[7] bool[3,1,1]", .out = "bool[3,1,7]"},
    {.in = "bool[0,3] bool[3]", .out = "bool[0,3]"},
    {.in = "bool[2,3] bool[4]", .error = "don't broadcast"},
    {.in = "[2] bool[2]", .error = "dtypes differ"},
    {.in = "i32[2] i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kEqual = Predicate<kEqual>({
    .name = "equal",
    .kernels = {CompareKernel<float, Comparison::kEqual>, CompareKernel<double, Comparison::kEqual>,
                CompareKernel<BF16, Comparison::kEqual>, CompareKernel<int32_t, Comparison::kEqual>,
                BoolKernel<std::equal_to<>>},
    .reference = BinaryReference<Reference<std::equal_to<>>>,
    .examples = kEqualExamples,
});
Var Equal(Var a, Var b) { return Record(kEqual, {a, b}); }

constexpr OpDef kLess = Predicate<kLess>({
    .name = "less",
    .kernels = {CompareKernel<float, Comparison::kLess>, CompareKernel<double, Comparison::kLess>,
                CompareKernel<BF16, Comparison::kLess>, CompareKernel<int32_t, Comparison::kLess>},
    .reference = BinaryReference<Reference<std::less<>>>,
    .examples = kOrderExamples<Less>,
});
Var Less(Var a, Var b) { return Record(kLess, {a, b}); }

constexpr OpDef kLessEqual = Predicate<kLessEqual>({
    .name = "less_equal",
    .kernels = {CompareKernel<float, Comparison::kLessEqual>, CompareKernel<double, Comparison::kLessEqual>,
                CompareKernel<BF16, Comparison::kLessEqual>, CompareKernel<int32_t, Comparison::kLessEqual>},
    .reference = BinaryReference<Reference<std::less_equal<>>>,
    .examples = kOrderExamples<LessEqual>,
});
Var LessEqual(Var a, Var b) { return Record(kLessEqual, {a, b}); }

constexpr OpDef kAnd = Predicate<kAnd>({
    .name = "and",
    .kernels = {nullptr, nullptr, nullptr, nullptr, BoolKernel<std::logical_and<>>},
    .in_place = 0,
    .reference = BinaryReference<Reference<std::logical_and<>>>,
    .examples = kLogicExamples,
});
Var And(Var a, Var b) { return Record(kAnd, {a, b}); }

constexpr OpDef kOr = Predicate<kOr>({
    .name = "or",
    .kernels = {nullptr, nullptr, nullptr, nullptr, BoolKernel<std::logical_or<>>},
    .in_place = 0,
    .reference = BinaryReference<Reference<std::logical_or<>>>,
    .examples = kLogicExamples,
});
Var Or(Var a, Var b) { return Record(kOr, {a, b}); }

Var Greater(Var a, Var b) {
  return Composite("greater", {a, b}, [&] { return Less(b, a); });
}

Var GreaterEqual(Var a, Var b) {
  return Composite("greater_equal", {a, b}, [&] { return LessEqual(b, a); });
}

Var NotEqual(Var a, Var b) {
  return Composite("not_equal", {a, b}, [&] { return Not(Equal(a, b)); });
}

Var IsNan(Var x) {
  return Composite("is_nan", {x}, [&] { return NotEqual(x, x); });
}

Var Not(Var x) {
  return Composite("not", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckBools("not", {x}));
    return Equal(x, FillLike(x, false));
  });
}

Var Xor(Var a, Var b) {
  return Composite("xor", {a, b}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckBools("xor", {a, b}));
    return NotEqual(a, b);
  });
}

}  // namespace weft
