#include "weft/graph/run/runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/ops/ops.h"
#include "weft/tests/random_program.h"

namespace weft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph CompileOrDie(const Tape& tape, const CompileOptions& options) {
  absl::StatusOr<Graph> graph = Compile(tape, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<float> Floats(const Tensor& tensor) { return {tensor.span<float>().begin(), tensor.span<float>().end()}; }

class FeedTest : public ::testing::Test {
 protected:
  std::string Error(std::initializer_list<FeedPair> feeds) {
    Runner runner(CompileOrDie(tape_, {.fetch = {y_}}), &parameters_, {.threads = 1});
    return std::string(runner.Run(feeds).status().message());
  }

  Tape tape_;
  Var table_ = tape_.Input("table", {kF32, {5, 2}});
  Var ids_ = tape_.Input("ids", {kI32, {2, 3}}, {.below = 5});
  Var y_ = Embedding(table_, ids_);
  Parameters parameters_;
  std::vector<float> values_ = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<int32_t> good_ = {0, 1, 2, 3, 4, 0};
};

TEST_F(FeedTest, RunsAndReturnsWhatWasFetched) {
  Runner runner(CompileOrDie(tape_, {.fetch = {y_}}), &parameters_, {.threads = 1});
  const absl::StatusOr<Outputs> out = runner.Run({{table_, values_}, {ids_, std::vector<int32_t>{0, 4, 0, 1, 1, 2}}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats((*out)[y_]), ElementsAre(0, 1, 8, 9, 0, 1, 2, 3, 2, 3, 4, 5));
}

using FeedDeathTest = FeedTest;

TEST_F(FeedDeathTest, NamesAVarThatWasNotFetched) {
  Runner runner(CompileOrDie(tape_, {.fetch = {y_}}), &parameters_, {.threads = 1});
  const Outputs out = *runner.Run({{table_, values_}, {ids_, good_}});
  EXPECT_DEATH(out[table_], "this Var was not fetched: input, f32\\[5,2\\]; add it to CompileOptions::fetch");
  const Scope scope(&tape_, "head");
  EXPECT_DEATH(out[Exp(y_)], "this Var was not fetched: exp of 'head', f32\\[2,3,2\\]; ");
}

TEST_F(FeedTest, NamesWhatIsMissingWrongOrTwice) {
  EXPECT_EQ(Error({{table_, values_}}), "input 'ids' i32[2,3] was not fed");
  EXPECT_EQ(Error({{table_, good_}, {ids_, good_}}), "input 'table': fed i32[6], wanted f32[5,2]");
  EXPECT_EQ(Error({{table_, values_}, {table_, values_}, {ids_, good_}}), "input 'table' is fed twice");
  EXPECT_THAT(Error({{y_, values_}}), HasSubstr("which is not an input"));
  Tape other;
  EXPECT_THAT(Error({{other.Input("x", {kF32, {10}}), values_}}), HasSubstr("not on the graph's tape"));
}

TEST_F(FeedTest, NamesThePositionOfAnIndexOutOfBounds) {
  EXPECT_EQ(Error({{table_, values_}, {ids_, std::vector<int32_t>{0, 1, 2, 3, 4, 5}}}),
            "input 'ids' i32[2,3]: 5 at [1,2] is not below 5 and at least 0");
  EXPECT_THAT(Error({{table_, values_}, {ids_, std::vector<int32_t>{0, -2, 2, 3, 4, 0}}}), HasSubstr("-2 at [0,1]"));
}

TEST_F(FeedTest, TakesTheIgnoredIndexThatWasDeclared) {
  const Var targets = tape_.Input("targets", {kI32, {5}}, {.below = 2, .ignored = -1});
  y_ = CrossEntropy(table_, targets, {.ignore_index = -1});
  EXPECT_EQ(Error({{table_, values_}, {targets, std::vector<int32_t>{0, 1, -1, 1, -1}}}), "");
  EXPECT_THAT(Error({{table_, values_}, {targets, std::vector<int32_t>{0, 1, -1, 1, -2}}}), HasSubstr("-2 at [4]"));
}

TEST_F(FeedTest, VarsRecordedLaterAreNoInputsOfTheGraph) {
  Runner runner(CompileOrDie(tape_, {.fetch = {y_}}), &parameters_, {.threads = 1});
  const Var late = tape_.Input("late", {kF32, {}});
  EXPECT_TRUE(runner.Run({{table_, values_}, {ids_, good_}, {late, 1.0f}}).ok());
  const Var bad = tape_.Input("late", {kF32, {}});
  EXPECT_THAT(runner.Run({{table_, values_}, {ids_, good_}, {bad, 1.0f}}).status().message(),
              HasSubstr("another input has this name"));
}

TEST(RunnerTest, AnInputWithoutElementsIsFedByAnEmptyArray) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {0, 3}});
  const Var y = Sum(x);
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {y}}), &parameters);
  const std::vector<float> nothing;
  EXPECT_EQ(runner.Run({{x, nothing}})->Scalar(y), 0);
  EXPECT_EQ(runner.Run({{x, nothing}, {x, nothing}}).status().message(), "input 'x' is fed twice");
  EXPECT_THAT(runner.Run({}).status().message(), HasSubstr("was not fed"));
}

