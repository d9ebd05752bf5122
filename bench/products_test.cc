#include "weft/bench/products.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

double Flops(const char* name, int64_t batch, int64_t length) {
  Tape tape;
  const BenchModel& model = *FindBenchModel(name);
  RecordModel(&tape, model, batch, length);
  double sum = 0;
  for (const StepProduct& product : ProductsOf(tape, model))
    sum += product.flops() * static_cast<double>(product.count);
  return sum;
}

// Each token takes 6 flops for each weight it is multiplied with, and 6 · 2 · T · C a layer for scores and values.
TEST(ProductsTest, AreThoseOfTheStep) {
  const double character_weights = 4 * 12 * 128 * 128 + 65 * 128;
  EXPECT_EQ(Flops("charcpu", 12, 64), 12 * 64 * (6 * character_weights + 4 * 12 * 64 * 128));
  const double bert_weights = 12 * 12 * 768 * 768 + 30522 * 768;
  EXPECT_EQ(Flops("bert", 2, 128), 2 * 128 * (6 * bert_weights + 12 * 12 * 128 * 768));
  const double encoder_weights = 6 * 12 * 384 * 384;
  EXPECT_EQ(Flops("minilm-forward", 2, 128), 2 * 128 * (2 * encoder_weights + 6 * 4 * 128 * 384));
}

TEST(ProductsTest, OfCausalAttentionHalfAndTheDiagonalCounts) {
  const double weights = 6 * 12 * 384 * 384 + 65 * 384;
  EXPECT_EQ(Flops("babygpt", 1, 256), 256 * (6 * weights + 6 * 12 * 256 * 384 * 5 / 8));  // 10 of 16 blocks
}

TEST(ProductsTest, TilingsCoverTheProduct) {
  Team team(2);
  for (const GemmShape& shape :
       {GemmShape{.rows = 300, .cols = 500, .inner = 64, .a_stride = 64, .b_stride = 500, .c_stride = 500},
        GemmShape{.batch = 12,
        .rows = 16,
        .cols = 16,
        .inner = 8,
        .a_stride = 8,
        .b_stride = 16,
        .c_stride = 16,
        .a_batch_stride = 128,
        .b_batch_stride = 128,
        .c_batch_stride = 256}}) {
    const Tiling tiling = BestTiling(&team, {.shape = shape, .count = 3}, 1e-3);
    EXPECT_GT(tiling.seconds, 0);
    EXPECT_GT(tiling.batch * tiling.rows * tiling.cols, 0);
    EXPECT_LE(tiling.batch, shape.batch);
    EXPECT_LE(tiling.rows, shape.rows);
    EXPECT_LE(tiling.cols, shape.cols);
  }
}

TEST(ProductsTest, AdamWTakesLongerForMoreWeights) {
  EXPECT_GT(AdamWSeconds(1000, 1, 1e-3), 0);
  EXPECT_GT(AdamWSeconds(100'000'000, 1, 1e-3), AdamWSeconds(1000, 1, 1e-3));
}

}  // namespace
}  // namespace weft
