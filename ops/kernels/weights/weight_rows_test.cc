// Compares products with sums of doubles over the decoded weights.
#include "weft/ops/kernels/weights/weight_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/base/arena.h"
#include "weft/core/block_formats.h"
#include "weft/core/random.h"
#include "weft/ops/kernels/instruction_set_test.h"

namespace weft {
namespace {

using WeightRowsTest = InstructionSetTest;
INSTANTIATE_TEST_SUITE_P(InstructionSets, WeightRowsTest, InstructionSets(), InstructionSetName);

std::vector<float> RandomNumbers(int64_t n, uint64_t seed) {
  const RandomStream random = {.seed = seed};
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<float>(2 * random.Uniform(i) - 1));
  return numbers;
}

struct Product {
  int64_t rows, cols, inner;
  DType dtype;
  std::vector<float> a, weights;  // the weights as they are decoded
  std::vector<std::byte> stored;
  Arena arena;

  Product(int64_t rows, int64_t cols, int64_t inner, DType dtype)
      : rows(rows), cols(cols), inner(inner), dtype(dtype), a(RandomNumbers(rows * inner, 1)) {
    weights = RandomNumbers(cols * inner, 2);
    Store();
  }

  // Encodes the weights, and replaces them by what can be decoded.
  void Store() {
    const Tensor tensor = {{kF32, {cols, inner}}, reinterpret_cast<std::byte*>(weights.data())};
    stored.resize(TensorType{dtype, {cols, inner}}.bytes());
    ConvertWeight(tensor, {{dtype, {cols, inner}}, stored.data()});
    ConvertWeight({{dtype, {cols, inner}}, stored.data()}, tensor);
  }

  std::vector<float> Multiply(int64_t first_row, int64_t count) {
    std::vector<float> y(static_cast<size_t>(count * cols), 77);
    const WeightRows w = {.data = stored.data(), .dtype = dtype, .cols = cols, .inner = inner};
    std::byte* const workspace = arena.Allocate(WeightRowsWorkspace(dtype, count, inner));
    // The right tile is computed before the left one. So if the left tile stores beyond its last column, y is wrong.
    const int64_t middle = cols / 3;
    MultiplyWeightRows(w, middle, cols, a.data() + first_row * inner, count, y.data(), workspace);
    MultiplyWeightRows(w, 0, middle, a.data() + first_row * inner, count, y.data(), workspace);
    return y;
  }

  void ExpectNear(double tolerance) {
    const std::vector<float> y = Multiply(0, rows);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += static_cast<double>(a[r * inner + k]) * weights[j * inner + k];
        ASSERT_NEAR(y[r * cols + j], sum, tolerance * std::sqrt(static_cast<double>(inner)))
            << Name(dtype) << " at " << r << ", " << j;
      }
    }
  }
};

const std::vector<DType> kAllFormats = {kF32, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kF16, kQ4_K, kQ5_K, kQ6_K};

// Rounding a to 8 bits moves a sum of `inner` terms by about sqrt(inner) * 0.33 / sqrt(12) / 127 on average.
constexpr double kExact = 1e-6, kRounded = 6e-3;

TEST_P(WeightRowsTest, MultipliesEveryFormat) {
  for (DType dtype : kAllFormats) {
    const double tolerance = IsBlockFormat(dtype) ? kRounded : kExact;
    for (int64_t rows : {0, 1, 2, 3, 7, 16}) {
      for (int64_t inner : {100, 127, 160, 163, 312}) Product(rows, 70, inner, dtype).ExpectNear(tolerance);
    }
    for (int64_t rows : {1, 2, 7}) {
      for (int64_t inner : {0, 1, 3, 31, 32, 33, 35}) Product(rows, 5, inner, dtype).ExpectNear(tolerance);
    }
  }
}

TEST_P(WeightRowsTest, WhatFillsTheLastBlockOfARowHasNoEffect) {
  for (int64_t rows : {1, 3, 16}) {
    Product product(rows, 9, 100, kQ8_0);
    const std::vector<float> wanted = product.Multiply(0, rows);
    const size_t row_bytes = BytesOf(kQ8_0, 100);
    for (size_t end = row_bytes; end <= product.stored.size(); end += row_bytes) {
      std::fill_n(product.stored.begin() + static_cast<int64_t>(end) - 28, 28, std::byte{99});
    }
    EXPECT_EQ(product.Multiply(0, rows), wanted) << rows << " rows";
  }
}

// Small integers are multiplied without any rounding, so the sums must be exact.
TEST_P(WeightRowsTest, AddsIntegersExactly) {
  for (DType dtype : {kQ8_0, kQ4_0}) {
    Product product(9, 37, 288, dtype);
    const int limit = dtype == kQ8_0 ? 127 : 8;
    for (size_t i = 0; i < product.a.size(); ++i)
      product.a[i] = static_cast<float>(static_cast<int>(i * 37 % 255) - 127);
    for (size_t i = 0; i < product.a.size(); i += 32) product.a[i] = 127;
    for (size_t i = 0; i < product.weights.size(); ++i) {
      product.weights[i] = static_cast<float>(static_cast<int>(i * 11 % (2 * limit)) - limit);
      if (i % 32 == 0) product.weights[i] = static_cast<float>(-limit);
    }
    product.Store();
    product.ExpectNear(0);
  }
}

TEST_P(WeightRowsTest, ANumberThatIsNotFiniteMakesItsRowSo) {
  for (float number : {NAN, INFINITY, -INFINITY}) {
    for (int64_t k = 0; k < 100; ++k) {
      for (int64_t rows : {1, 7}) {
        Product product(rows, 9, 100, kQ8_0);
        product.a[k] = number;
        for (int64_t j = 0; const float y : product.Multiply(0, rows)) {
          EXPECT_EQ(std::isfinite(y), j >= 9) << number << " at " << k << ", " << rows << " rows";
          ++j;
        }
      }
    }
  }
}

TEST_P(WeightRowsTest, ARowDoesNotDependOnTheOthers) {
  for (DType dtype : kAllFormats) {
    for (int64_t inner : {32, 96, 288, 100, 313}) {
      Product product(15, 133, inner, dtype);
      const std::vector<float> all = product.Multiply(0, 15);
      for (int64_t count = 1; count <= 11; ++count) {
        const std::vector<float> wanted(all.end() - count * 133, all.end());
        EXPECT_EQ(product.Multiply(15 - count, count), wanted) << Name(dtype) << ", " << count << " rows of " << inner;
      }
    }
  }
}

}  // namespace
}  // namespace weft
