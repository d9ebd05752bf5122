#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/tests/spelling.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr MatMulOptions kStored = {.transpose_b = true};  // w [V, C]

const Spelling kSpellings[] = {
    {"w [V, C]", "[2,9,5] [17,5] i32[2,9]",
     [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2])}; }},
    {"w [C, V]", "[9,5] [5,17] i32[9]", [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1]), v[2])}; }},
    {"with a bias", "[2,9,5] [17,5] i32[2,9] [17]",
     [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1], kStored) + v[3], v[2])}; }},
    {"with a bias first", "[9,5] [5,17] i32[9] [17]",
     [](VarSpan v) { return VarList{CrossEntropy(v[3] + MatMul(v[0], v[1]), v[2])}; }},
    {"reshaped", "[2,9,5] [17,5] i32[18]",
     [](VarSpan v) {
       return VarList{CrossEntropy(Reshape(MatMul(v[0], v[1], kStored), {18, 17}), v[2])};
     }},
    {"reshaped before the bias", "[2,9,5] [17,5] i32[18] [17]",
     [](VarSpan v) {
       return VarList{CrossEntropy(Reshape(MatMul(v[0], v[1], kStored), {18, 17}) + v[3], v[2])};
     }},
    {"smoothed", "[9,5] [17,5] i32[9]",
     [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2], {.label_smoothing = 0.1})}; }},
    {"some ignored", "[60,5] [17,5] i32[60]",
     [](VarSpan v) {
       return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2], {.ignore_index = 3, .label_smoothing = 0.1})};
     }},
    {"a row", "[1,5] [17,5] i32[]",
     [](VarSpan v) { return VarList{CrossEntropy(Reshape(MatMul(v[0], v[1], kStored), {17}), v[2])}; }},
    // The gradient's factor depends on the loss, so that the logits are computed again.
    {"squared", "[9,5] [17,5] i32[9]",
     [](VarSpan v) {
       const Var loss = CrossEntropy(MatMul(v[0], v[1], kStored), v[2]);
       return VarList{loss * loss};
     }},
    {"twice, by one w", "[9,5] [17,5] i32[9] [4,5] i32[4]",
     [](VarSpan v) {
       return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2]) +
                      CrossEntropy(MatMul(v[3], v[1], kStored), v[4]) * 0.5};
     }},
};

TEST(RaiseLinearCrossEntropyTest, Spellings) {
  for (Spelling spelling : kSpellings) {
    SCOPED_TRACE(spelling.name);
    spelling.below = 17;
    for (const DType dtype : {kF32, kF64}) {
      const SpellingResult result = RunSpelling(spelling, dtype);
      EXPECT_THAT(result.declined, IsEmpty());
      EXPECT_GT(result.raised, 0);
      EXPECT_LT(result.difference, dtype == kF32 ? 1e-5 : 1e-10);
      // The logits are computed once, unless the gradient has to wait for the loss.
      const bool again = std::string(spelling.name) == "squared";
      EXPECT_EQ(std::count(result.ops.begin(), result.ops.end(), "cross_entropy"), again ? 2 : result.raised);
    }
  }
}

TEST(RaiseLinearCrossEntropyTest, OnlyIgnoredTargetsGiveNan) {
  const Spelling spelling = {"all ignored", "[9,5] [17,5] i32[9]", [](VarSpan v) {
                               return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2], {.ignore_index = 0})};
                             }};
  Spelling all = spelling;
  all.below = 1;
  const SpellingResult result = RunSpelling(all, kF32);  // fails where only one of the two is NaN
  EXPECT_EQ(result.raised, 1);
}

