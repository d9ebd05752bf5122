// Compares bf16 products with sums of doubles, on this CPU and, in a second target, as on a CPU without bf16 products.
#include "weft/ops/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/arena.h"
#include "weft/core/random.h"

namespace weft {
namespace {

std::vector<BF16> RandomNumbers(int64_t n, uint64_t seed) {
  const RandomStream random = {.seed = seed};
  std::vector<BF16> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.emplace_back(static_cast<float>(2 * random.Uniform(i) - 1));
  return numbers;
}

template <class In, class Out>
void Multiply(const GemmShape& shape, const In* a, const In* b, Out* c) {
  const auto gemm = Gemm::Create(shape);
  Arena arena;
  gemm->Run(reinterpret_cast<const std::byte*>(a), reinterpret_cast<const std::byte*>(b),
            reinterpret_cast<std::byte*>(c), arena.Allocate(gemm->workspace()));
}

// Runs the product with gaps between rows, which it must not change.
void ExpectProduct(GemmShape shape) {
  shape.a_stride = (shape.transpose_a ? shape.rows : shape.inner) + 3;
  shape.b_stride = (shape.transpose_b ? shape.inner : shape.cols) + 2;
  shape.c_stride = shape.cols + 1;
  shape.a_batch_stride = shape.a_stride * (shape.transpose_a ? shape.inner : shape.rows);
  shape.b_batch_stride = shape.batch > 2 ? 0 : shape.b_stride * (shape.transpose_b ? shape.cols : shape.inner);
  shape.c_batch_stride = shape.c_stride * shape.rows;
  const auto size = [](const GemmShape& s, int64_t batch_stride) { return s.batch * batch_stride + 1; };
  const std::vector<BF16> a = RandomNumbers(size(shape, shape.a_batch_stride), 1);
  const std::vector<BF16> b =
      RandomNumbers(size(shape, shape.b_stride * (shape.transpose_b ? shape.cols : shape.inner)), 2);
  std::vector<float> c(static_cast<size_t>(size(shape, shape.c_batch_stride)), 77);
  std::vector<BF16> rounded(c.begin(), c.end());

  const bool rounds = shape.out == kBF16;
  rounds ? Multiply(shape, a.data(), b.data(), rounded.data()) : Multiply(shape, a.data(), b.data(), c.data());
  const auto magnitudes = [](std::vector<double> numbers) {
    for (double& x : numbers) x = std::abs(x);
    return numbers;
  };
  const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  std::vector<double> sums(c.size(), 77), scales(c.size());  // sums of terms, and of their magnitudes
  PlainGemm(shape, wide_a.data(), wide_b.data(), sums.data());
  PlainGemm(shape, magnitudes(wide_a).data(), magnitudes(wide_b).data(), scales.data());
  for (size_t i = 0; i < c.size(); ++i) {
    const double rounding = rounds ? 0x1p-8 * (std::abs(sums[i]) + 1e-5 * scales[i]) : 1e-6 * scales[i];
    const double tolerance = scales[i] == 0 ? 0 : rounding;  // between rows, numbers stay the same
    ASSERT_NEAR(rounds ? double{rounded[i]} : double{c[i]}, sums[i], tolerance) << "element " << i;
  }
}

TEST(GemmTest, ProductsOfBF16) {
  for (const auto& [rows, cols, inner] : {std::array<int64_t, 3>{1, 1, 1}, {3, 7, 5}, {67, 33, 130}}) {
    for (const int64_t batch : {1, 2, 3}) {
      for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
        GemmShape shape = {.batch = batch, .rows = rows, .cols = cols, .inner = inner, .in = kBF16};
        shape.transpose_a = (flags & 1) != 0;
        shape.transpose_b = (flags & 2) != 0;
        shape.out = (flags & 4) != 0 ? kBF16 : kF32;
        SCOPED_TRACE(testing::Message() << batch << " of " << rows << "x" << cols << "x" << inner << ", flags "
                                        << flags);
        ExpectProduct(shape);
      }
    }
  }
}

// Computes the product of `shape` in tiles, for matrices without gaps. If `shape.accumulate` is set, C holds random
// numbers before.
std::vector<float> InTiles(GemmShape shape, int64_t tile_rows, int64_t tile_cols) {
  const int64_t rows = shape.rows, cols = shape.cols, inner = shape.inner;
  const std::vector<BF16> a = RandomNumbers(rows * inner, 1), b = RandomNumbers(inner * cols, 2);
  const std::vector<BF16> addend = RandomNumbers(rows * cols, 3);
  std::vector<float> c(addend.begin(), addend.end());
  shape.a_stride = shape.b_stride = inner;
  shape.c_stride = cols;
  for (int64_t i = 0; i < rows; i += tile_rows) {
    for (int64_t j = 0; j < cols; j += tile_cols) {
      shape.rows = std::min(tile_rows, rows - i);
      shape.cols = std::min(tile_cols, cols - j);
      Multiply(shape, &a[i * inner], &b[j * inner], &c[i * cols + j]);
    }
  }
  return c;
}

TEST(GemmTest, BitsDoNotDependOnTheSizesOfTiles) {
  for (const bool accumulate : {false, true}) {
    GemmShape shape = {.rows = 70, .cols = 200, .transpose_b = true, .accumulate = accumulate, .in = kBF16};
    for (const int64_t inner : {5, 37, 64, 256}) {
      shape.inner = inner;
      const std::vector<float> whole = InTiles(shape, 70, 200);
      for (const int64_t rows : {1, 17, 70}) {
        for (const int64_t cols : {7, 64}) EXPECT_EQ(InTiles(shape, rows, cols), whole) << rows << " " << cols;
      }
    }
    shape.rows = shape.cols = 600;  // tiles of 128 rows or more copy B to panels before they multiply
    shape.inner = 1024;
    EXPECT_EQ(InTiles(shape, 130, 128), InTiles(shape, 600, 600));
  }
}

// Products of many rows pack B in panels. Here two or more panels are whole and the last one is not.
TEST(GemmTest, PanelsOfTransposedB) {
  constexpr int64_t kRows = 260, kCols = 586, kInner = 1024, kStride = kCols + 5;
  const std::vector<BF16> a = RandomNumbers(kRows * kInner, 1), b = RandomNumbers(kCols * kInner, 2);
  const std::vector<float> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  std::vector<double> wanted(kRows * kCols);
  const std::vector<double> double_a(a.begin(), a.end()), double_b(b.begin(), b.end());
  GemmShape shape = {.rows = kRows,
                     .cols = kCols,
                     .inner = kInner,
                     .a_stride = kInner,
                     .b_stride = kInner,
                     .c_stride = kCols,
                     .transpose_b = true};
  PlainGemm(shape, double_a.data(), double_b.data(), wanted.data());
  shape.c_stride = kStride;
  for (const DType in : {kF32, kBF16}) {
    for (const bool accumulate : {false, true}) {
      std::vector<float> c(kRows * kStride, 77);
      shape.in = in;
      shape.accumulate = accumulate;
      in == kF32 ? Multiply(shape, wide_a.data(), wide_b.data(), c.data())
                 : Multiply(shape, a.data(), b.data(), c.data());
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kStride; ++j) {
          const double sum = j < kCols ? wanted[i * kCols + j] + (accumulate ? 77 : 0) : 77;
          ASSERT_NEAR(c[i * kStride + j], sum, 1e-4) << Name(in) << " " << accumulate << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmTest, SumsOfNothingAreZero) {
  float c[] = {1, 1, 1};
  Multiply<BF16>({.rows = 1, .cols = 2, .c_stride = 2, .in = kBF16, .out = kF32}, nullptr, nullptr, c);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[1], 0);
  EXPECT_EQ(c[2], 1);
}

}  // namespace
}  // namespace weft
