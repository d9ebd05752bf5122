#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/ops.h"
#include "weft/tests/spelling.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kEpsilon = 1e-3;

Var Centred(Var x) { return x - Mean(x, -1, true); }
Var Variance(Var x) { return Mean(Centred(x) * Centred(x), -1, true); }
Var Deviation(Var x) { return Sqrt(Variance(x) + kEpsilon); }
Var RootMeanSquare(Var x) { return Sqrt(Mean(x * x, -1, true) + kEpsilon); }

// The inputs are x [B, T, C] or [B, C], a gain and a bias [C].
const Spelling kLayerNorms[] = {
    {"divided", "[2,3,67] [67] [67]", [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0]) * v[1] + v[2]}; }},
    {"times the reciprocal", "[3,67] [67] [67]",
     [](VarSpan v) { return VarList{Centred(v[0]) * (1 / Deviation(v[0])) * v[1] + v[2]}; }},
    {"gain on the reciprocal", "[3,67] [67] [67]",
     [](VarSpan v) { return VarList{v[2] + Centred(v[0]) * (v[1] / Deviation(v[0]))}; }},
    {"gain first", "[3,67] [67] [67]",
     [](VarSpan v) { return VarList{v[1] * Centred(v[0]) / Deviation(v[0]) + v[2]}; }},
    {"no gain, no bias", "[3,130]", [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0])}; }},
    {"no bias", "[3,5] [5]", [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0]) * v[1]}; }},
    {"no gain", "[3,5] [5]", [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0]) + v[1]}; }},
    {"gain with leading axes of 1", "[2,3,5] [1,1,5] [1,5]",
     [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0]) * v[1] + v[2]}; }},
    {"means without keep", "[4,5]",
     [](VarSpan v) {
       const Var centred = v[0] - Reshape(Mean(v[0], -1), {4, 1});
       return VarList{centred / Sqrt(Reshape(Mean(centred * centred, 1), {4, 1}) + kEpsilon)};
     }},
    {"sums divided by C", "[4,67]",
     [](VarSpan v) {
       const Var centred = v[0] - Sum(v[0], -1, true) / 67;
       return VarList{centred / Sqrt(kEpsilon + Sum(centred * centred, -1, true) * (1.0 / 67))};
     }},
    {"E[x²] - E[x]²", "[4,67] [67]",
     [](VarSpan v) {
       const Var mean = Mean(v[0], -1, true);
       return VarList{(v[0] - mean) / Sqrt(Mean(v[0] * v[0], -1, true) - mean * mean + kEpsilon) * v[1]};
     }},
    {"one row", "[5] [5]", [](VarSpan v) { return VarList{Centred(v[0]) / Deviation(v[0]) * v[1]}; }},
};

const Spelling kRmsNorms[] = {
    {"divided", "[2,3,67] [67]", [](VarSpan v) { return VarList{v[0] / RootMeanSquare(v[0]) * v[1]}; }},
    {"times the reciprocal", "[3,67] [67]",
     [](VarSpan v) { return VarList{v[1] * (v[0] * (1 / RootMeanSquare(v[0])))}; }},
    {"no gain", "[3,130]", [](VarSpan v) { return VarList{v[0] / RootMeanSquare(v[0])}; }},
    {"then a bias, which it has not", "[3,5] [5] [5]",
     [](VarSpan v) { return VarList{v[0] / RootMeanSquare(v[0]) * v[1] + v[2]}; }},
    {"then another tensor", "[3,5] [5] [3,5]",
     [](VarSpan v) { return VarList{v[0] / RootMeanSquare(v[0]) * v[1] * v[2]}; }},
    {"two gains", "[3,5] [5] [5]", [](VarSpan v) { return VarList{v[0] / RootMeanSquare(v[0]) * v[1] * v[2]}; }},
    {"of what was centred on something else", "[3,5] [3,1]",
     [](VarSpan v) { return VarList{(v[0] - v[1]) / RootMeanSquare(v[0] - v[1])}; }},
};

const Spelling kDeclined[] = {
    {"no epsilon", "[3,5]", [](VarSpan v) { return VarList{Centred(v[0]) / Sqrt(Variance(v[0]))}; },
     "no epsilon above 0"},
    {"epsilon outside", "[3,5]", [](VarSpan v) { return VarList{Centred(v[0]) / (Sqrt(Variance(v[0])) + kEpsilon)}; },
     "epsilon is added to the root"},
    {"divided by C - 1", "[3,5]",
     [](VarSpan v) {
       return VarList{Centred(v[0]) / Sqrt(Sum(Centred(v[0]) * Centred(v[0]), -1, true) / 4 + kEpsilon)};
     },
     "a sum over 5 elements is divided by 4"},
    {"another axis", "[3,5]", [](VarSpan v) { return VarList{v[0] / Sqrt(Mean(v[0] * v[0], 0, true) + kEpsilon)}; },
     "the last axis"},
    {"the deviation is a result", "[3,5]",
     [](VarSpan v) {
       return VarList{Centred(v[0]) / Deviation(v[0]), Deviation(v[0])};
     },
     "its sqrt has other users"},
};

