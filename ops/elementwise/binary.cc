// Defines the elementwise functions of two inputs, which broadcast: arithmetic (add, sub, mul, div, minimum, maximum
// and pow), and comparisons and logic, whose output is bool.
//
// Each OpDef gives the op's kernels, a reference in double arithmetic, the gradient and examples. Equal, Less and
// LessEqual are false if an input is NaN. The other predicates, such as Greater and Not, are composed of ops and Fill.
#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Fills in the OpDef's fields that all arithmetic functions share.
template <const OpDef& op>
constexpr OpDef Binary(OpDef row) {
  row.infer = InferBinary<op>;
  row.cut = Cut::kBoth;
  row.access = BroadcastAccess;
  row.in_place = 0;
  return row;
}

// Computes y[i] = f(a[i], b[i]) for each element of a tile, one after the other.
template <class T, class F>
void MapPairs(const KernelArgs& args, Rect tile, F f) {
  ForInnerLoops(args.output_shape(0), args.input_shape(0), args.input_shape(1), tile, [&](const InnerLoop& loop) {
    const T *const a = args.input<T>(0) + loop.a, *const b = args.input<T>(1) + loop.b;
    T* const y = args.output<T>(0) + loop.out;
    for (int64_t i = 0; i < loop.n; ++i) y[i] = f(a[i * loop.a_stride], b[i * loop.b_stride]);
  });
}

template <class T>
void PowKernel(const KernelArgs& args, Rect tile) {
  MapPairs<T>(args, tile, [](T a, T b) { return static_cast<T>(std::pow(Computed<T>{a}, Computed<T>{b})); });
}

// da = dy · b · a^(b-1), or 0 where b = 0. db = dy · y · log(a), or 0 where a = 0 and b >= 0.
VarList PowGradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), dy = g.grad(0), zero = Number(a, 0);
  const Var constant = Equal(b, zero), at_zero = And(Equal(a, zero), GreaterEqual(b, zero));
  const Var da = Where(constant, zero, b * Pow(a, Where(constant, Number(b, 1), b - 1)));
  const Var db = Where(at_zero, zero, g.output(0) * Log(Where(at_zero, Number(a, 1), a)));
  return {SumTo(dy * da, a.shape()), SumTo(dy * db, b.shape())};
}

// dy goes to b if b is NaN, or if y equals b but not a. Otherwise dy goes to a.
VarList ExtremumGradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), dy = g.grad(0);
  const Var b_beyond = MaskFill(Equal(g.output(0), b), Equal(g.output(0), a), false);
  const Var b_won = MaskFill(b_beyond, IsNan(b), true);
  return {SumTo(MaskFill(dy, b_won, 0), a.shape()), SumTo(MaskFill(dy, Not(b_won), 0), b.shape())};
}

double Quotient(double a, double b) { return a / b; }
double Truncated(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }

// Returns examples that suit every arithmetic function, with float inputs in [low, high), followed by `special`.
template <size_t n = 0>
constexpr std::array<OpExample, n + 13> Arithmetic(double low, double high,
                                                   const std::array<OpExample, n>& special = {}) {
  std::array<OpExample, n + 13> examples = {
      {{.in = "[] []", .low = low, .high = high, .out = "[]"},
       {.in = "[1] [1,1]", .low = low, .high = high, .out = "[1,1]"},
       {.in = "[37] [37]", .low = low, .high = high},
       {.in = "[5,19] [19]", .low = low, .high = high},
       {.in = "[7] [3,1,1]", .low = low, .high = high, .out = "[3,1,7]"},
       {.in = "[2,1,3,1] [4,1,17]", .low = low, .high = high, .out = "[2,4,3,17]"},
       {.in = "[4,33] [4,1]", .low = low, .high = high},
       {.in = "[] [3,5]", .low = low, .high = high, .out = "[3,5]"},
       {.in = "[0,3] [3]", .low = low, .high = high, .out = "[0,3]"},
       {.in = "i32[5,19] i32[19]", .below = 9},
       {.in = "[2,3] [4]", .error = "don't broadcast"},
       {.in = "[2] i32[2]", .error = "dtypes differ"},
       {.in = "bool[2] bool[2]", .error = "not defined for bool"}}};
  std::copy(special.begin(), special.end(), examples.begin() + 13);
  return examples;
}

