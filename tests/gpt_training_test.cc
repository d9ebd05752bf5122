// Tests that ten steps of AdamW on small GPTs give PyTorch's losses and gradient norms (tests/gpt_reference.py).
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

struct Row {
  double loss, norm;
};

constexpr Row kPreNormTied[] = {
    {4.520420783, 9.686222103}, {3.120077206, 6.318729125}, {2.396476361, 2.201821638}, {2.118395732, 0.978393355},
    {2.066112665, 1.348384917}, {1.946615424, 1.051074539}, {1.867477380, 1.345545873}, {1.788196642, 0.942858947},
    {1.689051998, 0.841095480}, {1.720504841, 1.727057481},
};
constexpr Row kPostNormUntied[] = {
    {2.887492902, 3.051763383}, {2.497303491, 3.287459829}, {2.159886227, 1.451437608}, {2.225159891, 3.059843879},
    {2.076149359, 1.906057442}, {2.005339643, 2.077357964}, {1.877441923, 1.683605426}, {1.795633310, 1.361622227},
    {1.714569519, 0.966046954}, {1.641548215, 1.497316995},
};

bool IsGain(const std::string& name) {
  return name.find("ln_") != std::string::npos && name.find("weight") != std::string::npos;
}

// The weights of gpt_reference.py: sines, in the order of the names.
void SetWeights(Parameters* parameters) {
  int k = 0;
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    int n = 0;
    for (float& w : parameters->Find(name)->span<float>()) {
      w = static_cast<float>(0.3 * std::sin(0.7 * n++ + k) + (IsGain(name) ? 1 : 0));
    }
    ++k;
  }
}

void ExpectTrainsAsInPyTorch(bool pre_norm, bool tied, absl::Span<const Row> expected) {
  constexpr int64_t kBatch = 3, kLength = 8, kVocabulary = 11;
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var targets = tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var rate = tape.Input("learning_rate", {kF32, {}});
  const Gpt gpt({.vocabulary = kVocabulary,
                 .context = kLength,
                 .layers = 2,
                 .heads = 2,
                 .width = 16,
                 .pre_norm = pre_norm,
                 .tied_head = tied});
  const Var loss = CrossEntropy(gpt.Logits(tokens), targets);
  const Minimized step = AdamW({.beta2 = 0.99, .weight_decay = 0.1, .clip = 1}).Minimize(loss, rate);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, step.gradient_norm}, .update = {step}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 2});
  SetWeights(&parameters);
  std::vector<int32_t> x, y;
  for (int i = 0; i < kBatch * kLength; ++i) {
    x.push_back(i * i % kVocabulary);
    y.push_back((i + 1) * (i + 1) % kVocabulary);
  }
  for (const Row& row : expected) {
    const absl::StatusOr<Outputs> out = runner.Run({{tokens, x}, {targets, y}, {rate, 1e-2f}});
    ASSERT_TRUE(out.ok()) << out.status();
    // Weft computes in f32, the reference in f64. AdamW's first steps have one size for all gradients, so rounding
    // errors of small gradients grow.
    const double tolerance = &row - expected.data() < 4 ? 1e-5 : 5e-4;
    EXPECT_NEAR(out->Scalar(loss), row.loss, 3e-5);
    EXPECT_NEAR(out->Scalar(step.gradient_norm), row.norm, tolerance * row.norm);
  }
}

TEST(GptTrainingTest, PreNormWithTiedHead) { ExpectTrainsAsInPyTorch(true, true, kPreNormTied); }
TEST(GptTrainingTest, PostNormWithItsOwnHead) { ExpectTrainsAsInPyTorch(false, false, kPostNormUntied); }

}  // namespace
}  // namespace weft
