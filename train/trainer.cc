// Each round of the loop runs a step, evaluates if that is due, writes a line of metrics, and saves a checkpoint if
// that is due.
#include "weft/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weft/core/safetensors.h"
#include "weft/core/status.h"
#include "weft/formats/run_folder.h"
#include "weft/train/plateau.h"
#include "weft/train/run/build_info.h"
#include "weft/train/run/checkpoint.h"

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

// Reports whether evaluations of `task` have the figure `metric`, such as "ema_val_accuracy".
bool Measures(const TrainingTask& task, absl::string_view metric) {
  absl::ConsumePrefix(&metric, "ema_");
  absl::ConsumePrefix(&metric, "val_");
  if (metric == "loss") return true;
  const std::vector<std::string> figures = task.figure_names();
  if (std::find(figures.begin(), figures.end(), metric) != figures.end()) return true;
  const auto counts = [](const TrainingProgram& program) { return static_cast<bool>(program.correct); };
  return metric == "accuracy" && std::all_of(task.programs().begin(), task.programs().end(), counts);
}

}  // namespace

absl::StatusOr<StepOptions> ToStepOptions(const TrainerOptions& options) {
  StepOptions step = {.micro_batches = options.micro_batches,
                      .threads = options.threads,
                      .memory_budget = options.memory_budget,
                      .average_decay = options.ema,
                      .limits_loss = options.skip_deviations > 0};
  if (ParseDType(options.precision, &step.precision)) return step;
  return InvalidArgument("precision: '", options.precision, "' is no dtype");
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run) {
  WEFT_ASSIGN_OR_RETURN(const StepOptions step, ToStepOptions(options));
  WEFT_RETURN_IF_ERROR(Validate(options));
  if (!Measures(*task, options.metric)) {
    return InvalidArgument("metric: this training measures no ", options.metric);
  }
  auto trainer = std::unique_ptr<Trainer>(new Trainer(options, task, parameters, run));
  WEFT_ASSIGN_OR_RETURN(trainer->training_step_, TrainingStep::Plan(task->programs(), options.optimizer, step));
  const uint64_t needed = trainer->training_step_->allocated_bytes();
  if (options.memory_limit > 0 && needed > options.memory_limit) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the training needs %.1f MB for weights, the optimizer's state and the values of a step, but "
                        "%.1f MB are available",
                        static_cast<double>(needed) * 1e-6, static_cast<double>(options.memory_limit) * 1e-6));
  }
  WEFT_RETURN_IF_ERROR(trainer->training_step_->Allocate(parameters));
  trainer->evaluator_ = std::make_unique<Evaluator>(
      task, parameters, EvaluatorOptions{.threads = options.threads, .precision = step.precision});
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
    const absl::StatusOr<TrainingHistory> history =
        info.ok() ? TrainingHistory::FromJson(info->trainer) : info.status();
    const absl::Status loaded = history.ok() ? LoadCheckpoint(checkpoints, *info, parameters_) : history.status();
    if (loaded.ok()) {
      WarnOfOtherBits(*info);
      history_ = *history;
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
  WEFT_ASSIGN_OR_RETURN(metrics_, MetricsFile::Open(run_->File("metrics.jsonl"), resumed_ ? step_ : -1));
  if (const int64_t lines = metrics_->damaged_lines(); lines > 0) {
    Warn(absl::StrCat("removed damaged lines from ", run_->File("metrics.jsonl"), ": ", lines));
  }
  if (options_.tensorboard) {
    WEFT_ASSIGN_OR_RETURN(board_, TensorBoard::Open(run_->path(), resumed_ ? step_ : -1));
    if (!board_->warning().empty()) Warn(board_->warning());
  }
  const Interrupt interrupt;
  tokens_ = history_.pending ? history_.pending->tokens : metrics_->tokens();
  begin_ = std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(metrics_->seconds()));
  progress->Begin(step_, options_.steps);
  const bool evaluates = options_.eval_every > 0 && task_->validation_batches() > 0;
  if ((evaluates && step_ == 0 && !resumed_) || history_.pending) {
    Metrics line = history_.pending.value_or(Metrics{});
    WEFT_ASSIGN_OR_RETURN(const bool evaluated, Evaluate(interrupt, &line, progress));
    if (!evaluated) return Interrupted(progress);
    history_.pending.reset();
    WEFT_RETURN_IF_ERROR(Report(line, progress));
  }
  while (step_ < options_.steps && !OutOfPatience()) {
    Metrics line;
    WEFT_RETURN_IF_ERROR(TakeStep(&line, progress));
    const bool last = step_ == options_.steps;
    bool stop = false;
    if (evaluates && (last || step_ % options_.eval_every == 0)) {
      WEFT_ASSIGN_OR_RETURN(const bool evaluated, Evaluate(interrupt, &line, progress));
      stop = !evaluated;
    }
    if (stop) {
      history_.pending = line;
    } else {
      WEFT_RETURN_IF_ERROR(Report(line, progress));
      if (last || OutOfPatience()) break;
      stop = interrupt.requested();
    }
    // While steps are skipped, the weights stay as they are, and older checkpoints may be needed.
    const bool due = options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0;
    if (stop || (due && history_.skipped_in_a_row() == 0)) {
      WEFT_RETURN_IF_ERROR(SyncFiles());
      WEFT_RETURN_IF_ERROR(Save());
    }
    if (stop) return Interrupted(progress);
  }
  progress->End();
  if (OutOfPatience()) {
    progress->Say(absl::StrFormat("no better %s in %d evaluations: the best was %.4f at step %d", options_.metric,
                                  options_.patience, *history_.best(), history_.best_step()));
  }
  WEFT_RETURN_IF_ERROR(SyncFiles());
  return Save();
}

