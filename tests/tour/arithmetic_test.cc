#include "weft/tests/tour/arithmetic.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ArithmeticTest, FindsWrongEquations) {
  Arithmetic arithmetic;
  const char* const right[] = {"d_k = 64   # the width",
                               "√d_k = 8",
                               "2 · 3 + 4 × 5 − 6 / 2 = 23",
                               "2^3 + 3² = 17",
                               "(1 + 2) · -2 = -6",
                               "h = d_k / 8 = 8",
                               "1 / 3 ≈ 0.33",
                               "exp(1) = 2.718 = exp(0.5)^2",
                               "12,345,678 + 1 = 12345679",
                               "√(h + 1) · tanh(0) = 0",
                               "cos(π) + log(1) = -1",
                               "exp(2) ≈ 7",
                               "z = sin(0) = 0.0"};
  for (const char* line : right) EXPECT_EQ(arithmetic.Check(line), "") << line;
  const char* const wrong[] = {"√d_k = 9",
                               "1 / 3 = 0.34",
                               "1 / 3 = 0",
                               "exp(2) = 7",
                               "exp(2) ≈ 8",
                               "2 = 3",
                               "2 · 3 = 6.01",
                               "7",
                               "unknown + 1 = 2",
                               "(1 + 2 = 3",
                               "2 3 = 6",
                               "1.5 = 2",
                               "exp(1) = 2.718 = exp(0.6)^2"};
  for (const char* line : wrong) EXPECT_NE(arithmetic.Check(line), "") << line;
}

}  // namespace
}  // namespace weft
