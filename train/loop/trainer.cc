// Each round of the loop runs a step, evaluates if that is due, writes a line of metrics, and saves a checkpoint if
// that is due. train/loop/trainer_files.cc has the other part of Trainer, which reads and writes files.
#include "weft/train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weft/base/arena.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/distributed/ranks.h"
#include "weft/formats/run_folder.h"
#include "weft/graph/compile/speedup.h"
#include "weft/train/optimize/learning_rate.h"

namespace weft {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double WithoutSign(double x) { return std::isnan(x) ? std::fabs(x) : x; }  // a NaN is printed "nan", not "-nan"

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
      if (source.op == &kParameterOp && program.parameter(source).name == name) return std::string(node.op->name);
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

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const TrainerOptions& options, TrainingTask* task,
                                                         Parameters* parameters, const RunDirectory* run) {
  WEFT_RETURN_IF_ERROR(Validate(options));
  if (!Measures(*task, options.metric)) {
    return InvalidArgument("metric: this training measures no ", options.metric);
  }
  if (task->validation_batches() == 0 && (options.patience > 0 || options.plateau || options.save_best)) {
    const char* const what = options.patience > 0 ? "patience"
                             : options.save_best  ? "save-best"
                                                  : "the schedule plateau";
    return InvalidArgument(what, " needs evaluations, but there are no batches of validation data");
  }
  auto trainer = std::unique_ptr<Trainer>(new Trainer(options, task, parameters, run));
  WEFT_ASSIGN_OR_RETURN(trainer->training_step_, TrainingStep::Plan(task->programs(), options.optimizer, options));
  const uint64_t needed = trainer->training_step_->allocated_bytes();
  if (options.memory_limit > 0 && needed > options.memory_limit) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the training needs %.1f MB for weights, the optimizer's state and the values of a step, but "
                        "%.1f MB are available",
                        static_cast<double>(needed) * 1e-6, static_cast<double>(options.memory_limit) * 1e-6));
  }
  WEFT_RETURN_IF_ERROR(trainer->training_step_->Allocate(parameters));
  trainer->evaluator_ = std::make_unique<Evaluator>(task, parameters, options, trainer->training_step_->divided());
  return trainer;
}

