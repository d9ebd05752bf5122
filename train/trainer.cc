// Each program of the task has a runner for training; its runner for validation is made at the first evaluation.
#include "weft/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/status.h"
#include "weft/formats/run_folder.h"
#include "weft/train/build_info.h"
#include "weft/train/checkpoint.h"
#include "weft/train/interrupt.h"

namespace weft {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double WithoutSign(double x) { return std::isnan(x) ? std::fabs(x) : x; }  // a NaN is printed "nan", not "-nan"

void Warn(const std::string& text) { std::fprintf(stderr, "weft: warning: %s\n", text.c_str()); }

void WarnOfOtherBits(const CheckpointInfo& info) {
  if (info.version == BuildName() && info.cpu == CpuFeatures()) return;
  Warn(absl::StrCat("the checkpoint of step ", info.step, " was written by Weft ", info.version, " on a CPU with ",
                    info.cpu, "; this is Weft ", BuildName(), " with ", CpuFeatures(),
                    "; the run continues, but its results have other bits"));
}

// Returns the name of the first parameter with a value that is not finite, or "" if all values are finite.
std::string FirstNotFinite(const Parameters& parameters) {
  for (const std::string& name : parameters.Names()) {
    const absl::StatusOr<Tensor> tensor = parameters.Find(name);
    if (!tensor.ok() || !IsFloat(tensor->type.dtype)) continue;
    const bool finite = Dispatch(tensor->type.dtype, [&](auto zero) {
      const auto values = tensor->span<decltype(zero)>();
      return std::all_of(values.begin(), values.end(), [](auto x) { return std::isfinite(static_cast<double>(x)); });
    });
    if (!finite) return name;
  }
  return "";
}

// Returns the name of the op that writes the parameter `name`.
std::string WriterOf(const Program& program, const std::string& name) {
  for (const Node& node : program.nodes) {
    for (int i = 0; i < node.op->writes; ++i) {
      const Node& source = program.producer(node.inputs[i]);
      if (source.op == &kParameterOp && program.parameters[source.attrs.as<SourceAttrs>().index].name == name) {
        return std::string(node.op->name);
      }
    }
  }
  return "the start";
}

Var ValidationLoss(const TrainingProgram& program) {
  return program.validation_loss.tape != nullptr ? program.validation_loss : program.loss;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer(options));
  trainer->task_ = task;
  trainer->parameters_ = parameters;
  trainer->run_ = run;
  for (const TrainingProgram& program : task->programs()) {
    WEFT_ASSIGN_OR_RETURN(Graph train, trainer->Compiled(program, {.fetch = {program.loss, program.gradient_norm},
                                                                   .update = {program.update},
                                                                   .memory_budget = options.memory_budget}));
    auto runner = std::make_unique<Runner>(std::move(train), parameters,
                                           RunnerOptions{.threads = static_cast<int>(options.threads)});
    WEFT_RETURN_IF_ERROR(runner->status());
    trainer->graphs_.push_back({.train = std::move(runner)});
  }
  return trainer;
}

absl::StatusOr<bool> Trainer::Resume() {
  const std::string checkpoints = run_->File("checkpoints");
  WEFT_RETURN_IF_ERROR(TidyCheckpoints(checkpoints));
  absl::Status first_error;
  for (const int64_t step : ListCheckpoints(checkpoints)) {
    const absl::StatusOr<CheckpointInfo> info = ReadCheckpointInfo(checkpoints, step);
    if (info.ok() && info->data != task_->data()) {
      return absl::FailedPreconditionError(
          "data: this run began with other data; resume it with the same data, or begin another run");
    }
    if (info.ok() && info->seed != parameters_->seed()) {
      return absl::FailedPreconditionError(absl::StrCat("seed: it is ", parameters_->seed(),
                                                        ", but the checkpoint of step ", step,
                                                        " is of a run with seed ", info->seed));
    }
    const absl::Status loaded = info.ok() ? LoadCheckpoint(checkpoints, *info, parameters_) : info.status();
    if (loaded.ok()) {
      WarnOfOtherBits(*info);
      step_ = saved_step_ = step;
      resumed_ = true;
      return true;
    }
    Warn(absl::StrCat("passing over the checkpoint of step ", step, ": ", loaded.message()));
    if (first_error.ok()) first_error = loaded;
  }
  if (!first_error.ok()) return Annotate(first_error, "no checkpoint can be read");
  std::error_code error;
  if (std::filesystem::exists(run_->File("model.safetensors"), error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        run_->path(), " has a model.safetensors, but no checkpoint to continue from; overwrite the run, or ",
        "choose another folder"));
  }
  return false;
}

