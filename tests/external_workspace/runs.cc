// The code of docs/using_weft.md about threads, stopping an execution, and errors. Prints the errors.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/status.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/layers.h"

void Print(const absl::Status& status) { std::printf("%s\n", status.ToString().c_str()); }

absl::Status RunAndStop() {
  weft::Tape tape;
  weft::Var x = tape.Input("x", {weft::kF32, {200, 300}});
  weft::Var y = weft::Mean(weft::Gelu(weft::Linear("layer", x, 400)));
  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {y}}));
  const std::vector<float> values(200 * 300, 0.5f);

  weft::Parameters parameters({.seed = 1});
  weft::Runner runner(graph, &parameters, {.threads = 4});
  weft::Runner serial(graph, &parameters, {.threads = 1});
  WEFT_ASSIGN_OR_RETURN(weft::Outputs out, runner.Run({{x, values}}));
  WEFT_ASSIGN_OR_RETURN(weft::Outputs same, serial.Run({{x, values}}));
  if (out.Scalar(y) != same.Scalar(y)) return absl::InternalError("the number of threads changed the result");

  weft::Cancellation stop;
  std::thread user([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.Cancel();
  });
  absl::Status status;
  while (status.ok()) status = runner.Run({{x, values}}, {.cancellation = &stop}).status();
  user.join();
  Print(status);

  const absl::Time deadline = absl::Now() + absl::Milliseconds(20);
  status = absl::OkStatus();
  while (status.ok()) status = runner.Run({{x, values}}, {.deadline = deadline}).status();
  Print(status);

  Print(runner.Run({{x, std::vector<float>(300)}}).status());
  return absl::OkStatus();
}

void RecordErrors() {
  weft::Tape tape;
  weft::Var x = tape.Input("x", {weft::kF32, {8, 768}});
  weft::Var h = x;
  {
    weft::Scope scope(&tape, "encoder");
    weft::Var w = tape.Parameter("weight", {weft::kF32, {512, 64}}, weft::HeGaussian());
    h = weft::MatMul(x, w);  // the mistake
  }
  weft::Var y = weft::Mean(weft::Relu(h));  // does nothing
  Print(weft::Compile(tape, {.fetch = {y}}).status());
}

int main() {
  RecordErrors();
  return ExitCode(RunAndStop());
}
