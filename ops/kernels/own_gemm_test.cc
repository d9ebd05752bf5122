// Compares products with sums of doubles, for each instruction set.
#include "weft/ops/kernels/own_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/arena.h"
#include "weft/core/random.h"
#include "weft/ops/kernels/gemm.h"
#include "weft/ops/kernels/instruction_set_test.h"

namespace weft {
namespace {

using OwnGemmTest = InstructionSetTest;

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
          OwnGemm(tile, Bytes(&a[m * shape.a_batch_stride + i * (shape.transpose_a ? 1 : shape.a_stride)]),
                  Bytes(&b[m * shape.b_batch_stride + j * (shape.transpose_b ? shape.b_stride : 1)]),
                  Bytes(&c[m * shape.c_batch_stride + i * shape.c_stride + j]), arena.Allocate(OwnGemmWorkspace(tile)));
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
  const size_t bytes = OwnGemmWorkspace(o.shape);
  std::byte* const workspace = arena.Allocate(bytes + kBeyond);
  std::fill_n(workspace, bytes + kBeyond, kNan);
  OwnGemm(o.shape, o.Bytes(o.a.data()), o.Bytes(o.b.data()), o.Bytes(o.c.data()), workspace);
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

TEST_P(OwnGemmTest, ComputesProducts) {
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

INSTANTIATE_TEST_SUITE_P(InstructionSets, OwnGemmTest, InstructionSets(), InstructionSetName);

}  // namespace
}  // namespace weft
