#include "weft/distributed/weight_gathers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/ranks.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 12;
constexpr int kLayers = 4;
constexpr TensorType kMatrix = {kF32, {kWidth, kWidth}};

std::string Name(int layer) { return absl::StrCat("w", layer); }

// The loss of a chain of layers, and the gradients by all weights. Layer 0 is used twice if `tied`.
struct Chain {
  explicit Chain(bool tied = false, bool reversed = false) {
    VarList weights;
    for (int i = 0; i < kLayers; ++i) weights.push_back(tape.Parameter(Name(i), kMatrix, Gaussian(0.3f)));
    Var y = x;
    for (int i = 0; i < kLayers; ++i) y = Tanh(MatMul(y, weights[reversed ? kLayers - 1 - i : i]));
    if (tied) y = Tanh(MatMul(y, weights[0], {.transpose_b = true}));
    loss = Sum(y);
    gradients = tape.Gradient(loss, weights);
  }

  CompileOptions Options(WeightGathers* gathers) const {
    CompileOptions options = {.fetch = {loss}, .reuse_messages = true};
    options.fetch.insert(options.fetch.end(), gradients.begin(), gradients.end());
    if (gathers != nullptr) {
      options.distribute = [gathers](Program* program, std::vector<ValueId>* roots) {
        return gathers->Insert(program, roots);
      };
    }
    return options;
  }

  Tape tape;
  Var x = tape.Input("x", {kF32, {3, kWidth}});
  Var loss;
  VarList gradients;
};

// Rank `owners[i]` has rows of each weight from 12 i / n to 12 (i + 1) / n, for n owners.
std::vector<DividedWeight> Divided(const std::vector<int>& owners) {
  std::vector<DividedWeight> weights;
  const auto count = static_cast<int64_t>(owners.size());
  for (int i = 0; i < kLayers; ++i) {
    DividedWeight& weight = weights.emplace_back(DividedWeight{Name(i), kMatrix, Gaussian(0.3f), {}});
    for (int64_t k = 0; k < count; ++k) {
      weight.pieces.push_back({owners[static_cast<size_t>(k)], {kWidth * k / count, kWidth * (k + 1) / count}});
    }
  }
  return weights;
}

// Returns the layers that the program gathers, in its order; the program must have their types only.
std::vector<int> Gathered(const Program& program) {
  std::vector<int> layers;
  for (const Node& node : program.nodes) {
    if (node.op->messages == nullptr) continue;
    const std::string& piece = program.parameter(program.producer(node.inputs[0])).name;
    layers.push_back(piece[1] - '0');
  }
  return layers;
}

