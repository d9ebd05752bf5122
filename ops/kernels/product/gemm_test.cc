// Compares products with sums of doubles, for each instruction set. gemm_search compares tiles bit by bit.
#include "weft/ops/kernels/product/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/core/random.h"
#include "weft/ops/kernels/instruction_set_test.h"

namespace weft {
namespace {

using GemmTest = InstructionSetTest;

// Random numbers that bf16 holds exactly.
template <class T>
std::vector<T> Numbers(int64_t n, uint64_t seed) {
  const RandomStream random = {.seed = seed};
  std::vector<T> numbers;
  for (int64_t i = 0; i < n; ++i) {
    numbers.push_back(static_cast<T>(static_cast<float>(BF16(static_cast<float>(2 * random.Uniform(i) - 1)))));
  }
  return numbers;
}

template <class In, class Out>
void Multiply(const GemmShape& shape, const In* a, const In* b, Out* c) {
  Arena arena;
  Gemm(shape, reinterpret_cast<const std::byte*>(a), reinterpret_cast<const std::byte*>(b),
       reinterpret_cast<std::byte*>(c), arena.Allocate(GemmWorkspace(shape)));
}

// Holds the operands of a batch of products with gaps between rows. C begins as 77.
template <class T>
struct Operands {
  GemmShape shape;
  std::vector<T> a, b;
  std::vector<float> c;

  explicit Operands(GemmShape s) : shape(s) {
    const int64_t a_rows = s.transpose_a ? s.inner : s.rows, b_rows = s.transpose_b ? s.cols : s.inner;
    shape.a_stride = (s.transpose_a ? s.rows : s.inner) + 3;
    shape.b_stride = (s.transpose_b ? s.inner : s.cols) + 2;
    shape.c_stride = s.cols + 1;
    shape.a_batch_stride = a_rows * shape.a_stride;
    shape.b_batch_stride = b_rows * shape.b_stride;
    shape.c_batch_stride = s.rows * shape.c_stride;
    shape.in = std::is_same_v<T, BF16> ? kBF16 : kF32;
    a = Numbers<T>(s.batch * shape.a_batch_stride, 1);
    b = Numbers<T>(s.batch * shape.b_batch_stride, 2);
    c.assign(static_cast<size_t>(s.batch * shape.c_batch_stride), 77);
  }

  // Computes C in tiles of `rows` and `cols`, each of one matrix.
  void Run(int64_t rows, int64_t cols) {
    Arena arena;
    for (int64_t m = 0; m < shape.batch; ++m) {
      for (int64_t i = 0; i < shape.rows; i += rows) {
        for (int64_t j = 0; j < shape.cols; j += cols) {
          GemmShape tile = shape;
          tile.batch = 1;
          tile.rows = std::min(rows, shape.rows - i);
          tile.cols = std::min(cols, shape.cols - j);
          Gemm(tile, Bytes(&a[m * shape.a_batch_stride + i * (shape.transpose_a ? 1 : shape.a_stride)]),
               Bytes(&b[m * shape.b_batch_stride + j * (shape.transpose_b ? shape.b_stride : 1)]),
               Bytes(&c[m * shape.c_batch_stride + i * shape.c_stride + j]), arena.Allocate(GemmWorkspace(tile)));
        }
      }
    }
  }