absl::Status Trainer::Train(Progress* shown) {
  Progress silent({.quiet = true});
  Progress* const progress = options_.ranks.first() ? shown : &silent;
  WEFT_RETURN_IF_ERROR(OpenLog());
  const Interrupt interrupt;
  if (history_.pending) tokens_ = history_.pending->tokens;
  WEFT_RETURN_IF_ERROR(CheckSameWeights());
  progress->Begin(step_, options_.steps);
  if (const int threads = training_step_->threads(); options_.threads == 0 && threads < Cores()) {
    progress->Say(absl::StrFormat("runs on %d of %d threads: more would make a step less than %.0f%% faster", threads,
                                  Cores(), (kMinSpeedup - 1) * 100));
  }
  const bool evaluates = options_.eval_every > 0 && task_->validation_batches() > 0;
  if ((evaluates && step_ == 0 && !resumed_) || history_.pending) {
    Metrics line = history_.pending.value_or(Metrics{});
    if (!history_.pending) WEFT_RETURN_IF_ERROR(AddInsights());
    WEFT_ASSIGN_OR_RETURN(const bool evaluated, Evaluate(interrupt, &line, progress));
    if (!evaluated) return Interrupted(progress);
    const bool was_pending = std::exchange(history_.pending, std::nullopt).has_value();
    WEFT_RETURN_IF_ERROR(Report(line, progress));
    if (was_pending) {  // the checkpoint must not ask for this evaluation once more
      saved_step_ = -1;
      WEFT_RETURN_IF_ERROR(Save());
    }
  }
  while (step_ < options_.steps && !OutOfPatience()) {
    Metrics line;
    const bool last = step_ + 1 == options_.steps;
    const bool evaluate = evaluates && (last || (step_ + 1) % options_.eval_every == 0);
    if (evaluate) log_.Remember(*parameters_);
    WEFT_ASSIGN_OR_RETURN(bool stop, TakeStep(evaluate, interrupt, &line, progress));
    bool evaluated = false;
    if (evaluate && !stop) {
      WEFT_ASSIGN_OR_RETURN(evaluated, Evaluate(interrupt, &line, progress));
    }
    if (evaluate && !evaluated) {
      history_.pending = line;
      stop = true;
    } else {
      WEFT_RETURN_IF_ERROR(Report(line, progress));
      if (last || OutOfPatience()) break;
      if (options_.ranks.size() == 1) stop = interrupt.requested();  // also during the evaluation
    }
    // While steps are skipped, the weights stay as they are, and older checkpoints may be needed.
    const bool due = options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0;
    if (stop || (due && history_.skipped_in_a_row() == 0)) WEFT_RETURN_IF_ERROR(Save());
    if (stop) return Interrupted(progress);
  }
  progress->End();
  if (OutOfPatience()) {
    progress->Say(absl::StrFormat(
        "no better %s in %d evaluations: %s", options_.metric, options_.patience,
        history_.best() ? absl::StrFormat("the best was %.4f at step %d", *history_.best(), history_.best_step())
                        : "it was never defined"));
  }
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

// Writes the insights of this step on rank 0.
absl::Status Trainer::AddInsights() {
  if (!log_.has_insights()) return absl::OkStatus();
  return log_.AppendInsights(step_, task_->Sample(parameters_), *parameters_);
}

// Runs a step, on all ranks together. Returns whether training must stop after it. All ranks stop after the same step,
// before its evaluation. `evaluate`: whether an evaluation follows.
absl::StatusOr<bool> Trainer::TakeStep(bool evaluate, const Interrupt& interrupt, Metrics* line, Progress* progress) {
  absl::Status status = ComputeStep(line, progress);
  // A stop during the evaluation saves this step, so a resumed run does not add the insights again.
  if (evaluate && status.ok()) status = AddInsights();
  status.Update(log_.error());
  WEFT_ASSIGN_OR_RETURN(const bool stop, AnyRank(options_.ranks, status, interrupt.requested()));
  if (options_.check_weights_every > 0 && step_ % options_.check_weights_every == 0) {
    WEFT_RETURN_IF_ERROR(CheckSameWeights());
  }
  return stop;
}

// Runs a step and fills `line` with its figures. Returns Aborted if too many steps in a row changed no weight.
absl::Status Trainer::ComputeStep(Metrics* line, Progress* progress) {
  const auto begin = std::chrono::steady_clock::now();
  const double rate = options_.learning_rate(step_) * history_.plateau.scale;
  const auto next = [&](MicroBatch micro_batch) { return task_->Train(step_, micro_batch); };
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
  const auto stop = [&] { return interrupt.requested(); };
  WEFT_ASSIGN_OR_RETURN(const bool evaluated, evaluator_->Evaluate(step_, stop, line));
  if (!evaluated) return false;
  if (!std::isfinite(line->validation->loss)) {
    WEFT_RETURN_IF_ERROR(AllAgree(options_.ranks, CheckWeights()));
    return Stopped(absl::StrFormat("validation loss %g after step %d", WithoutSign(line->validation->loss), step_));
  }
  Plateau& plateau = history_.plateau;
  if (options_.plateau && plateau.Observe(line->validation->loss, *options_.plateau)) {
    progress->Say(absl::StrFormat("the learning rate is now %g times that of the schedule", plateau.scale));
  }
  if (absl::StartsWith(options_.metric, "ema_") && !line->ema) return true;  // before the first update
  const std::optional<double> value = MetricValue(*line, options_.metric);
  const bool matters = options_.save_best || options_.patience > 0;
  if (!value && matters && !std::exchange(warned_of_metric_, true) && options_.ranks.first()) {
    Warn(absl::StrCat(options_.metric, " is undefined after step ", step_,
                      ", because all predictions or all labels are equal; such an evaluation counts as no better one"));
  }
  const bool best = history_.Evaluated(step_, options_.metric, value);
  if (best && options_.save_best) WEFT_RETURN_IF_ERROR(SaveBest());
  return true;
}

// Shows and writes a line of metrics on rank 0.
absl::Status Trainer::Report(Metrics line, Progress* progress) {
  line.step = step_;
  line.tokens = tokens_;
  line.seconds = SecondsSince(begin_);
  line.memory = ResidentBytes();
  if (line.training) progress->Step(step_, *line.training);
  progress->Evaluation(line);
  return log_.Append(line, *parameters_);
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