bool Trainer::OutOfPatience() const {
  return options_.patience > 0 && history_.evaluations_since_best() >= options_.patience;
}

absl::Status Trainer::Interrupted(Progress* progress) const {
  progress->End();
  return absl::CancelledError(step_ == 0 ? "interrupted before step 1; nothing was saved"
                                         : absl::StrCat("interrupted after step ", step_, " and saved"));
}

// Runs a step and fills `line` with its figures. Returns Aborted if too many steps in a row changed no weight.
absl::Status Trainer::TakeStep(Metrics* line, Progress* progress) {
  const auto begin = std::chrono::steady_clock::now();
  const double rate = options_.learning_rate(step_) * history_.plateau.scale;
  const auto next = [this](MicroBatch micro_batch) { return task_->Train(step_, micro_batch); };
  WEFT_ASSIGN_OR_RETURN(const StepResult result,
                        training_step_->Run(step_, rate, next, history_.LossLimit(options_.skip_deviations)));
  const bool finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (result.updated) {
    history_.Trained(result.loss);
    tokens_ += result.tokens;
  } else {
    history_.Skipped();
    if (history_.skipped_in_a_row() > options_.max_skipped) return ExplainSkipping(result);
    WEFT_RETURN_IF_ERROR(CheckWeights());
    line->skipped = history_.skipped();
    progress->Say(absl::StrFormat("step %d/%d  skipped: loss %g, gradient norm %g", step_ + 1, options_.steps,
                                  WithoutSign(result.loss), WithoutSign(result.gradient_norm)));
  }
  if (finite) {
    line->training = {.loss = result.loss,
                      .learning_rate = rate,
                      .gradient_norm = result.gradient_norm,
                      .tokens_per_second = static_cast<double>(result.tokens) / SecondsSince(begin)};
  }
  line->tokens = tokens_;
  ++step_;
  return absl::OkStatus();
}

// Fills `line` with the figures of an evaluation, and keeps the weights if they are the best so far. Returns false if
// `interrupt` stopped the evaluation.
absl::StatusOr<bool> Trainer::Evaluate(const Interrupt& interrupt, Metrics* line, Progress* progress) {
  WEFT_ASSIGN_OR_RETURN(line->validation, evaluator_->Evaluate(step_, [&] { return interrupt.requested(); }));
  if (!line->validation) return false;
  if (!std::isfinite(line->validation->loss)) {
    WEFT_RETURN_IF_ERROR(CheckWeights());
    return Stopped(absl::StrFormat("validation loss %g after step %d", WithoutSign(line->validation->loss), step_));
  }
  if (options_.plateau) {
    Plateau plateau(*options_.plateau, history_.plateau);
    if (plateau.Observe(line->validation->loss)) {
      progress->Say(absl::StrFormat("the learning rate is now %g times that of the schedule", plateau.scale()));
    }
    history_.plateau = plateau.state();
  }
  const std::optional<double> value = MetricValue(*line->validation, options_.metric);
  if (!value) return true;  // there are no averages before the first update, and no correlations of equal predictions
  if (history_.Evaluated(step_, options_.metric, *value) && options_.save_best) WEFT_RETURN_IF_ERROR(SaveBest());
  return true;
}