TEST(RunnerTest, WhatIsFetchedOutlivesWhatWasFed) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var y = Dropout(x, 0.5), z = Reshape(x, {2, 1});
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {x, y, z}, .mode = kEval}), &parameters);
  absl::StatusOr<Outputs> out;
  {
    std::vector<float> fed = {1, 2};
    out = runner.Run({{x, fed}});
    ASSERT_TRUE(out.ok()) << out.status();
    fed = {3, 4};
  }
  for (Var v : {x, y, z}) EXPECT_THAT(Floats((*out)[v]), ElementsAre(1, 2));
}

TEST(RunnerTest, WritesStateInOrderAndKeepsOldVersionsForThoseWhoReadThem) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF32, {2}}, Ones());
  const Var before = w * 10.0;
  const Var next = Assign(w, w * 2.0);
  const Var after = next * 10.0;
  const Var view = Reshape(w, {2, 1}), late = Exp(view * 0.0) * view;  // of the old version, read after its write
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {w, before, after, late, view}, .update = {next}}), &parameters,
                {.threads = 2});
  for (int run = 0; run < 5; ++run) {
    const absl::StatusOr<Outputs> out = runner.Run({});
    ASSERT_TRUE(out.ok()) << out.status();
    const float old = static_cast<float>(1 << run);
    EXPECT_THAT(Floats((*out)[w]), Each(old));
    EXPECT_THAT(Floats((*out)[before]), Each(10 * old));
    EXPECT_THAT(Floats((*out)[after]), Each(20 * old));
    EXPECT_THAT(Floats((*out)[late]), Each(old));
    EXPECT_THAT(Floats((*out)[view]), Each(old));
    EXPECT_EQ(parameters.step(), static_cast<uint32_t>(run + 1));
  }
  EXPECT_THAT(Floats(*parameters.Find("w")), Each(32));
}

TEST(RunnerTest, RefusesANullPolicy) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {Tanh(x)}}), &parameters, {.policy = nullptr});
  EXPECT_THAT(std::string(runner.status().message()), HasSubstr("policy is null"));
}

// Only updates advance the step. So text that is generated between steps changes no random draw of the training.
TEST(RunnerTest, WritingACacheIsNoUpdate) {
  for (const bool with_state : {false, true}) {
    Tape tape;
    Var cache = tape.State("cache", {kF32, {2}}, Zeros(), ParameterKind::kCache);
    for (int i = 0; i < 2; ++i) cache = Assign(cache, cache + 1.0);
    VarList updates = {cache};
    const Var state = tape.State("state", {kF32, {2}}, Zeros());
    if (with_state) updates.push_back(Assign(state, cache));
    Parameters parameters;
    Runner runner(CompileOrDie(tape, {.update = updates}), &parameters);
    ASSERT_TRUE(runner.Run({}).ok());
    EXPECT_THAT(Floats(*parameters.Find("cache")), Each(2));
    EXPECT_EQ(parameters.step(), with_state ? 1 : 0);
  }
}

// Each row moves to the position of the next row. The op must read the rows as they were before the write.
TEST(RunnerTest, ACacheCanBeAppendedToItself) {
  Tape tape;
  const Var cache = tape.State("cache", {kF32, {1, 1, 3, 1}}, Zeros(), ParameterKind::kCache);
  const Var rows = tape.Input("rows", {kF32, {1, 1, 3, 1}});
  const Var there = tape.Input("there", {kI32, {1, 3}}, {.below = 3});
  const Var next = tape.Input("next", {kI32, {1, 3}}, {.below = 3});
  const Var filled = CacheAppend(cache, rows, there), turned = CacheAppend(filled, filled, next);
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {turned}}), &parameters, {.threads = 1});
  const absl::StatusOr<Outputs> out = runner.Run({{rows, std::vector<float>{1, 2, 3}},
                                                  {there, std::vector<int32_t>{0, 1, 2}},
                                                  {next, std::vector<int32_t>{1, 2, 0}}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats((*out)[turned]), ElementsAre(3, 1, 2));
}

