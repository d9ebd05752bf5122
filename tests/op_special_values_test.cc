// Ops and their gradients at NaN, infinities and ties.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_case.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Var GradientOf(Var y, Var x) { return Gradient(Sum(y), {x})[0]; }
Var SecondGradientOf(Var y, Var x) { return GradientOf(GradientOf(y, x), x); }

struct Row {
  const char* name;
  Var (*record)(Var x);  // x [n]
  std::vector<double> x, wanted;
};

// The minimum of x[0] and x[1].
Var MinimumOf(Var x) {
  const VarList parts = Split(x, 0, 2);
  return Minimum(parts[0], parts[1]);
}
Var MaximumOf(Var x) {
  const VarList parts = Split(x, 0, 2);
  return Maximum(parts[0], parts[1]);
}
Var NormOf(Var x) {
  const VarList parts = Split(x, 0, 2);
  return GlobalNorm({parts[0], parts[1]});
}

const Row kRows[] = {
    {"softmax", [](Var x) { return Softmax(x); }, {-kInf, -kInf, -kInf}, {0, 0, 0}},
    {"softmax", [](Var x) { return Softmax(x); }, {0, -kInf, 0}, {0.5, 0, 0.5}},
    {"softmax", [](Var x) { return Softmax(x); }, {0, kInf, 0}, {kNan, kNan, kNan}},
    {"softmax", [](Var x) { return Softmax(x); }, {0, kNan, 0}, {kNan, kNan, kNan}},
    {"softmax gradient",
     [](Var x) { return GradientOf(Softmax(x) * Iota(x.tape, x.dtype(), 3), x); },
     {-kInf, -kInf, -kInf},
     {0, 0, 0}},
    {"softmax gradient",
     [](Var x) { return GradientOf(Softmax(x) * Iota(x.tape, x.dtype(), 3), x); },
     {0, -kInf, 0},
     {-0.5, 0, 0.5}},
    {"log_sum_exp", [](Var x) { return LogSumExp(x, 0); }, {-kInf, -kInf}, {-kInf}},
    {"log_sum_exp gradient", [](Var x) { return GradientOf(LogSumExp(x, 0), x); }, {-kInf, -kInf}, {0, 0}},
    {"log_sum_exp gradient", [](Var x) { return GradientOf(LogSumExp(x, 0), x); }, {-kInf, 3}, {0, 1}},
    {"top_k gradient",  // of x², at infinity
     [](Var x) {
       const Var best = TopK(x, 1)[0];
       return GradientOf(best * best, x);
     },
     {1, kInf, -kInf},
     {0, kInf, 0}},
    {"cumulative_sum gradient",  // sums from the end of 2^70, 1, 1, added without subtractions
     [](Var x) {
       const Var first = Equal(x, FillLike(x, 1));
       return GradientOf(CumulativeSum(x) * MaskFill(FillLike(x, 1), first, 0x1p70), x);
     },
     {1, 0, 0},
     {0x1p70, 2, 1}},
    {"log_softmax", [](Var x) { return LogSoftmax(x); }, {-kInf, -kInf}, {-kInf, -kInf}},
    {"log_softmax", [](Var x) { return LogSoftmax(x); }, {-kInf, 3}, {-kInf, 0}},
    {"log_softmax", [](Var x) { return LogSoftmax(x); }, {kInf, 3}, {kNan, kNan}},
    {"log_softmax", [](Var x) { return LogSoftmax(x); }, {kNan, 3}, {kNan, kNan}},
    {"log_softmax gradient", [](Var x) { return GradientOf(LogSoftmax(x), x); }, {-kInf, -kInf}, {1, 1}},
    {"log_softmax gradient", [](Var x) { return GradientOf(LogSoftmax(x), x); }, {-kInf, 3}, {1, -1}},

    {"clip_scale of a norm", [](Var x) { return Cast(ClipScale(Sum(x), 1), x.dtype()); }, {2, 2}, {1 / (4 + 1e-6)}},
    {"clip_scale of a small norm", [](Var x) { return Cast(ClipScale(Sum(x), 1), x.dtype()); }, {0.25, 0.5}, {1}},
    {"clip_scale of a large norm", [](Var x) { return Cast(ClipScale(Sum(x), 1), x.dtype()); }, {1e30}, {1e-30}},
    {"clip_scale without limit", [](Var x) { return Cast(ClipScale(Sum(x), 0), x.dtype()); }, {2, 3}, {1}},
    {"clip_scale", [](Var x) { return Cast(ClipScale(Sum(x), 1), x.dtype()); }, {kInf}, {kNan}},
    {"clip_scale", [](Var x) { return Cast(ClipScale(Sum(x), 0), x.dtype()); }, {kNan, 1}, {kNan}},
    {"pad", [](Var x) { return Pad(x, 0, 2, 1, -2.5); }, {3, kInf}, {-2.5, -2.5, 3, kInf, -2.5}},
    {"pad of nothing", [](Var x) { return Pad(Slice(x, 0, 1, 1), -1, 1, 1); }, {3}, {0, 0}},
    {"pad gradient", [](Var x) { return GradientOf(Square(Pad(x, 0, 0, 3)), x); }, {3, kInf}, {6, kInf}},

    {"relu", [](Var x) { return Relu(x); }, {kNan, kInf, -kInf, 0}, {kNan, kInf, 0, 0}},
    {"relu gradient", [](Var x) { return GradientOf(Relu(x), x); }, {kNan, kInf, -kInf, 0}, {1, 1, 0, 0}},

    {"minimum", MinimumOf, {kNan, 1}, {kNan}},
    {"minimum", MinimumOf, {1, kNan}, {kNan}},
    {"minimum", MinimumOf, {kInf, -kInf}, {-kInf}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {2, 1}, {0, 1}},
    {"maximum", MaximumOf, {kNan, 1}, {kNan}},
    {"maximum", MaximumOf, {kInf, -kInf}, {kInf}},
    {"maximum gradient", [](Var x) { return GradientOf(MaximumOf(x), x); }, {1, 1}, {1, 0}},
    {"maximum gradient", [](Var x) { return GradientOf(MaximumOf(x), x); }, {1, 2}, {0, 1}},
    {"clamp", [](Var x) { return Clamp(x, -1, 1); }, {kNan, kInf, -kInf, 0.5}, {kNan, 1, -1, 0.5}},
    {"clamp gradient", [](Var x) { return GradientOf(Clamp(x, -1, 1), x); }, {-1, 1, 2, 0}, {1, 1, 0, 1}},
    {"abs", [](Var x) { return Abs(x); }, {kNan, -kInf, -0.0}, {kNan, kInf, 0}},
    {"abs gradient", [](Var x) { return GradientOf(Abs(x), x); }, {-2, 0, 2}, {-1, 0, 1}},
    {"softplus", [](Var x) { return Softplus(x); }, {kNan, kInf, -kInf, 1000}, {kNan, kInf, 0, 1000}},
    {"softplus gradient", [](Var x) { return GradientOf(Softplus(x), x); }, {kInf, -kInf, 0}, {1, 0, 0.5}},
    {"pow", [](Var x) { return Pow(x, Number(x, 0)); }, {0, kNan, kInf}, {1, 1, 1}},
    {"pow gradient", [](Var x) { return GradientOf(Pow(x, Number(x, 0)), x); }, {0, 2, -3}, {0, 0, 0}},
    {"pow gradient by the exponent",  // 0^b
     [](Var b) { return GradientOf(Pow(Number(b, 0), b), b); },
     {0, 3},
     {0, 0}},
    {"less_equal", [](Var x) { return Cast(LessEqual(x, x), x.dtype()); }, {kNan, kInf, 1}, {0, 1, 1}},
    {"norm gradient", [](Var x) { return GradientOf(Norm(x, {0}), x); }, {0, 0}, {0, 0}},
    {"soft cross_entropy of a hidden class",
     [](Var x) {
       return CrossEntropy(Reshape(x, {1, 2}), Reshape(Cast(Greater(x, Number(x, -5)), x.dtype()), {1, 2}));
     },
     {-kInf, 3},
     {0}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {1, 2}, {1, 0}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {1, 1}, {1, 0}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {kNan, 1}, {1, 0}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {1, kNan}, {0, 1}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {kNan, kNan}, {0, 1}},
    {"minimum gradient", [](Var x) { return GradientOf(MinimumOf(x), x); }, {kInf, -kInf}, {0, 1}},

    {"max", [](Var x) { return Max(x, 0); }, {1, kNan, 3}, {kNan}},
    {"max", [](Var x) { return Max(x, 0); }, {-kInf, -kInf}, {-kInf}},
    {"max", [](Var x) { return Max(x, 0); }, {-kInf, kInf}, {kInf}},
    {"max gradient", [](Var x) { return GradientOf(Max(x, 0), x); }, {1, 3, 2}, {0, 1, 0}},
    {"max gradient", [](Var x) { return GradientOf(Max(x, 0), x); }, {3, 1, 3, 2}, {0.5, 0, 0.5, 0}},
    {"max gradient", [](Var x) { return GradientOf(Max(x, 0), x); }, {1, kNan, 3}, {0, 1, 0}},
    {"max gradient", [](Var x) { return GradientOf(Max(x, 0), x); }, {-kInf, -kInf}, {0.5, 0.5}},
    {"max gradient", [](Var x) { return GradientOf(Max(x, 0) * kInf, x); }, {1, 2}, {0, kInf}},

    {"global norm", NormOf, {3, 4}, {5}},
    {"global norm", NormOf, {0, 0}, {0}},
    {"global norm", NormOf, {0, kInf}, {kInf}},
    {"global norm", NormOf, {0, kNan}, {kNan}},
    {"global norm gradient", [](Var x) { return GradientOf(NormOf(x), x); }, {3, 4}, {0.6, 0.8}},
    {"global norm gradient", [](Var x) { return GradientOf(NormOf(x), x); }, {0, 0}, {0, 0}},
    // d/dx_j Σ_i x_i / |x| = 1 / |x| - x_j Σ_i x_i / |x|³
    {"global norm second gradient", [](Var x) { return SecondGradientOf(NormOf(x), x); }, {3, 4}, {0.032, -0.024}},
    {"global norm second gradient", [](Var x) { return SecondGradientOf(NormOf(x), x); }, {0, 0}, {0, 0}},

    {"is nan", [](Var x) { return Cast(IsNan(x), x.dtype()); }, {kNan, kInf, 0}, {1, 0, 0}},
    {"not", [](Var x) { return Cast(Not(Cast(x, kBool)), x.dtype()); }, {0, 2}, {1, 0}},
};