std::vector<float> Values(const Outputs& outputs, const Chain& chain) {
  std::vector<float> values = {static_cast<float>(outputs.Scalar(chain.loss))};
  for (Var gradient : chain.gradients) {
    const auto span = outputs[gradient].span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

TEST(WeightGathersTest, GathersBeforeTheForwardAndTheBackwardPass) {
  const Chain chain, tied(true), reversed(false, true);
  WeightGathers gathers(Divided({0, 1}), /*rank=*/0, /*ranks=*/2);
  const absl::StatusOr<Graph> graph = Compile(chain.tape, chain.Options(&gathers));
  ASSERT_TRUE(graph.ok()) << graph.status();
  // The last two layers are not gathered again, because too few weights are read in between. The gradient by x is not
  // wanted, so the backward pass does not read layer 0.
  EXPECT_THAT(Gathered(graph->program()), ElementsAre(0, 1, 2, 3, 1));
  for (const ParameterSpec& spec : graph->program().parameters) {
    if (absl::StrContains(spec.name, "[")) {
      EXPECT_THAT(spec.name, HasSubstr("[0:6]"));
    }
  }
  // Other programs follow the order of the first.
  const absl::StatusOr<Graph> other = Compile(reversed.tape, reversed.Options(&gathers));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(Gathered(other->program()), ElementsAre(0, 1, 2, 3, 1));
  Tape idle;
  const VarList ends = gathers.Record(&idle);
  EXPECT_THAT(Gathered(idle.program()), ElementsAre(0, 1, 2, 3, 1));
  EXPECT_EQ(ends.size(), 5);

  WeightGathers twice(Divided({0, 1}), /*rank=*/0, /*ranks=*/2);
  const absl::StatusOr<Graph> with_tied = Compile(tied.tape, tied.Options(&twice));
  ASSERT_TRUE(with_tied.ok()) << with_tied.status();
  EXPECT_THAT(Gathered(with_tied->program()), ElementsAre(0, 1, 2, 3, 2, 1));
}

// Rank 2 has a program of another order in the first round, and none in the second.
TEST(WeightGathersTest, ChangesNoBitOnAnyNumberOfRanks) {
  const std::vector<float> x(3 * kWidth, 0.25f);
  const Chain chain, reversed(false, true);
  const auto alone = [&](const Chain& of) {
    Parameters parameters({.seed = 4});
    Runner runner(*Compile(of.tape, of.Options(nullptr)), &parameters);
    return Values(*runner.Run({{of.x, x}}), of);
  };
  const std::vector<float> expected = alone(chain), expected_reversed = alone(reversed);
  EXPECT_NE(expected, expected_reversed);
  // Rank 0 has two pieces of three on two ranks; rank 4 of 5 has none.
  for (const std::vector<int>& owners : std::vector<std::vector<int>>{{0, 1, 0}, {2, 0, 1}, {3, 1, 2, 0}}) {
    const int size = owners.size() == 4 ? 5 : *std::max_element(owners.begin(), owners.end()) + 1;
    RunRanks(size, [&](Transport* transport) {
      const int rank = transport->rank();
      Parameters parameters({.seed = 4});
      for (const DividedWeight& weight : Divided(owners)) {
        std::vector<ParameterPiece> mine;
        for (const WeightPiece& piece : weight.pieces) {
          if (piece.owner != rank) continue;
          mine.push_back({PieceName(weight.name, piece.rows), piece.rows.begin, piece.rows.end});
        }
        ASSERT_TRUE(parameters.CreatePieces({weight.name, weight.type, weight.initializer}, mine).ok());
      }
      WeightGathers gathers(Divided(owners), rank, size);
      const RunnerOptions options = {.threads = 1 + rank % 2, .transport = transport};
      Runner runner(*Compile(chain.tape, chain.Options(&gathers)), &parameters, options);
      Runner other(*Compile(reversed.tape, reversed.Options(&gathers)), &parameters, options);
      Tape tape;
      const Var gathered = tape.Group(gathers.Record(&tape));
      Runner idle(*Compile(tape, {.update = {gathered}, .reuse_messages = true}), &parameters, options);
      ASSERT_TRUE(runner.status().ok()) << runner.status();
      for (int round = 0; round < 3; ++round) {
        if (rank == 2 && round == 1) {
          EXPECT_TRUE(idle.Run({}).ok());
        } else if (rank == 2 && round == 0) {
          EXPECT_EQ(Values(*other.Run({{reversed.x, x}}), reversed), expected_reversed);
        } else {
          EXPECT_EQ(Values(*runner.Run({{chain.x, x}}), chain), expected);
        }
      }
      Parameters whole({.seed = 4});
      for (const DividedWeight& weight : Divided(owners)) {
        ASSERT_TRUE(whole.Create({{{weight.name, weight.type, weight.initializer}}}).ok());
        const std::vector<float> wanted(whole.Find(weight.name)->span<float>().begin(),
                                        whole.Find(weight.name)->span<float>().end());
        for (const GatherTo to : {GatherTo::kFirst, GatherTo::kAll}) {
          std::vector<float> rows(kWidth * kWidth);
          GatherRows(Ranks(transport), weight, parameters, to, reinterpret_cast<std::byte*>(rows.data()));
          if (to == GatherTo::kAll || rank == 0) {
            EXPECT_EQ(rows, wanted);
          }
        }
      }
    });
  }
}

TEST(WeightGathersTest, GatheredWeightsTakeTheBytesOfFew) {
  const Chain chain;
  WeightGathers gathers(Divided({0, 1}), /*rank=*/0, /*ranks=*/2);
  CompileOptions options = chain.Options(&gathers);
  options.fetch = {chain.loss};
  const absl::StatusOr<Graph> graph = Compile(chain.tape, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LE(graph->compiled().memory.planned, 2 * kMatrix.bytes() + 1024);
}

}  // namespace
}  // namespace weft