const Spelling kDeclined[] = {
    {"fetched", "[9,5] [17,5] i32[9]",
     [](VarSpan v) {
       const Var logits = MatMul(v[0], v[1], kStored);
       return VarList{CrossEntropy(logits, v[2]), logits};
     },
     "the logits are fetched"},
    {"other users", "[9,5] [17,5] i32[9]",
     [](VarSpan v) {
       const Var logits = MatMul(v[0], v[1], kStored);
       return VarList{CrossEntropy(logits, v[2]), Softmax(logits)};
     },
     "the logits have other users"},
    {"differentiated by", "[9,5] [17,5] i32[9]",
     [](VarSpan v) {
       const Var logits = MatMul(v[0], v[1], kStored);
       return VarList{Gradient(CrossEntropy(logits, v[2]), {logits})[0]};
     },
     "the logits have other users"},
    {"not one matrix", "[2,9,5] [2,17,5] i32[2,9]",
     [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1], kStored), v[2])}; }, "one matrix of weights"},
    {"no bias", "[9,5] [17,5] i32[9] [9,17]",
     [](VarSpan v) { return VarList{CrossEntropy(MatMul(v[0], v[1], kStored) + v[3], v[2])}; }, "not a bias f64[17]"},
    {"differentiated twice", "[9,5] [17,5] i32[9]",
     [](VarSpan v) {
       const Var gradient = Gradient(CrossEntropy(MatMul(v[0], v[1], kStored), v[2]), {v[1]})[0];
       return VarList{Sum(gradient * gradient)};
     },
     "it is differentiated twice"},
};

TEST(RaiseLinearCrossEntropyTest, Declined) {
  for (Spelling spelling : kDeclined) {
    SCOPED_TRACE(spelling.name);
    spelling.below = 17;
    const SpellingResult result = RunSpelling(spelling, kF64);
    EXPECT_THAT(result.declined, Contains(HasSubstr(spelling.declined)));
    EXPECT_EQ(result.raised, 0);
    EXPECT_EQ(result.difference, 0);
  }
}

struct Loss {
  Tape tape;
  Var tokens, loss, step;

  Loss(int64_t rows, int64_t width, int64_t vocabulary) {
    const Var x = tape.Parameter("x", {kF32, {rows, width}}, Gaussian(1));
    const Var w = tape.Parameter("w", {kF32, {vocabulary, width}}, Gaussian(1));
    tokens = tape.Input("targets", {kI32, {rows}}, {.below = vocabulary});
    loss = CrossEntropy(MatMul(x, w, kStored), tokens);
    const VarList gradients = Gradient(loss, {x, w});
    const VarList updates = {Assign(x, x - gradients[0]), Assign(w, w - gradients[1])};
    step = tape.Group(updates);
  }
};

// The logits are 1.6 GB, in blocks of less than 80 MB each. The largest other value is dw.
TEST(RaiseLinearCrossEntropyTest, HoldsTheLogitsOfOneBlock) {
  const Loss loss(8192, 8, 50257);
  const auto planned = [&](const CompileOptions& options) {
    const absl::StatusOr<Graph> graph = Compile(loss.tape, options);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->compiled().memory.planned : 0;
  };
  EXPECT_LT(planned({.fetch = {loss.loss}, .update = {loss.step}}), size_t{90} << 20);
  EXPECT_LT(planned({.fetch = {loss.loss}, .mode = kEval}), size_t{80} << 20);
  EXPECT_GT(planned({.fetch = {loss.loss}, .update = {loss.step}, .without = {Pass::kRaise}}), size_t{1500} << 20);
}

// Several blocks give the same bits on any number of threads, and the loss of the elementary form.
TEST(RaiseLinearCrossEntropyTest, BlocksGiveTheSameBitsOnAnyThreads) {
  constexpr int64_t kRows = 130, kVocabulary = 300000;
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < kRows; ++r) targets.push_back(static_cast<int32_t>(r * 2003 % kVocabulary));
  std::vector<double> losses;
  for (const int threads : {1, 4, 1}) {
    const Loss loss(kRows, 3, kVocabulary);
    const PassSet without = losses.size() < 2 ? PassSet() : PassSet({Pass::kRaise});
    const Graph graph = *Compile(loss.tape, {.fetch = {loss.loss}, .update = {loss.step}, .without = without});
    Parameters parameters({.seed = 1});
    Runner runner(graph, &parameters, {.threads = threads});
    double value = 0;
    for (int step = 0; step < 2; ++step) value = runner.Run({{loss.tokens, targets}})->Scalar(loss.loss);
    losses.push_back(value);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[2], 1e-5 * losses[2]);
}

}  // namespace
}  // namespace weft