template <Var (*op)(Var, Var)>
constexpr OpExample kSelf = {.in = "[9]", .record = [](VarSpan in) { return VarList{op(in[0], in[0])}; }};

constexpr auto kAddExamples = Arithmetic<1>(
    -1, 1, {{{.in = "[3,70] [3,70]", .low = -1e30, .high = 1e30, .check_gradient = false}}});  // x + delta rounds to x
constexpr auto kSubExamples = Arithmetic(-1, 1), kDivExamples = Arithmetic(0.5, 2);  // i32 examples also divide by 0
constexpr auto kMulExamples = Arithmetic<1>(-1, 1, {kSelf<Mul>});
constexpr auto kMinimumExamples = Arithmetic<1>(-1, 1, {kSelf<Minimum>}),
               kMaximumExamples = Arithmetic<1>(-1, 1, {kSelf<Maximum>});

constexpr OpExample kPowExamples[] = {
    {.in = "[] []", .low = 0.5, .high = 2, .out = "[]"},
    {.in = "[37] [37]", .low = 0.5, .high = 2},
    {.in = "[5,19] [19]", .low = 0.5, .high = 2},
    {.in = "[7] [3,1,1]", .low = 0.5, .high = 2, .out = "[3,1,7]"},
    {.in = "[4,33] []", .low = 0.5, .high = 2},
    {.in = "[0,3] [3]", .out = "[0,3]"},
    {.in = "[9]", .record = [](VarSpan in) { return VarList{Pow(in[0], Number(in[0], 3))}; }},  // negative inputs, too
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[2] i32[2]", .error = "not defined for i32"},
};

template <class T, Comparison comparison>
void CompareKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& loop) {
    Selects<T>().compare(comparison, a.input<T>(0) + loop.a, loop.a_stride, a.input<T>(1) + loop.b, loop.b_stride,
                         a.output<bool>(0) + loop.out, loop.n);
  });
}

// Kernels for f32, f64, bf16 and i32, and `bools` for bool.
template <Comparison comparison, KernelFunction bools = nullptr>
constexpr std::array<KernelFunction, kDTypeCount> kCompareKernels = {
    CompareKernel<float, comparison>, CompareKernel<double, comparison>, CompareKernel<BF16, comparison>,
    CompareKernel<int32_t, comparison>, bools};

template <class Function>
void BoolKernel(const KernelArgs& args, Rect tile) {
  MapPairs<bool>(args, tile, Function());
}

template <const OpDef& op>
absl::StatusOr<Types> InferPredicate(const Attrs&, TypeSpan in) {
  absl::StatusOr<Types> types = BroadcastTypes(op.name, in);
  if (types.ok()) types->front().dtype = kBool;
  return types;
}

template <class Function>
double Reference(double a, double b) {
  return Function()(a, b);
}

// Fills in the OpDef's fields that all comparisons and logical functions share.
template <const OpDef& op, class Function>
constexpr OpDef Predicate(OpDef row) {
  row.infer = InferPredicate<op>;
  row.cut = Cut::kBoth;
  row.access = BroadcastAccess;
  row.reference = BinaryReference<Reference<Function>>;
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

template <const OpDef& op, class Function>
constexpr OpDef Logic(const char* name) {
  OpDef row = {.name = name, .in_place = 0, .examples = kLogicExamples};
  row.kernels[static_cast<size_t>(kBool)] = BoolKernel<Function>;
  return Predicate<op, Function>(row);
}

}  // namespace

constexpr OpDef kAdd = Binary<kAdd>({
    .name = "add",
    .kernels = kNumberKernels<BinaryFunction::kAdd>,
    .gradient =
        [](const GradientArgs& a) {
          const Var dy = a.grad(0);
          return VarList{SumTo(dy, a.input(0).shape()), SumTo(dy, a.input(1).shape())};
        },
    .reference = BinaryReference<[](double a, double b) { return a + b; }>,
    .autocast = Autocast::kFollow,
    .examples = kAddExamples,
});
Var Add(Var a, Var b) { return Record(kAdd, {a, b}); }

