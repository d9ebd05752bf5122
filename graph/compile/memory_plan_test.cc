// These tests check the plans of random graphs by an oracle that is independent of the planner. If two tasks touch the
// same bytes of two different values, edges must order the tasks. The order must be the same for all tasks of the two
// values.
#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "weft/core/op.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/storage.h"
#include "weft/ops/ops.h"
#include "weft/tests/random_program.h"

namespace weft {
namespace {

using TaskSet = std::vector<uint64_t>;  // a bit for each task

bool Has(const TaskSet& set, uint32_t task) { return (set[task / 64] >> (task % 64) & 1) != 0; }

// For each task, those that come before it by the edges.
std::vector<TaskSet> Ancestors(const Schedule& schedule) {
  std::vector<TaskSet> before(schedule.size(), TaskSet(schedule.size() / 64 + 1));
  std::vector<uint32_t> left = schedule.waits_for, ready;
  const auto release = [&](uint32_t task) {
    for (uint32_t i = schedule.first_successor[task]; i < schedule.first_successor[task + 1]; ++i) {
      const uint32_t next = schedule.successors[i] & ~Schedule::kAlone;
      if (task < schedule.size()) {
        for (size_t w = 0; w < before[next].size(); ++w) before[next][w] |= before[task][w];
        before[next][task / 64] |= uint64_t{1} << (task % 64);
      }
      if (--left[next] == 0) ready.push_back(next);
    }
  };
  release(schedule.start());
  while (!ready.empty()) {
    const uint32_t task = ready.back();
    ready.pop_back();
    release(task);
  }
  return before;
}

// Bytes that a task reads or writes of a value.
struct Touch {
  uint32_t task = 0, call = 0;
  size_t value = 0;  // 1 + the index of the kernel call that made the value or the one it views; 0: a source
  bool writes = false;
  Address::Kind kind = Address::Kind::kArena;
  uint32_t index = 0;
  int64_t base = 0, row_bytes = 0;  // of the value, as the task sees it
  Rect rect;                        // of it, in bytes across

  int64_t begin(int64_t row) const { return base + row * row_bytes + rect.col_begin; }
  int64_t end(int64_t row) const { return base + row * row_bytes + rect.col_end; }
};

// Reports whether `a` and `b` share a byte. The two may divide the same bytes into rows of different lengths.
bool Overlap(const Touch& a, const Touch& b) {
  if (a.kind != b.kind || a.index != b.index || a.begin(a.rect.row_begin) >= b.end(b.rect.row_end - 1) ||
      b.begin(b.rect.row_begin) >= a.end(a.rect.row_end - 1)) {
    return false;
  }
  if (a.rect.rows() > b.rect.rows()) return Overlap(b, a);
  for (int64_t row = a.rect.row_begin; row < a.rect.row_end; ++row) {
    const int64_t first = std::max(b.rect.row_begin, (a.begin(row) - b.base) / b.row_bytes);
    const int64_t last = std::min(b.rect.row_end - 1, (a.end(row) - 1 - b.base) / b.row_bytes);
    for (int64_t other = first; other <= last; ++other) {
      if (a.begin(row) < b.end(other) && b.begin(other) < a.end(row)) return true;
    }
  }
  return false;
}

std::vector<Touch> OperandTiles(const CompiledGraph& graph) {
  const Program& program = graph.program;
  std::vector<Touch> touches;
  std::vector<size_t> number_of(program.nodes.size());
  for (size_t s = 0; s < graph.calls.size(); ++s) number_of[graph.calls[s].node] = s + 1;
  const auto add = [&](uint32_t t, uint32_t call) {
    const Node& node = program.node(graph.calls[call].node);
    const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
    const Rect tile = graph.tiles_of(call)[graph.tasks[t].tile];
    for (size_t k = 0; k < inputs.size() + outputs.size(); ++k) {
      const bool writes = k >= inputs.size();
      const ValueId id = writes ? node.output(static_cast<uint32_t>(k - inputs.size())) : node.inputs[k];
      const Address& address = graph.addresses[id];
      if (address.kind == Address::Kind::kInput || address.kind == Address::Kind::kConstant) continue;
      const TensorType& type = writes ? outputs[k - inputs.size()] : inputs[k];
      const Rect rect = Access(*node.op, {node.attrs, inputs, outputs}, static_cast<int>(k), tile);
      if (rect.rows() <= 0 || rect.cols() <= 0) continue;
      const int64_t size = static_cast<int64_t>(SizeOf(type.dtype));
      touches.push_back({t,
                         call,
                         number_of[program.value(graph.storage_roots[id]).producer],
                         writes,
                         address.kind,
                         address.index,
                         static_cast<int64_t>(address.offset),
                         type.shape.cols() * size,
                         {rect.row_begin, rect.row_end, rect.col_begin * size, rect.col_end * size}});
    }
  };
  for (uint32_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].group == Task::kJoin) continue;
    const Group& group = graph.groups[graph.tasks[t].group];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) add(t, s);
  }
  return touches;
}