TEST(RunnerTest, RefusesASecondRunnerAtOnce) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF32, {}}, Ones());
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {w * 2.0}}), &parameters);
  ASSERT_TRUE(parameters.TryLock());
  EXPECT_THAT(runner.Run({}).status().message(), HasSubstr("these parameters are in use"));
  parameters.Unlock();
  EXPECT_TRUE(runner.Run({}).ok());
}

TEST(RunnerTest, RefusesAParameterOfAnotherType) {
  Tape first, second;
  Parameters parameters;
  Runner a(CompileOrDie(first, {.fetch = {Exp(first.Parameter("w", {kF32, {2}}, Ones()))}}), &parameters);
  Runner b(CompileOrDie(second, {.fetch = {Exp(second.Parameter("w", {kF32, {3}}, Ones()))}}), &parameters);
  EXPECT_TRUE(a.Run({}).ok());
  EXPECT_EQ(b.Run({}).status().message(), "parameter 'w' is f32[2] here, but the graph wants f32[3]");
}

TEST(RunnerTest, NamesTheFirstOpThatMakesANan) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  Var y;
  {
    const Scope scope(&tape, "mlp");
    y = Exp(Log(x) * 2.0);
  }
  Parameters parameters;
  Runner runner(CompileOrDie(tape, {.fetch = {y}}), &parameters, {.check_nan = true});
  ASSERT_TRUE(runner.Run({{x, std::vector<float>{1, 0}}}).ok());
  EXPECT_EQ(runner.first_nan(), "");  // log 0 is -inf, exp of that 0
  ASSERT_TRUE(runner.Run({{x, std::vector<float>{1, -1}}}).ok());
  EXPECT_EQ(runner.first_nan(), "log f32[2] at mlp");
  ASSERT_TRUE(runner.Run({{x, std::vector<float>{1, std::nanf("")}}}).ok());
  EXPECT_EQ(runner.first_nan(), "input 'x'");
}

// Trains a model with dropout, softmax and broadcast sums for 3 steps, and returns its weights.
std::vector<float> Trained(int threads, uint64_t seed, int* max_workers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1024, 160}});
  const Var w = tape.Parameter("w", {kF32, {160, 512}}, Gaussian(0.1f));
  const Var b = tape.Parameter("b", {kF32, {512}}, Zeros());
  const Var h = Dropout(Gelu(MatMul(x, w) + b), 0.2);
  const Var loss = Mean(Softmax(h) * h);
  const VarList gradients = Gradient(loss, {w, b});
  const Var update = tape.Group({Assign(w, w - gradients[0] * 100.0), Assign(b, b - gradients[1] * 100.0)});
  Parameters parameters({.seed = seed});
  const Graph graph = CompileOrDie(tape, {.fetch = {loss}, .update = {update}});
  const auto& calls = graph.compiled().calls;
  EXPECT_GT(std::count_if(calls.begin(), calls.end(), [](const KernelCall& c) { return c.tile_count > 2; }), 5);
  Runner runner(graph, &parameters, {.threads = threads});
  std::vector<float> data(1024 * 160);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::sin(static_cast<float>(i));
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(runner.Run({{x, data}}).ok());
    *max_workers = std::max(*max_workers, runner.workers_entered());
  }
  std::vector<float> weights = Floats(*parameters.Find("w"));
  const std::vector<float> bias = Floats(*parameters.Find("b"));
  weights.insert(weights.end(), bias.begin(), bias.end());
  return weights;
}

