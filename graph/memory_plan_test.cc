// Random graphs, and an oracle that knows nothing of the planner: two values may share bytes only if everything that
// touches the one comes, by the edges, before the other is made.
#include <algorithm>
#include <bitset>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile.h"
#include "weft/graph/storage.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int kMostSteps = 256;
using StepSet = std::bitset<kMostSteps>;

struct Used {
  size_t begin = 0, end = 0;
  uint32_t made_by = 0;
  std::vector<uint32_t> touched_by;
};

std::vector<Used> ArenaValues(const CompiledGraph& graph) {
  const Program& program = graph.program;
  std::vector<Used> used(program.values.size());
  std::vector<bool> in_arena(program.values.size(), false);
  for (uint32_t s = 0; s < graph.steps.size(); ++s) {
    const Node& node = program.node(graph.steps[s].node);
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const size_t v = static_cast<size_t>(node.output(i));
      const Place& place = graph.places[v];
      if (place.kind != Place::Kind::kArena) continue;
      in_arena[v] = true;
      used[v] = {place.offset, place.offset + program.values[v].type.bytes(), s, {s}};
    }
    for (ValueId in : node.inputs) used[static_cast<size_t>(StorageRoot(program, in))].touched_by.push_back(s);
  }
  std::vector<Used> result;
  for (size_t v = 0; v < used.size(); ++v) {
    if (in_arena[v]) result.push_back(used[v]);
  }
  return result;
}

// For each step, the steps that come before it by the edges.
std::vector<StepSet> Ancestors(const CompiledGraph& graph) {
  std::vector<StepSet> before(graph.steps.size());
  for (uint32_t s = 0; s < graph.steps.size(); ++s) {
    for (uint32_t next : graph.steps[s].successors) before[next] |= before[s] | StepSet().set(s);
  }
  return before;
}

bool AllBefore(const Used& a, const Used& b, const std::vector<StepSet>& before) {
  return std::all_of(a.touched_by.begin(), a.touched_by.end(),
                     [&](uint32_t step) { return step == b.made_by || before[b.made_by].test(step); });
}

void RecordRandom(Tape* tape, std::mt19937* random, VarList* fetch) {
  VarList vars = {tape->Input("x", {kF32, {8, 8}}), tape->Input("y", {kF32, {8, 8}})};
  const auto any = [&] { return vars[(*random)() % vars.size()]; };
  for (int i = 0; i < 60; ++i) {
    switch ((*random)() % 7) {
      case 0:
        vars.push_back(Exp(any()));
        break;
      case 1:
        vars.push_back(any() + any());
        break;
      case 2:
        vars.push_back(MatMul(any(), any()));
        break;
      case 3:
        vars.push_back(Softmax(any()));
        break;
      case 4:
        vars.push_back(Reshape(Tanh(Reshape(any(), {64})), {8, 8}));
        break;
      case 5:
        vars.push_back(any() * Sum(any(), 0));
        break;
      default:
        vars.push_back(ResidualAdd(Reshape(Reshape(any(), {4, 16}), {8, 8}), any()));
    }
  }
  for (int i = 0; i < 3; ++i) fetch->push_back(any());
}

TEST(MemoryPlanTest, LiveValuesNeverOverlap) {
  size_t shared = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Tape tape;
    VarList fetch;
    RecordRandom(&tape, &random, &fetch);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
    ASSERT_TRUE(graph.ok()) << graph.status();
    const CompiledGraph& compiled = graph->compiled();
    ASSERT_LE(compiled.steps.size(), kMostSteps);
    const std::vector<StepSet> before = Ancestors(compiled);
    const std::vector<Used> used = ArenaValues(compiled);
    for (size_t i = 0; i < used.size(); ++i) {
      ASSERT_LE(used[i].end, compiled.memory.planned);
      for (size_t j = 0; j < i; ++j) {
        if (used[i].begin >= used[j].end || used[j].begin >= used[i].end) continue;
        ++shared;
        ASSERT_TRUE(AllBefore(used[i], used[j], before) || AllBefore(used[j], used[i], before))
            << "steps " << used[j].made_by << " and " << used[i].made_by;
      }
    }
    for (const auto& [tape_value, value] : compiled.fetches) {  // and nothing comes after a fetched value
      const Place& place = compiled.places[static_cast<size_t>(value)];
      if (place.kind != Place::Kind::kArena) continue;
      const NodeId maker = compiled.program.value(StorageRoot(compiled.program, value)).producer;
      const size_t end = place.offset + compiled.program.value(value).type.bytes();
      for (const Used& u : used) {
        if (u.begin >= end || u.end <= place.offset || compiled.steps[u.made_by].node == maker) continue;
        ASSERT_LT(compiled.steps[u.made_by].node, maker);
      }
    }
  }
  EXPECT_GT(shared, 1000u);  // the graphs do reuse bytes
}

TEST(MemoryPlanTest, ReusesTheBytesOfAChain) {
  Tape tape;
  Var x = tape.Input("x", {kF32, {16, 16}});
  for (int i = 0; i < 20; ++i) x = MatMul(x, x);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {x}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->compiled().memory.naive, 20u * 1024);
  EXPECT_EQ(graph->compiled().memory.lower_bound, 2u * 1024);
  EXPECT_EQ(graph->compiled().memory.planned, 2u * 1024);
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