// Expects edges between any two tasks that touch the same bytes, if at least one of them writes. If they touch two
// values, the order is that of the values, so that the readers of the older value read that value.
void ExpectOrders(const CompiledGraph& graph, size_t* shared) {
  const std::vector<TaskSet> before = Ancestors(graph.schedule);
  const std::vector<Touch> touches = OperandTiles(graph);
  for (const Touch& a : touches) {
    for (const Touch& b : touches) {
      if (!a.writes || (a.call == b.call && a.task == b.task) || !Overlap(a, b)) continue;
      // Kernel calls are in order: all reads of an older call's value precede a younger call's write of the same bytes.
      const bool a_first = a.value <= b.value;
      *shared += a.value != b.value;
      const bool in_order = a.task == b.task ? a_first == (a.call < b.call)
                            : a_first        ? Has(before[b.task], a.task)
                                             : Has(before[a.task], b.task);
      ASSERT_TRUE(in_order) << "task " << a.task << " writes value " << a.value << ", task " << b.task
                            << (b.writes ? " writes" : " reads") << " value " << b.value;
    }
  }
}

TEST(MemoryPlanTest, NoInterleavingThatTheEdgesAllowMixesValues) {
  size_t shared = 0, tiles = 0, joined = 0, budgets = 0;
  for (uint32_t seed = 0; seed < 2000 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Tape tape;
    const auto [fetch, updates] = RecordRandomProgram(seed, &tape);
    CompileOptions options = {
        .fetch = fetch, .update = updates, .tile_seconds = seed % 4 == 0 ? 150e-6 : 1e-7 * (seed % 32)};
    const absl::StatusOr<Graph> graph = Compile(tape, options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectOrders(graph->compiled(), &shared);
    tiles += graph->compiled().tiles.size() - graph->compiled().calls.size();
    joined += graph->compiled().calls.size() - graph->compiled().groups.size();
    if (seed % 5 != 1) continue;
    options.memory_budget = graph->compiled().memory.planned * 7 / 8;
    const absl::StatusOr<Graph> within = Compile(tape, options);
    if (!within.ok()) continue;  // nothing can be computed again
    ++budgets;
    ExpectOrders(within->compiled(), &shared);
  }
  EXPECT_GT(shared, 100'000u);  // the graphs do reuse bytes
  EXPECT_GT(tiles, 100'000u);   // and are cut
  EXPECT_GT(joined, 10'000u);   // and run together
  EXPECT_GT(budgets, 100u);
}

TEST(MemoryPlanTest, ReusesTheBytesOfAChain) {
  Tape tape;
  Var x = tape.Input("x", {kF32, {16, 16}});
  for (int i = 0; i < 20; ++i) x = MatMul(x, x);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {x}, .without = {Pass::kFuse}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->compiled().memory.naive, 20u * 1024);
  EXPECT_EQ(graph->compiled().memory.lower_bound, 2u * 1024);
  EXPECT_EQ(graph->compiled().memory.planned, 2u * 1024);
  EXPECT_EQ(graph->compiled().schedule.successors.size(), 20u + 1);  // the data's order is enough
  const absl::StatusOr<Graph> one_task = Compile(tape, {.fetch = {x}});
  ASSERT_TRUE(one_task.ok()) << one_task.status();
  EXPECT_EQ(one_task->compiled().tasks.size(), 1u);
  EXPECT_EQ(one_task->compiled().memory.planned, 2u * 1024);
}

// The addend's bytes are free after the product, but a factor of the product has the same bytes.
TEST(MemoryPlanTest, AProductIsNotAddedToItsOwnFactor) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {8, 8}}), w = Tanh(tape.Input("w", {kF32, {8, 8}}));
  const Var made = Tanh(x);
  for (const Var y : {MatMulAdd(made, w, made), MatMulAdd(w, made, made), MatMulAdd(made, made, made)}) {
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->compiled().memory.planned, graph->compiled().memory.naive) << "the sum took a factor's bytes";
  }
  const absl::StatusOr<Graph> square = Compile(tape, {.fetch = {Sum(made * made)}, .without = {Pass::kFuse}});
  ASSERT_TRUE(square.ok()) << square.status();
  EXPECT_EQ(square->compiled().memory.planned, 256u + 64) << "an elementwise op may overwrite what it reads twice";
}