void ExpectRow(const Row& row, DType dtype) {
  SCOPED_TRACE(std::string(row.name) + " in " + std::string(Name(dtype)));
  Tape tape;
  const Var x = tape.Input("x", {dtype, {static_cast<int64_t>(row.x.size())}});
  const Var y = row.record(x);
  const auto compiled = CompiledCase::Make(tape, {y}, {x});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Buffer values(x.type());
  for (size_t i = 0; i < row.x.size(); ++i) values.Set(static_cast<int64_t>(i), row.x[i]);
  const auto got = (*compiled)->Run({values});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->front().elements(), static_cast<int64_t>(row.wanted.size()));
  for (size_t i = 0; i < row.wanted.size(); ++i) {
    const double is = got->front().Get(static_cast<int64_t>(i)), wanted = row.wanted[i];
    const bool same = std::isnan(wanted) ? std::isnan(is) : is == wanted || std::abs(is - wanted) < 1e-6;
    EXPECT_TRUE(same) << "of " << testing::PrintToString(row.x) << " at " << i << ": got " << is << ", wanted "
                      << wanted;
  }
}

TEST(SpecialValuesTest, AreAsWanted) {
  for (const Row& row : kRows) {
    ExpectRow(row, kF32);
    ExpectRow(row, kF64);
  }
}

}  // namespace
}  // namespace weft
