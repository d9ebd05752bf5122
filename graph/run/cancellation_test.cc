#include "weft/graph/run/cancellation.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// An op that calls the test while it runs, and is never folded or shared.
std::atomic<void (*)()> hook{nullptr};
absl::StatusOr<Types> SameType(const Attrs&, TypeSpan in) { return Types{in[0]}; }
void CallHook(const KernelArgs& a, Rect) {
  if (const auto call = hook.load()) call();
  std::copy_n(a.input<float>(0), a.input_shape(0).elements(), a.output<float>(0));
}
constexpr OpDef kHook = {.name = "hook", .infer = SameType, .kernels = {CallHook}};

Cancellation token;

// w += 1 after a hook; before it, or after it, w2 is written too.
class CancellationTest : public ::testing::Test {
 protected:
  CancellationTest() { token.Reset(); }
  ~CancellationTest() override { hook = nullptr; }

  Graph Compiled(bool writes_first) {
    const Var x = tape_.Input("x", {kF32, {4}});
    const Var a = tape_.Parameter("a", {kF32, {4}}, Zeros()), b = tape_.Parameter("b", {kF32, {4}}, Zeros());
    const Var first = writes_first ? Assign(a, a + x) : a + x;
    const Var next = Assign(b, b + Record(kHook, {first}) * 0.0 + 1.0);
    VarList updates = {next};
    if (writes_first) updates.push_back(first);
    return *Compile(tape_, {.update = updates});
  }
  absl::Status Run(Runner* runner, const RunOptions& options) {
    const std::vector<float> ones(4, 1);
    return runner->Run({{Var{&tape_, ValueId{1}}, ones}}, options).status();
  }
  float Value(absl::string_view name) const { return parameters_.Find(name)->as<float>()[0]; }

  Tape tape_;
  Parameters parameters_;
};

TEST_F(CancellationTest, BeforeTheFirstWriteItChangesNothing) {
  const Graph graph = Compiled(false);
  for (int threads : {1, 4}) {
    Runner runner(graph, &parameters_, {.threads = threads});
    const float before = Value("b");
    const uint32_t step = parameters_.step();
    hook = [] { token.Cancel(); };
    const absl::Status status = Run(&runner, {.cancellation = &token});
    EXPECT_EQ(status, absl::CancelledError("run: cancelled; no parameter was changed"));
    EXPECT_EQ(Value("b"), before);
    EXPECT_EQ(parameters_.step(), step);
    hook = nullptr;
    token.Reset();
    EXPECT_TRUE(Run(&runner, {.cancellation = &token}).ok());  // and the runner is good for more
    EXPECT_EQ(Value("b"), before + 1);
    EXPECT_EQ(parameters_.step(), step + 1);
  }
}

TEST_F(CancellationTest, AfterTheFirstWriteTheStepIsFinished) {
  const Graph graph = Compiled(true);
  Runner runner(graph, &parameters_, {.threads = 4});
  hook = [] { token.Cancel(); };
  EXPECT_TRUE(Run(&runner, {.cancellation = &token}).ok());
  EXPECT_EQ(Value("a"), 1);
  EXPECT_EQ(Value("b"), 1);
  EXPECT_TRUE(absl::IsCancelled(Run(&runner, {.cancellation = &token})));  // it is still cancelled
  EXPECT_EQ(Value("a"), 1);
}

TEST_F(CancellationTest, ADeadlineThatHasPassed) {
  const Graph graph = Compiled(false);
  Runner runner(graph, &parameters_, {.threads = 2});
  const absl::Status status = Run(&runner, {.deadline = absl::Now() - absl::Seconds(1)});
  EXPECT_EQ(status, absl::DeadlineExceededError("run: the deadline has passed; no parameter was changed"));
  EXPECT_EQ(Value("b"), 0);
  EXPECT_TRUE(Run(&runner, {.deadline = absl::Now() + absl::Hours(1)}).ok());
}

TEST_F(CancellationTest, OfAGraphThatDoesNothing) {
  const Var a = tape_.Parameter("a", {kF32, {4}}, Zeros());
  Runner runner(*Compile(tape_, {.fetch = {a}}), &parameters_);
  token.Cancel();
  EXPECT_TRUE(absl::IsCancelled(runner.Run({}, {.cancellation = &token}).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(runner.Run({}, {.deadline = absl::InfinitePast()}).status()));
}

TEST(CancellationOnManyThreadsTest, AStepIsDoneAsAWholeOrNotAtAll) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 64}});
  VarList updates;
  for (int i = 0; i < 12; ++i) {  // each from a product of its own, so that some write while others compute
    const Var w = tape.Parameter(absl::StrCat("w", i), {kF32, {64, 64}}, Zeros());
    Var change = w;
    for (int k = 0; k <= i; ++k) change = MatMul(x, change);
    updates.push_back(Assign(w, w + change * 0.0 + 1.0));
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.update = updates, .tile_seconds = 1e-7});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 4});
  const std::vector<float> zeros(64 * 64);
  Cancellation stop;
  std::atomic<bool> done{false};
  std::atomic<int> microseconds{0};
  std::thread canceller([&] {
    while (!done) {
      stop.Reset();
      for (const auto begin = absl::Now(); absl::Now() < begin + absl::Microseconds(microseconds.load());) continue;
      stop.Cancel();
      std::this_thread::yield();
    }
  });
  int finished = 0, stopped = 0, on_many = 0;
  for (int i = 0; i < 3000; ++i) {
    microseconds = 20 * (i % 40);
    RunOptions options = {.cancellation = &stop};
    if (i % 3 == 0) options = {.deadline = absl::Now() + absl::Microseconds(10 * (i % 50))};
    const absl::Status status = runner.Run({{x, zeros}}, options).status();
    on_many += runner.workers_entered() > 1;
    if (status.ok()) {
      ++finished;
    } else {
      ++stopped;
      ASSERT_TRUE(i % 3 == 0 ? absl::IsDeadlineExceeded(status) : absl::IsCancelled(status)) << status;
    }
    for (const std::string& name : parameters.Names()) {
      for (float value : parameters.Find(name)->span<const float>())
        ASSERT_EQ(value, finished) << name << ", run " << i;
    }
    ASSERT_EQ(parameters.step(), static_cast<uint32_t>(finished));
  }
  done = true;
  canceller.join();
  EXPECT_GT(finished, 10);
  EXPECT_GT(stopped, 10);
  EXPECT_GT(on_many, 10);
}

TEST_F(CancellationTest, ManyRunnersOnManyThreadsTakeTurns) {
  const Graph graph = Compiled(true);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Runner runner(graph, &parameters_, {.threads = 2});
      for (int i = 0; i < 200; ++i) {
        const absl::Status status = Run(&runner, {});
        done += status.ok();
        if (!status.ok()) {
          ASSERT_EQ(status, absl::FailedPreconditionError(
                                "run: these parameters are in use: a call of Run, Save or Load has not ended"));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done.load(), 0);
  EXPECT_EQ(Value("a"), static_cast<float>(done.load()));
  EXPECT_EQ(Value("b"), static_cast<float>(done.load()));
}

}  // namespace
}  // namespace weft