// Many values take the bytes of one value that many calls have read. Each of them waits for all these calls, by one
// join that all share.
TEST(MemoryPlanTest, EdgesAreLinearInReadersAndThoseWhoOverwrite) {
  constexpr int kCount = 500;
  Tape tape;
  const Var y = Tanh(tape.Input("x", {kF32, {kCount, 64}})), row = tape.Input("row", {kF32, {64}});
  VarList sums, small;
  for (int i = 0; i < kCount; ++i) sums.push_back(Sum(Slice(y, 0, i, i + 1)));
  for (Var sum : sums) small.push_back(row * sum);
  const absl::StatusOr<Graph> graph =
      Compile(tape, {.fetch = {small.begin(), small.end()}, .without = {Pass::kFuse}, .tile_seconds = 1e-6});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LT(graph->compiled().memory.planned, graph->compiled().memory.naive * 3 / 4);
  EXPECT_LT(graph->compiled().schedule.successors.size(), 20u * kCount);
  size_t shared = 0;
  ExpectOrders(graph->compiled(), &shared);
  EXPECT_GT(shared, 0u);
}

// The sum joins the group of the product. All tiles of the product read the whole value that the sum may overwrite.
TEST(MemoryPlanTest, NoTileOverwritesWhatAnotherOfItsGroupReads) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {512, 512}});
  const Var w = Tanh(x);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {w + MatMul(x, w)}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->compiled().groups.size(), 2u);
  size_t shared = 0;
  ExpectOrders(graph->compiled(), &shared);
}

// Receives a value of the type of its input from rank 1.
constexpr OpDef kReceived = {
    .name = "received",
    .infer = [](const Attrs&, TypeSpan in) -> absl::StatusOr<Types> { return Types{in[0]}; },
    .messages = [](const OpArgs& args) -> std::vector<Message> {
      return {{.peer = 1, .operand = 1, .end = args.outputs[0].shape.elements()}};
    },
    .no_gradient = "it is for this test",
};

// A message may end late. So no kernel call overwrites the bytes of a message, unless the budget demands this.
TEST(MemoryPlanTest, BytesOfMessagesAreNotReused) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {16, 16}}), sum = Sum(Record(kReceived, {x}));
  Var y = MatMul(x, x);
  for (int i = 0; i < 5; ++i) y = MatMul(y, y);
  constexpr uint64_t kBudget = 2 * 1024 + 64;
  for (const uint64_t budget : {uint64_t{0}, kBudget}) {
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {sum, y}, .memory_budget = budget});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->compiled().memory.planned >= 3 * 1024, budget == 0);
    EXPECT_EQ(graph->compiled().memory.planned <= kBudget, budget > 0);
  }
}

TEST(MemoryPlanTest, WorksInPlaceWhereItMay) {
  Tape tape;
  Var x = MatMul(tape.Input("x", {kF32, {16, 16}}), tape.Input("y", {kF32, {16, 16}}));
  for (int i = 0; i < 20; ++i) x = Tanh(x);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {x}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->compiled().memory.planned, 1024u);
}

}  // namespace
}  // namespace weft
