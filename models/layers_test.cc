#include "weft/models/layers.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(LayersTest, NormsOfBf16HaveGainsInF32) {
  Tape tape;
  const Var x = Cast(tape.Input("x", {kF32, {2, 4}}), kBF16);
  const Var y = LayerNorm("layer", x), z = Norm("rms", x, {.kind = NormKind::kRmsNorm});
  EXPECT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(y.dtype(), kBF16);
  EXPECT_EQ(z.dtype(), kBF16);
  for (const Var weight : tape.Weights()) EXPECT_EQ(weight.dtype(), kF32);
}

TEST(LayersTest, SaysWhatIsNoTable) {
  const auto error = [](DType dtype, int64_t rows, int64_t cols) {
    Tape tape;
    ConstantTable(&tape, dtype, rows, cols, [](int64_t, int64_t) { return 1.0; });
    return std::string(tape.status().message());
  };
  EXPECT_EQ(error(kF64, 3, 0), "");
  EXPECT_THAT(error(kF32, -1, 4), HasSubstr("constant table: wanted f32 or f64, of a shape; inputs f32[-1,4]"));
  EXPECT_THAT(error(kF32, -2, -2), HasSubstr("inputs f32[-2,-2]"));
  EXPECT_THAT(error(kI32, 2, 2), HasSubstr("inputs i32[2,2]"));
}

// The wanted values are those of load_balancing_loss_func in transformers.models.mixtral.modeling_mixtral.
TEST(LayersTest, TheBalanceLossIsThatOfTransformers) {
  const std::vector<std::vector<float>> logits = {{0.5f, -1, 2, 1, 0, -0.5f, 0.25f, 0.75f, -1},  // [row, expert]
                                                  {-2, 1, 0, 0, 1.5f, 1, 3, -1, 0.5f}};
  for (const auto& [layers, per_token, wanted] :
       {std::tuple(size_t{1}, int64_t{2}, 2.0403535), std::tuple(size_t{2}, int64_t{1}, 1.0342979)}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {3, 3}});  // the identity
    EXPECT_FALSE(BalanceLoss(tape));
    for (size_t i = 0; i < layers; ++i) {
      MixtureOfExperts(std::string(1, static_cast<char>('a' + i)), x, {.width = 2},
                       {.experts = 3, .per_token = per_token});
    }
    const Var loss = BalanceLoss(tape);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .mode = kEval});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    for (size_t i = 0; i < layers; ++i) {
      const absl::StatusOr<Tensor> gate = parameters.Find(std::string(1, static_cast<char>('a' + i)) + ".gate.weight");
      ASSERT_TRUE(gate.ok()) << gate.status();
      for (size_t at = 0; at < 9; ++at) gate->as<float>()[at % 3 * 3 + at / 3] = logits[i][at];
    }
    const std::vector<float> identity = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const absl::StatusOr<Outputs> out = runner.Run({{x, identity}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_NEAR(out->Scalar(loss), wanted, 1e-6);
  }
}

TEST(LayersTest, TheSquaredReluOfPrimer) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {4}}), y = Activate(x, Activation::kReluSquared);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const std::vector<float> in = {-2, 0, 0.5f, 3};
  const absl::StatusOr<Outputs> out = runner.Run({{x, in}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[y].span<const float>(), testing::ElementsAre(0, 0, 0.25f, 9));
}

// The wanted value is the mean of PyTorch's kl_div in both directions over the first two rows.
TEST(LayersTest, TheSymmetricDivergenceLeavesOutIgnoredTargets) {
  Tape tape;
  const TensorType type = {kF32, {3, 4}};
  const Var a = tape.Input("a", type), b = tape.Input("b", type), targets = tape.Input("targets", {kI32, {3}});
  const Var loss = SymmetricDivergence(a, b, targets), none = SymmetricDivergence(a, a, targets);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, none}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const std::vector<float> p = {0.5f, -1, 2, 0, 1, 1, 0, -2, 3, 0, 0, 1}, q = {0, 0, 1, 0, 1, 2, 0, -1, 0, 0, 5, 1};
  const std::vector<int32_t> labels = {2, 0, static_cast<int32_t>(kIgnoredTarget)};
  const absl::StatusOr<Outputs> out = runner.Run({{a, p}, {b, q}, {targets, labels}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NEAR(out->Scalar(loss), 0.30389911, 1e-6);
  EXPECT_EQ(out->Scalar(none), 0);
}

TEST(LayersTest, BatchNormOfNoRowsKeepsItsStatistics) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {0, 2}});
  VarList updates;
  const Var y = BatchNorm("norm", x, {}, &updates);
  EXPECT_TRUE(updates.empty());
  EXPECT_EQ(y.shape(), Shape({0, 2}));
  BatchNorm("other", x, {.momentum = std::nan("")}, &updates);
  EXPECT_THAT(std::string(tape.status().message()), HasSubstr("batch_norm: momentum = nan, wanted in [0, 1]"));
}

}  // namespace
}  // namespace weft