// The graph adds the input "step" to "a", and fetches the sum and a constant; another parameter of the same type can
// take the place of "a".
TEST(RunnerTest, UsesAnotherParameter) {
  Tape tape;
  const TensorType type = {kF32, {2}};
  const Var a = tape.State("a", type, Constant(1)), step = tape.Input("step", type);
  const Var next = Assign(a, a + step), constant = Fill(&tape, type, 8);
  Parameters parameters;
  ASSERT_TRUE(parameters
                  .Create(std::vector<ParameterSpec>{{"b", type, Constant(5), ParameterKind::kState},
                                                     {"c", {kF32, {3}}, Zeros(), ParameterKind::kState}})
                  .ok());
  Runner runner(CompileOrDie(tape, {.fetch = {next, constant}, .update = {next}}), &parameters);
  const auto value = [&](const char* name) { return parameters.Find(name)->as<float>()[1]; };
  const auto use = [&](const char* name, const char* other) {
    return runner.UseParameters(std::vector<std::pair<std::string, std::string>>{{name, other}});
  };
  const auto next_after = [&](float fed) {
    const absl::StatusOr<Outputs> out = runner.Run({{step, std::vector<float>{0, fed}}});
    EXPECT_EQ((*out)[constant].as<float>()[1], 8);
    return (*out)[next].as<float>()[1];
  };
  ASSERT_TRUE(use("a", "b").ok());
  EXPECT_EQ(next_after(1), 6);
  EXPECT_EQ(value("a"), 1);
  EXPECT_EQ(value("b"), 6);
  ASSERT_TRUE(use("a", "a").ok());
  EXPECT_EQ(next_after(3), 4);
  EXPECT_EQ(value("a"), 4);
  EXPECT_EQ(value("b"), 6);
  EXPECT_THAT(use("a", "c").message(), HasSubstr("'c' is f32[3], but 'a' is f32[2]"));
  EXPECT_THAT(use("b", "a").message(), HasSubstr("the graph has no parameter 'b'"));
  EXPECT_THAT(use("a", "d").message(), HasSubstr("there is no parameter 'd'"));
  EXPECT_EQ(next_after(1), 5);  // the errors changed nothing
}

TEST(RunnerTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  int alone = 0, together = 0;  // maximum number of workers that entered an execution
  const std::vector<float> one = Trained(1, 7, &alone);
  for (int threads : {2, 3, 4, 8}) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      const std::vector<float> many = Trained(threads, 7, &together);
      ASSERT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
  EXPECT_NE(one, Trained(1, 8, &alone));
  EXPECT_EQ(alone, 1);
  EXPECT_GT(together, 1);
}

#if defined(__x86_64__)
TEST(RunnerTest, SubnormalNumbersAreZeroOnEveryWorker) {
  const volatile float tiny = 1e-20F;
  Tape tape;
  Var x = tape.Input("x", {kF32, {2048, 2048}});
  Var small = tape.Input("small", {kF32, {}});
  Var folded = Mul(Number(x, 1e-20), Number(x, 1e-20));
  Parameters parameters;
  const std::vector<float> values(2048 * 2048, 1e-20F);
  const std::vector<float> subnormal = {tiny * tiny};
  ASSERT_GT(subnormal[0], 0);
  for (int threads : {1, 4}) {
    Var product = x * x, scaled = small * 1e20;
    Runner runner(CompileOrDie(tape, {.fetch = {product, scaled, folded}}), &parameters, {.threads = threads});
    int workers = 0;  // maximum number that entered an execution
    for (int repeat = 0; repeat < 20; ++repeat) {
      absl::StatusOr<Outputs> outputs = runner.Run({{x, values}, {small, subnormal}});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      const absl::Span<const float> products = (*outputs)[product].span<float>();
      EXPECT_TRUE(std::all_of(products.begin(), products.end(), [](float f) { return f == 0; }));
      EXPECT_THAT(Floats((*outputs)[scaled]), ElementsAre(0));
      EXPECT_THAT(Floats((*outputs)[folded]), ElementsAre(0));
      workers = std::max(workers, runner.workers_entered());
    }
    EXPECT_GT(tiny * tiny, 0) << "the caller's own arithmetic has changed";
    EXPECT_EQ(workers > 1, threads > 1);
  }
}
#endif

TEST(RunnerTest, RandomProgramsGiveTheBitsOfASerialRunUnderEveryPolicy) {
  for (uint32_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Tape tape;
    const auto [fetch, updates] = RecordRandomProgram(seed, &tape);
    const Graph graph = CompileOrDie(tape, {.fetch = fetch, .update = updates, .tile_seconds = 1e-7 * (1 + seed % 32)});
    const std::vector<std::byte> serial = RunTwice(graph, tape, fetch, {.threads = 1, .policy = &kSerial});
    for (const Policy* policy : Policies()) {
      SCOPED_TRACE(policy->name);
      const int threads = 2 + static_cast<int>(seed % 7);
      EXPECT_EQ(RunTwice(graph, tape, fetch, {.threads = threads, .policy = policy, .timed = seed % 2 == 0}), serial);
    }
  }
}

}  // namespace
}  // namespace weft
