// Measures a training step of M micro-batches (train/step/training_step.h) against its parts: the gradients of M
// smaller batches, each written to memory once, and one update.
//
//   bazel run -c opt //bench:accumulation_bench -- --micro-batches=1,2,4,8 --batch=8 --length=256
//
// The model is a GPT of 10.7 million parameters (6 layers of width 384) with a vocabulary of 65. Steps and parts take
// turns, so other load of the machine affects both. `planned_mb` is the memory of a step beside weights and moments.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/turns.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/machine/measure.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/training_step.h"

namespace weft {
namespace {

constexpr int64_t kVocabulary = 65;
constexpr float kRate = 1e-4f;

struct Options {
  std::vector<int64_t> micro_batches = {1, 2, 4, 8};
  int64_t batch = 8, length = 256;
  int threads = 0, rounds = 7;
  bool probe = false;
};

// A GPT with its loss on `rows` windows, and their tokens.
struct Model {
  Model(int64_t rows, int64_t length) {
    const TensorType type = {kI32, {rows, length}};
    tokens = tape.Input("tokens", type, {.below = kVocabulary});
    targets = tape.Input("targets", type, {.below = kVocabulary});
    const Gpt gpt({.vocabulary = kVocabulary, .context = length, .layers = 6, .heads = 6, .width = 384});
    loss = CrossEntropy(gpt.Logits(tokens), targets);
    for (int64_t i = 0; i < rows * length; ++i) {
      values.push_back(static_cast<int32_t>(RandomStream{.seed = 1}.Below(kVocabulary, static_cast<uint64_t>(i))));
    }
  }
  std::vector<FeedPair> feeds() const { return {{tokens, values}, {targets, values}}; }

  Tape tape;
  Var tokens, targets, loss;
  std::vector<int32_t> values;
};

Optimizer MakeOptimizer() { return AdamW({.clip = 1.0}); }

// A step of M micro-batches.
class Step {
 public:
  Step(int64_t count, const Options& options) : model_(options.batch / count, options.length) {
    program_ = {.tape = &model_.tape, .loss = model_.loss};
    step_ = *TrainingStep::Plan({&program_, 1}, MakeOptimizer(), {.micro_batches = count, .threads = options.threads});
    WEFT_CHECK(step_->Allocate(&parameters_).ok());
  }
  absl::StatusOr<Turn> Run() {
    const auto next = [this](MicroBatch /*micro_batch*/) -> absl::StatusOr<TrainingBatch> {
      const auto tokens = static_cast<int64_t>(model_.values.size());
      return TrainingBatch{.feeds = model_.feeds(), .tokens = tokens, .targets = tokens};
    };
    const Clock::time_point begin = Clock::now();
    WEFT_RETURN_IF_ERROR(step_->Run(steps_++, kRate, next).status());
    return Turn{.seconds = SecondsSince(begin)};
  }
  double planned_mb() const { return static_cast<double>(step_->planned_bytes()) * 1e-6; }

 private:
  int64_t steps_ = 0;
  Model model_;
  TrainingProgram program_;
  Parameters parameters_{{.seed = 1}};
  std::unique_ptr<TrainingStep> step_;
};

// The parts of such a step: a graph that writes the gradients of one micro-batch, and a graph that updates by them.
class Parts {
 public:
  Parts(int64_t count, const Options& options) : count_(count), model_(options.batch / count, options.length) {
    const Optimizer optimizer = MakeOptimizer();
    const VarList weights = optimizer.TrainedWeights(&model_.tape);
    const VarList gradients = Gradient(model_.loss, weights);
    VarList written, trained, read;
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string name = model_.tape.ParameterName(weights[i]);
      written.push_back(Assign(Buffer(&model_.tape, name, weights[i]), gradients[i]));
      trained.push_back(update_tape_.Parameter(name, weights[i].type(), Zeros()));
      read.push_back(Buffer(&update_tape_, name, weights[i]));
    }
    gradients_ = Compiled(model_.tape, {.fetch = {model_.loss}, .update = {model_.tape.Group(written)}}, options);
    rate_ = update_tape_.Input("learning_rate", {kF32, {}});
    update_ =
        Compiled(update_tape_, {.update = {optimizer.Update(trained, read, rate_, {.all_or_none = true})}}, options);
  }
  absl::StatusOr<Turn> Run() {
    const std::vector<FeedPair> feeds = model_.feeds();
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < count_; ++i) WEFT_RETURN_IF_ERROR(gradients_->Run(feeds).status());
    WEFT_RETURN_IF_ERROR(update_->Run({{rate_, kRate}}).status());
    return Turn{.seconds = SecondsSince(begin)};
  }

