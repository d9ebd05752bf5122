// Learns sin(x) for x in [-3, 3] with two layers, and prints the loss as it falls.
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/status.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/layers.h"
#include "weft/train/optimize/optimizer.h"

absl::Status Train() {
  weft::Tape tape;
  weft::Var x = tape.Input("x", {weft::kF32, {61, 1}});
  weft::Var y = tape.Input("y", {weft::kF32, {61, 1}});
  weft::Var rate = tape.Input("learning_rate", {weft::kF32, {}});
  weft::Var hidden = weft::Tanh(weft::Linear("hidden", x, 32, {.initializer = weft::XavierUniform()}));  // [61, 32]
  weft::Var error = weft::Linear("output", hidden, 1) - y;                                               // [61, 1]
  weft::Var loss = weft::Mean(error * error);
  weft::Minimized step = weft::AdamW({.weight_decay = 0}).Minimize(loss, rate);

  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {loss}, .update = {step}}));
  weft::Parameters parameters({.seed = 1});
  weft::Runner runner(graph, &parameters, {.threads = 2});
  std::vector<float> xs, ys;
  for (int i = -30; i <= 30; ++i) xs.push_back(0.1f * i), ys.push_back(std::sin(0.1f * i));
  for (int i = 0; i <= 500; ++i) {
    WEFT_ASSIGN_OR_RETURN(weft::Outputs out, runner.Run({{x, xs}, {y, ys}, {rate, 0.01f}}));
    if (i % 100 == 0) std::printf("step %3d  loss %.6f\n", i, out.Scalar(loss));
  }
  return absl::OkStatus();
}

int main() { return ExitCode(Train()); }