absl::Status Trainer::Report(Metrics line, Progress* progress) {
  line.step = step_;
  line.tokens = tokens_;
  line.seconds = SecondsSince(begin_);
  if (line.training) progress->Step(step_, *line.training);
  if (line.validation) progress->Evaluation(step_, *line.validation, line.seconds);
  if (board_) WEFT_RETURN_IF_ERROR(board_->Step(line));
  if (board_ && line.validation) WEFT_RETURN_IF_ERROR(board_->Weights(step_, *parameters_));
  return metrics_->Append(line);
}

absl::Status Trainer::SyncFiles() {
  if (board_) WEFT_RETURN_IF_ERROR(board_->Sync());
  return metrics_->Sync();
}

absl::Status Trainer::AddText(const std::string& name, absl::string_view text) {
  if (!board_) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(board_->Text(step_, name, text));
  return board_->Sync();
}

absl::Status Trainer::Save() {
  WEFT_RETURN_IF_ERROR(run_->CheckStillThere());
  WEFT_RETURN_IF_ERROR(CheckWeights());
  if (saved_step_ != step_) {
    WEFT_RETURN_IF_ERROR(SaveCheckpoint(run_->File("checkpoints"),
                                        {.step = step_,
                                         .seed = parameters_->seed(),
                                         .parameters_step = parameters_->step(),
                                         .data = task_->data(),
                                         .trainer = history_.ToJson()},
                                        *parameters_, static_cast<int>(options_.keep)));
    saved_step_ = step_;
  } else {  // a run that was killed after it had saved may have older checkpoints left
    WEFT_RETURN_IF_ERROR(PruneCheckpoints(run_->File("checkpoints"), static_cast<int>(options_.keep)));
  }
  if (const std::vector<NamedTensor> averages = ModelOfAverages(*parameters_); !averages.empty()) {
    WEFT_RETURN_IF_ERROR(WriteSafetensors(run_->File(kEmaWeights), averages));
  }
  WEFT_RETURN_IF_ERROR(parameters_->Save(run_->File(kLastWeights), Parameters::kWeights));
  return task_->SaveMore(*parameters_, run_->path());
}

// Saves the weights that the metric measured: the averages if its name begins with "ema_".
absl::Status Trainer::SaveBest() const {
  WEFT_RETURN_IF_ERROR(run_->CheckStillThere());
  const std::string path = run_->File(kBestWeights);
  if (!absl::StartsWith(options_.metric, "ema_")) return parameters_->Save(path, Parameters::kWeights);
  return WriteSafetensors(path, ModelOfAverages(*parameters_));
}

absl::Status Trainer::CheckWeights() const {
  const std::string name = FirstNotFinite(*parameters_);
  if (name.empty()) return absl::OkStatus();
  return Stopped(absl::StrCat(WriterOf(task_->programs()[0].tape->program(), name), " made '", name,
                              "' infinite or NaN at step ", step_, " or before"));
}

// Returns an error that names the op that made the first NaN, if the op is found. To find the op, the step runs again
// without its update. The same NaN appears again, because a skipped step changes no weight.
absl::Status Trainer::ExplainSkipping(const StepResult& result) {
  WEFT_RETURN_IF_ERROR(CheckWeights());
  const std::string first_nan =
      training_step_->FirstNan(step_, [this](MicroBatch micro_batch) { return task_->Train(step_, micro_batch); });
  const std::string cause = first_nan.empty() ? "" : absl::StrCat("; the first op to make a NaN was ", first_nan);
  const std::string skipped = options_.max_skipped == 0 ? ""
                                                        : absl::StrFormat(", after %d skipped steps (max-skipped)",
                                                                          history_.skipped_in_a_row() - 1);
  return Stopped(absl::StrFormat("loss %g, gradient norm %g at step %d%s%s; no weight became infinite or NaN",
                                 WithoutSign(result.loss), WithoutSign(result.gradient_norm), step_ + 1, skipped,
                                 cause));
}

absl::Status Trainer::Stopped(const std::string& why) const {
  const std::vector<int64_t> saved = ListCheckpoints(run_->File("checkpoints"));
  return absl::AbortedError(saved.empty() ? why
                                          : absl::StrCat(why, "; the last checkpoint is of step ", saved.front()));
}

}  // namespace weft