 private:
  static Var Buffer(Tape* tape, const std::string& name, Var weight) {
    return tape->State("gradient." + name, weight.type(), Zeros(), ParameterKind::kCache);
  }
  std::unique_ptr<Runner> Compiled(const Tape& tape, const CompileOptions& compile, const Options& options) {
    return std::make_unique<Runner>(*Compile(tape, compile), &parameters_, RunnerOptions{.threads = options.threads});
  }

  int64_t count_;
  Model model_;
  Tape update_tape_;
  Var rate_;
  Parameters parameters_{{.seed = 1}};
  std::unique_ptr<Runner> gradients_, update_;
};

absl::Status Measure(const Options& options) {
  std::deque<Step> steps;
  std::deque<Parts> parts;
  std::vector<std::function<absl::StatusOr<Turn>()>> variants;
  for (const int64_t count : options.micro_batches) {
    if (options.batch % count != 0) return InvalidArgument("--micro-batches: ", count, " does not divide the batch");
    variants.emplace_back([step = &steps.emplace_back(count, options)] { return step->Run(); });
    if (count > 1) variants.emplace_back([part = &parts.emplace_back(count, options)] { return part->Run(); });
  }
  for (const auto& variant : variants) WEFT_RETURN_IF_ERROR(variant().status());  // the first turn allocates
  Rounds rounds = MakeRounds(options.rounds, options.probe, options.threads);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<Turn>> turns, TakeTurns(variants, &rounds));
  if (rounds.probes()) std::fprintf(stderr, "accumulation_bench: %s\n", rounds.Report().c_str());
  std::printf("%13s %9s %9s %7s %10s\n", "micro_batches", "step_ms", "parts_ms", "ratio", "planned_mb");
  size_t variant = 0;
  for (size_t i = 0; i < options.micro_batches.size(); ++i) {
    const double step = Median(turns[variant++]).seconds * 1e3;
    const bool whole = options.micro_batches[i] == 1;
    const double sum = whole ? step : Median(turns[variant++]).seconds * 1e3;
    std::printf("%13ld %9.1f %9.1f %7.3f %10.1f\n", static_cast<long>(options.micro_batches[i]), step, sum, step / sum,
                steps[i].planned_mb());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Options options;
  CLI::App app("Measures training steps of several micro-batches against their parts.", "accumulation_bench");
  weft::SetUp(&app);
  weft::AddWholeNumbers(&app, "--micro-batches", "micro-batches of a step; each must divide the batch",
                        &options.micro_batches, 1, 1024);
  app.add_option("--batch", options.batch, "windows in a step")->check(CLI::Range(1, 1024));
  app.add_option("--length", options.length, "tokens in a window")->check(CLI::Range(1, 65536));
  app.add_option("--threads", options.threads, "number of threads; 0: one for each core")->check(CLI::Range(0, 1024));
  app.add_option("--rounds", options.rounds, "turns of each variant; the medians are printed")
      ->check(CLI::Range(1, 1000));
  weft::AddProbe(&app, &options.probe);
  return weft::RunProgram(&app, argc, argv, [&options] {
    if (options.threads == 0) options.threads = weft::Cores();  // for steps and parts alike
    const absl::Status status = weft::Measure(options);
    if (status.ok()) return 0;
    std::fprintf(stderr, "accumulation_bench: %s\n", std::string(status.message()).c_str());
    return absl::IsInvalidArgument(status) ? 2 : 1;
  });
}
