#include "weft/bench/step/bench_step.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace weft {
namespace {

// Returns the number of elements of the weights whose names begin with `prefix`.
double CountWeights(const Tape& tape, absl::string_view prefix) {
  double count = 0;
  for (const Var& weight : tape.Weights()) {
    if (absl::StartsWith(tape.ParameterName(weight), prefix)) {
      count += static_cast<double>(weight.shape().elements());
    }
  }
  return count;
}

}  // namespace

BenchStep RecordStep(Tape* tape, const BenchModel& model, int64_t batch, int64_t length) {
  const double tokens = static_cast<double>(batch * length);
  BenchStep step = {RecordModel(tape, model, batch, length)};
  if (!model.trains) {
    step.flops = 2 * CountWeights(*tape, "encoder.") * tokens;
    step.options = {.fetch = {step.result}, .mode = kEval};
    return step;
  }
  step.rate = tape->Input("learning_rate", {kF32, {}});
  step.update = BenchOptimizer().Minimize(step.result, step.rate);
  step.flops = 6 * CountWeights(*tape, "") * tokens;
  step.options = {.fetch = {step.result}, .update = {step.update}};
  return step;
}

}  // namespace weft
