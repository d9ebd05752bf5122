#include "weft/tests/random_program.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/ops/ops.h"

namespace weft {

RandomProgram RecordRandomProgram(uint32_t seed, Tape* tape) {
  std::mt19937 random(seed);
  VarList updates;
  // Tiles cut some of these sizes by columns, others only by rows.
  const int64_t rows = 16 << random() % 4, cols = std::array{64, 96, 200}[random() % 3];
  VarList vars = {tape->Input("x", {kF32, {rows, cols}}), tape->Input("y", {kF32, {rows, cols}})};
  VarList states;
  for (int i = 0; i < 3; ++i) {
    states.push_back(tape->State("s" + std::to_string(i), {kF32, {rows, cols}}, Zeros()));
    vars.push_back(states.back());
  }
  const Var square = tape->Parameter("w", {kF32, {cols, cols}}, Gaussian(0.1f));
  const auto any = [&] {
    const size_t recent = std::min<size_t>(vars.size(), 8);
    return random() % 4 == 0 ? vars[random() % vars.size()] : vars[vars.size() - 1 - random() % recent];
  };
  for (int i = 0; i < 50; ++i) {
    switch (random() % 12) {
      case 0:
        vars.push_back(Exp(any()));
        break;
      case 1:
        vars.push_back(any() + any());
        break;
      case 2:
        vars.push_back(MatMul(any(), square));
        break;
      case 3:
        vars.push_back(Softmax(any()));
        break;
      case 4:
        vars.push_back(Reshape(Tanh(Reshape(any(), {rows * cols / 16, 16})), {rows, cols}));
        break;
      case 5:
        vars.push_back(any() * Sum(any(), 0));
        break;
      case 6:
        vars.push_back(MatMul(any(), MatMul(any(), any(), {.transpose_a = true})));
        break;
      case 7: {
        Var& state = states[random() % states.size()];
        state = Assign(state, any());
        updates.push_back(state);
        vars.push_back(state);
        break;
      }
      case 8:
        vars.push_back(Transpose(Transpose(any() * 0.5, 0, 1), 0, 1));
        break;
      case 9: {
        const VarList parts = Split(any(), 1, 2);
        vars.push_back(Concat({parts[1], parts[0]}, 1));
        break;
      }
      case 10:
        vars.push_back(Concat({Slice(any(), 0, rows / 2, rows), Slice(any(), 0, 0, rows / 2)}, 0));
        break;
      default:
        vars.push_back(Add(Reshape(Reshape(any(), {rows * cols / 32, 32}), {rows, cols}), any()));
    }
  }
  return {{any(), any(), any()}, updates};
}

std::vector<std::byte> RunTwice(const Graph& graph, const Tape& tape, const VarList& fetch,
                                const RunnerOptions& options) {
  Parameters parameters({.seed = 5});
  Runner runner(graph, &parameters, options);
  const Shape shape = fetch[0].shape();
  std::vector<float> x(shape.elements()), y(shape.elements());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 13) * 0.1f - 0.6f;
    y[i] = static_cast<float>(i % 7) * 0.1f - 0.3f;
  }
  std::vector<std::byte> bytes;
  const auto add = [&](const Tensor& t) { bytes.insert(bytes.end(), t.data, t.data + t.type.bytes()); };
  for (int run = 0; run < 2; ++run) {
    std::vector<FeedPair> feeds;
    for (const Node& node : tape.program().nodes) {
      if (node.op != &kInputOp) continue;
      feeds.push_back({{const_cast<Tape*>(&tape), node.output(0)}, feeds.empty() ? x : y});
    }
    const absl::StatusOr<Outputs> out = runner.Run(feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return {};
    for (Var v : fetch) add((*out)[v]);
  }
  for (const std::string& name : parameters.Names()) add(*parameters.Find(name));
  return bytes;
}

}  // namespace weft