absl::Status Trainer::Train(Progress* progress) {
  WEFT_ASSIGN_OR_RETURN(MetricsFile metrics, MetricsFile::Open(run_->File("metrics.jsonl"), resumed_ ? step_ : -1));
  const Interrupt interrupt;
  tokens_ = metrics.tokens();
  begin_ = std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(metrics.seconds()));
  progress->Begin(step_, options_.steps);
  const bool evaluates = options_.eval_every > 0 && task_->validation_batches() > 0;
  if (evaluates && step_ == 0 && !resumed_) {
    Metrics line;
    WEFT_ASSIGN_OR_RETURN(line.validation, Evaluate());
    WEFT_RETURN_IF_ERROR(Report(&metrics, line, progress));
  }
  while (step_ < options_.steps) {
    Metrics line;
    WEFT_ASSIGN_OR_RETURN(line.training, TrainStep());
    ++step_;
    const bool last = step_ == options_.steps;
    if (evaluates && (last || step_ % options_.eval_every == 0)) {
      WEFT_ASSIGN_OR_RETURN(line.validation, Evaluate());
    }
    WEFT_RETURN_IF_ERROR(Report(&metrics, line, progress));
    if (last) break;
    const bool stop = interrupt.requested();
    if (stop || (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0)) {
      WEFT_RETURN_IF_ERROR(metrics.Sync());
      WEFT_RETURN_IF_ERROR(Save());
    }
    if (!stop) continue;
    progress->End();
    return absl::CancelledError(absl::StrCat("interrupted after step ", step_, " and saved"));
  }
  progress->End();
  WEFT_RETURN_IF_ERROR(metrics.Sync());
  return Save();
}

absl::StatusOr<Metrics::Training> Trainer::TrainStep() {
  const auto begin = std::chrono::steady_clock::now();
  WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, task_->Train(step_));
  const TrainingProgram& program = Program(batch);
  Metrics::Training result;
  result.learning_rate = options_.learning_rate(step_);
  batch.feeds.push_back({program.rate, static_cast<float>(result.learning_rate)});
  WEFT_ASSIGN_OR_RETURN(const Outputs outputs, graphs_[batch.program].train->Run(batch.feeds));
  result.loss = outputs.Scalar(program.loss);
  result.gradient_norm = outputs.Scalar(program.gradient_norm);
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
    return ExplainNan(batch, result.loss, result.gradient_norm);
  }
  tokens_ += batch.tokens;
  result.tokens_per_second = static_cast<double>(batch.tokens) / SecondsSince(begin);
  return result;
}

absl::StatusOr<Graph> Trainer::Compiled(const TrainingProgram& program, CompileOptions options) const {
  if (!ParseDType(options_.precision, &options.precision)) {
    return InvalidArgument("precision: '", options_.precision, "' is no dtype");
  }
  return Compile(*program.tape, options);
}

absl::StatusOr<Runner*> Trainer::Evaluator(size_t index) {
  std::unique_ptr<Runner>& runner = graphs_[index].evaluate;
  if (runner != nullptr) return runner.get();
  const TrainingProgram& program = task_->programs()[index];
  CompileOptions options = {.fetch = {ValidationLoss(program)}, .mode = kEval};
  if (program.correct.tape != nullptr) options.fetch.push_back(program.correct);
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compiled(program, options));
  runner = std::make_unique<Runner>(std::move(graph), parameters_,
                                    RunnerOptions{.threads = static_cast<int>(options_.threads)});
  WEFT_RETURN_IF_ERROR(runner->status());
  return runner.get();
}