constexpr OpDef kSub = Binary<kSub>({
    .name = "sub",
    .kernels = kNumberKernels<BinaryFunction::kSub>,
    .gradient =
        [](const GradientArgs& a) {
          const Var dy = a.grad(0);
          return VarList{SumTo(dy, a.input(0).shape()), SumTo(-dy, a.input(1).shape())};
        },
    .reference = BinaryReference<[](double a, double b) { return a - b; }>,
    .examples = kSubExamples,
});
Var Sub(Var a, Var b) { return Record(kSub, {a, b}); }

constexpr OpDef kMul = Binary<kMul>({
    .name = "mul",
    .kernels = kNumberKernels<BinaryFunction::kMul>,
    .gradient =
        [](const GradientArgs& g) {  // da = dy · b, db = dy · a
          const Var a = g.input(0), b = g.input(1), dy = g.grad(0);
          return VarList{SumTo(dy * b, a.shape()), SumTo(dy * a, b.shape())};
        },
    .reference = BinaryReference<[](double a, double b) { return a * b; }>,
    .autocast = Autocast::kFollow,
    .examples = kMulExamples,
});
Var Mul(Var a, Var b) { return Record(kMul, {a, b}); }

constexpr OpDef kDiv = Binary<kDiv>({
    .name = "div",
    .kernels = kNumberKernels<BinaryFunction::kDiv>,
    .gradient =
        [](const GradientArgs& g) {  // da = dy / b, db = -dy · y / b
          const Var a = g.input(0), b = g.input(1), y = g.output(0), da = g.grad(0) / b;
          return VarList{SumTo(da, a.shape()), SumTo(-(da * y), b.shape())};
        },
    .reference =
        [](const ReferenceArgs& a) { BinaryReference(a, a.output_types[0].dtype == kI32 ? Truncated : Quotient); },
    .examples = kDivExamples,
});
Var Div(Var a, Var b) { return Record(kDiv, {a, b}); }

constexpr OpDef kMinimum = Binary<kMinimum>({
    .name = "minimum",
    .kernels = kNumberKernels<BinaryFunction::kMinimum>,
    .gradient = ExtremumGradient,
    .reference = BinaryReference<[](double a, double b) { return b < a || b != b ? b : a; }>,
    .examples = kMinimumExamples,
});
Var Minimum(Var a, Var b) { return Record(kMinimum, {a, b}); }

constexpr OpDef kMaximum = Binary<kMaximum>({
    .name = "maximum",
    .kernels = kNumberKernels<BinaryFunction::kMaximum>,
    .gradient = ExtremumGradient,
    .reference = BinaryReference<[](double a, double b) { return a < b || b != b ? b : a; }>,
    .examples = kMaximumExamples,
});
Var Maximum(Var a, Var b) { return Record(kMaximum, {a, b}); }

constexpr OpDef kPow = Binary<kPow>({
    .name = "pow",
    .kernels = {PowKernel<float>, PowKernel<double>, PowKernel<BF16>},
    .gradient = PowGradient,
    .reference = BinaryReference<[](double a, double b) { return std::pow(a, b); }>,
    .cost = FlopsPerElement<40>,
    .examples = kPowExamples,
});
Var Pow(Var a, Var b) { return Record(kPow, {a, b}); }

constexpr OpDef kEqual =
    Predicate<kEqual, std::equal_to<>>({.name = "equal",
                                        .kernels = kCompareKernels<Comparison::kEqual, BoolKernel<std::equal_to<>>>,
                                        .examples = kEqualExamples});
Var Equal(Var a, Var b) { return Record(kEqual, {a, b}); }

constexpr OpDef kLess = Predicate<kLess, std::less<>>(
    {.name = "less", .kernels = kCompareKernels<Comparison::kLess>, .examples = kOrderExamples<Less>});
Var Less(Var a, Var b) { return Record(kLess, {a, b}); }

constexpr OpDef kLessEqual = Predicate<kLessEqual, std::less_equal<>>(
    {.name = "less_equal", .kernels = kCompareKernels<Comparison::kLessEqual>, .examples = kOrderExamples<LessEqual>});
Var LessEqual(Var a, Var b) { return Record(kLessEqual, {a, b}); }

constexpr OpDef kAnd = Logic<kAnd, std::logical_and<>>("and");
Var And(Var a, Var b) { return Record(kAnd, {a, b}); }

constexpr OpDef kOr = Logic<kOr, std::logical_or<>>("or");
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