void Check(const Spelling& spelling, const char* op, const char* other) {
  SCOPED_TRACE(spelling.name);
  for (const DType dtype : {kF32, kF64}) {
    const SpellingResult result = RunSpelling(spelling, dtype);
    EXPECT_LT(result.difference, dtype == kF32 ? 1e-5 : 1e-10);
    if (spelling.declined[0] == '\0') {
      EXPECT_THAT(result.ops, Contains(op).Times(1));
      EXPECT_THAT(result.ops, Contains(std::string(op) + "_gradient").Times(1));
    } else {
      EXPECT_THAT(result.ops, Not(Contains(op)));
      EXPECT_THAT(result.declined, Contains(HasSubstr(spelling.declined)));
    }
    EXPECT_THAT(result.ops, Not(Contains(other)));
  }
}

TEST(RaiseNormsTest, LayerNorms) {
  for (const Spelling& spelling : kLayerNorms) Check(spelling, "layer_norm", "rms_norm");
}

TEST(RaiseNormsTest, RmsNorms) {
  for (const Spelling& spelling : kRmsNorms) Check(spelling, "rms_norm", "layer_norm");
}

// Such a row divides each column by the root of another row.
TEST(RaiseNormsTest, RootsOfRowsThatBecomeARowAreNoNorm) {
  const Spelling kRows[] = {
      {"root", "[3,3]", [](VarSpan v) { return VarList{v[0] / Reshape(RootMeanSquare(v[0]), {3})}; }},
      {"centred", "[3,3]", [](VarSpan v) { return VarList{Centred(v[0]) / Reshape(Deviation(v[0]), {3})}; }},
      {"sum", "[3,3]",
       [](VarSpan v) { return VarList{v[0] / Sqrt(Reshape(Mean(v[0] * v[0], -1, true) + kEpsilon, {3}))}; }},
      {"scalars", "[3,3]", [](VarSpan v) { return VarList{v[0] * (Sum(v[0]) / Sqrt(Sum(v[0] * v[0]) + kEpsilon))}; }},
  };
  for (const Spelling& spelling : kRows) {
    SCOPED_TRACE(spelling.name);
    const SpellingResult result = RunSpelling(spelling, kF32);
    EXPECT_LT(result.difference, 1e-5);
    EXPECT_THAT(result.ops, Not(Contains("rms_norm")));
    EXPECT_THAT(result.ops, Not(Contains("layer_norm")));
  }
}

TEST(RaiseNormsTest, Declined) {
  for (const Spelling& spelling : kDeclined) Check(spelling, "layer_norm", "rms_norm");
}

TEST(RaiseNormsTest, WhatIsDifferentiatedByStays) {
  const Spelling spelling = {"by the mean", "[3,5]", [](VarSpan v) {
                               const Var mean = Mean(v[0], -1, true), centred = v[0] - mean;
                               const Var y = centred / Sqrt(Mean(centred * centred, -1, true) + kEpsilon);
                               return VarList{y, Gradient(Sum(y * y * y), {mean})[0]};
                             }};
  const SpellingResult result = RunSpelling(spelling, kF64);
  EXPECT_THAT(result.ops, Not(Contains("layer_norm")));
  EXPECT_EQ(result.difference, 0);
}

TEST(RaiseNormsTest, SecondGradientsAreThoseOfTheSpelling) {
  for (const bool centred : {true, false}) {
    static constexpr auto square = [](Var gradient) { return Sum(gradient * gradient); };
    const Spelling layer = {"layer", "[3,5] [5]", [](VarSpan v) {
                              const Var y = Centred(v[0]) / Deviation(v[0]) * v[1];
                              return VarList{square(Gradient(Sum(y * y * y), {v[0]})[0])};
                            }};
    const Spelling rms = {"rms", "[3,5] [5]", [](VarSpan v) {
                            const Var y = v[0] / RootMeanSquare(v[0]) * v[1];
                            return VarList{square(Gradient(Sum(y * y * y), {v[0]})[0])};
                          }};
    EXPECT_LT(RunSpelling(centred ? layer : rms, kF64).difference, 1e-10);
  }
}

}  // namespace
}  // namespace weft