absl::StatusOr<Metrics::Validation> Trainer::Evaluate() {
  double loss = 0, correct = 0, targets = 0;
  bool counted = false;
  for (int64_t i = 0; i < task_->validation_batches(); ++i) {
    const TrainingBatch batch = task_->Validate(step_, i);
    const TrainingProgram& program = Program(batch);
    WEFT_ASSIGN_OR_RETURN(Runner* const runner, Evaluator(batch.program));
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner->Run(batch.feeds));
    const auto weight = static_cast<double>(batch.targets);
    loss += weight * outputs.Scalar(ValidationLoss(program));
    targets += weight;
    counted = program.correct.tape != nullptr;
    if (counted) correct += outputs.Scalar(program.correct);
  }
  Metrics::Validation result = {.loss = loss / targets};
  if (counted) result.accuracy = correct / targets;
  if (std::isfinite(result.loss)) return result;
  WEFT_RETURN_IF_ERROR(CheckWeights());
  return Stopped(absl::StrFormat("validation loss %g after step %d", WithoutSign(result.loss), step_));
}

absl::Status Trainer::Report(MetricsFile* file, Metrics metrics, Progress* progress) const {
  metrics.step = step_;
  metrics.tokens = tokens_;
  metrics.seconds = SecondsSince(begin_);
  if (metrics.training) progress->Step(step_, *metrics.training);
  if (metrics.validation) progress->Evaluation(step_, *metrics.validation, metrics.seconds);
  return file->Append(metrics);
}

absl::Status Trainer::Save() {
  WEFT_RETURN_IF_ERROR(CheckWeights());
  if (saved_step_ != step_) {
    WEFT_RETURN_IF_ERROR(SaveCheckpoint(
        run_->File("checkpoints"),
        {.step = step_, .seed = parameters_->seed(), .parameters_step = parameters_->step(), .data = task_->data()},
        *parameters_));
    saved_step_ = step_;
  }
  return parameters_->Save(run_->File("model.safetensors"), Parameters::kWeights);
}

absl::Status Trainer::CheckWeights() const {
  const std::string name = FirstNotFinite(*parameters_);
  if (name.empty()) return absl::OkStatus();
  return Stopped(absl::StrCat(WriterOf(task_->programs()[0].tape->program(), name), " made '", name,
                              "' infinite or NaN at step ", step_, " or before"));
}

// Returns an error that names the op that made the first NaN, if the op is found. For that, the batch runs again in a
// graph without the update. The NaN should come again, because weights whose gradients are not finite have not changed.
absl::Status Trainer::ExplainNan(const TrainingBatch& batch, double loss, double gradient_norm) {
  WEFT_RETURN_IF_ERROR(CheckWeights());
  std::string cause;
  const TrainingProgram& program = Program(batch);
  absl::StatusOr<Graph> graph = Compiled(program, {.fetch = {program.loss, program.gradient_norm}});
  if (graph.ok()) {
    parameters_->set_step(parameters_->step() - 1);
    Runner check(*std::move(graph), parameters_, {.threads = 1, .check_nan = true});
    if (check.Run(batch.feeds).ok() && !check.first_nan().empty()) {
      cause = absl::StrCat("; the first op to make a NaN was ", check.first_nan());
    }
  }
  return Stopped(absl::StrFormat("loss %g, gradient norm %g at step %d%s; no weight became infinite or NaN",
                                 WithoutSign(loss), WithoutSign(gradient_norm), step_ + 1, cause));
}

absl::Status Trainer::Stopped(const std::string& why) const {
  const std::vector<int64_t> saved = ListCheckpoints(run_->File("checkpoints"));
  return absl::AbortedError(saved.empty() ? why
                                          : absl::StrCat(why, "; the last checkpoint is of step ", saved.front()));
}

}  // namespace weft