  static std::byte* Bytes(auto* element) { return reinterpret_cast<std::byte*>(element); }
};

// Rounding errors of a sum of n terms of at most 1 grow about as √n · 2^-24 times the partial sums. The tolerance is
// several times that. The workspace begins as NaN, and must not be written beyond its end.
template <class T>
void ExpectProduct(const GemmShape& s) {
  Operands<T> o(s);
  constexpr size_t kBeyond = 4096;
  constexpr std::byte kNan{0xff};
  Arena arena;
  const size_t bytes = GemmWorkspace(o.shape);
  std::byte* const workspace = arena.Allocate(bytes + kBeyond);
  std::fill_n(workspace, bytes + kBeyond, kNan);
  Gemm(o.shape, o.Bytes(o.a.data()), o.Bytes(o.b.data()), o.Bytes(o.c.data()), workspace);
  EXPECT_TRUE(std::all_of(workspace + bytes, workspace + bytes + kBeyond, [](std::byte b) { return b == kNan; }));
  const std::vector<double> a(o.a.begin(), o.a.end()), b(o.b.begin(), o.b.end());
  for (int64_t m = 0; m < s.batch; ++m) {
    GemmShape one = o.shape;
    one.batch = 1;
    std::vector<double> wanted(static_cast<size_t>(o.shape.c_batch_stride), 77);
    PlainGemm(one, a.data() + m * one.a_batch_stride, b.data() + m * one.b_batch_stride, wanted.data());
    const double tolerance = 1e-6 * std::sqrt(static_cast<double>(s.inner)) + (s.accumulate ? 1e-5 : 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(o.c[m * one.c_batch_stride + i], wanted[i], tolerance) << "matrix " << m << ", element " << i;
    }
  }
  Operands<T> in_tiles(s);
  in_tiles.Run(/*rows=*/7, /*cols=*/24);
  EXPECT_EQ(in_tiles.c, o.c) << "bits depend on the sizes of tiles";
}

TEST_P(GemmTest, ComputesProducts) {
  for (const auto& [rows, cols, inner] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 7, 5}, {6, 16, 8}, {8, 48, 600}, {67, 33, 130}, {41, 70, 600}}) {
    for (const int flags : {0, 1, 2, 3, 4, 7}) {
      GemmShape shape = {.batch = 2, .rows = rows, .cols = cols, .inner = inner};
      shape.transpose_a = (flags & 1) != 0;
      shape.transpose_b = (flags & 2) != 0;
      shape.accumulate = (flags & 4) != 0;
      SCOPED_TRACE(testing::Message() << rows << "x" << cols << "x" << inner << " " << flags);
      ExpectProduct<float>(shape);
      ExpectProduct<BF16>(shape);
    }
  }
}

// A bf16 result is the f32 result, rounded once.
TEST_P(GemmTest, RoundsResultsToBF16) {
  GemmShape shape = {
      .rows = 41, .cols = 70, .inner = 600, .a_stride = 600, .b_stride = 70, .c_stride = 71, .in = kBF16};
  const std::vector<BF16> a = Numbers<BF16>(41 * 600, 1), b = Numbers<BF16>(600 * 70, 2);
  std::vector<float> c(41 * 71, 77);
  std::vector<BF16> rounded(c.begin(), c.end());
  Multiply(shape, a.data(), b.data(), c.data());
  shape.out = kBF16;
  Multiply(shape, a.data(), b.data(), rounded.data());
  for (size_t i = 0; i < c.size(); ++i) EXPECT_EQ(float{rounded[i]}, float{BF16(c[i])}) << "element " << i;
}

// Computes the product of `shape` in tiles, for matrices without gaps. If `shape.accumulate` is set, C holds random
// numbers before.
std::vector<float> InTiles(GemmShape shape, int64_t tile_rows, int64_t tile_cols) {
  const int64_t rows = shape.rows, cols = shape.cols, inner = shape.inner;
  const std::vector<BF16> a = Numbers<BF16>(rows * inner, 1), b = Numbers<BF16>(inner * cols, 2);
  const std::vector<BF16> addend = Numbers<BF16>(rows * cols, 3);
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

TEST_P(GemmTest, BitsDoNotDependOnTheSizesOfTiles) {
  for (const bool accumulate : {false, true}) {
    GemmShape shape = {.rows = 70, .cols = 200, .transpose_b = true, .accumulate = accumulate, .in = kBF16};
    for (const int64_t inner : {5, 37, 64, 256}) {
      shape.inner = inner;
      const std::vector<float> whole = InTiles(shape, 70, 200);
      for (const int64_t rows : {1, 17, 70}) {
        for (const int64_t cols : {7, 64}) EXPECT_EQ(InTiles(shape, rows, cols), whole) << rows << " " << cols;
      }
    }
    shape.rows = shape.cols = 600;
    shape.inner = 1024;
    EXPECT_EQ(InTiles(shape, 130, 128), InTiles(shape, 600, 600));
  }
}

TEST_P(GemmTest, SumsOfNothingAreZero) {
  float c[] = {1, 1, 1};
  Multiply<BF16>({.rows = 1, .cols = 2, .c_stride = 2, .in = kBF16, .out = kF32}, nullptr, nullptr, c);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[1], 0);
  EXPECT_EQ(c[2], 1);
}

TEST_P(GemmTest, ProductsWithoutElementsWriteNothing) {
  for (const auto& [rows, cols] : {std::pair{0, 2}, {2, 0}}) {
    float c[] = {1};
    Multiply<float>({.rows = rows, .cols = cols, .inner = 3, .a_stride = 3, .b_stride = cols, .c_stride = cols},
                    nullptr, nullptr, c);
    EXPECT_EQ(c[0], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, GemmTest, InstructionSets(), InstructionSetName);

}  // namespace
}  // namespace weft
