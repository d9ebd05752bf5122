// Tests the steps of the BenchModels.
#include "weft/bench/step/bench_step.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

// The expected counts are PyTorch's, of the models in bench/peers/pytorch_step.py.
TEST(BenchModelsTest, HaveTheWeightsOfTheirNames) {
  const struct {
    const char* name;
    int64_t weights;
  } rows[] = {{"gpt2", 124'439'808},
              {"bert", 108'890'112},
              {"babygpt", 10'770'816},
              {"charcpu", 809'856},
              {"minilm-forward", 22'565'376}};
  ASSERT_EQ(BenchModels().size(), std::size(rows));
  for (const auto& [name, weights] : rows) {
    const BenchModel* model = FindBenchModel(name);
    ASSERT_NE(model, nullptr) << name;
    Tape tape;
    const BenchStep step = RecordStep(&tape, *model, model->batch, model->length);
    ASSERT_TRUE(tape.status().ok()) << name << ": " << tape.status().message();
    int64_t count = 0;
    for (const Var& weight : tape.Weights()) count += weight.shape().elements();
    EXPECT_EQ(count, weights) << name;
    const double tokens = static_cast<double>(model->batch * model->length);
    EXPECT_EQ(step.flops, model->trains ? 6.0 * weights * tokens : 2.0 * 10'646'784 * tokens) << name;
    EXPECT_EQ(static_cast<bool>(step.update), model->trains) << name;
  }
}

TEST(BenchModelsTest, LengthsBeyondTheContext) {
  Tape tape;
  const BenchStep step = RecordStep(&tape, *FindBenchModel("charcpu"), 1, 100);
  EXPECT_TRUE(tape.status().ok()) << tape.status().message();
  EXPECT_EQ(step.tokens.shape(), (Shape{1, 100}));
}

}  // namespace
}  // namespace weft
