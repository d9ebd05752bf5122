// To measure averaged weights, the evaluator exchanges the values of weights and averages, and exchanges them again
// afterwards. So there is one graph for both, and no third copy of the weights.
#include <algorithm>
#include <cstring>
#include <numbers>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/distributed/ranks.h"
#include "weft/graph/compile/compile.h"
#include "weft/train/loop/trainer.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

Var ValidationLoss(const TrainingProgram& program) {
  return program.validation_loss ? program.validation_loss : program.loss;
}

// Returns the averaged weights (UpdateOptions::average_decay) under the names of the weights. The result is empty if
// there are no averages, or no update yet.
std::vector<NamedTensor> AveragedWeights(const Parameters& parameters) {
  std::vector<NamedTensor> averages;
  const absl::StatusOr<Tensor> started = parameters.Find(kAveragesStarted);
  if (!started.ok() || *started->as<float>() == 0) return averages;
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    const absl::StatusOr<Tensor> average = parameters.Find(absl::StrCat(kAveragePrefix, name));
    if (average.ok()) averages.push_back({name, *average});
  }
  return averages;
}

// Exchanges the values of each weight and of its average.
void ExchangeAverages(Parameters* parameters) {
  for (const NamedTensor& average : AveragedWeights(*parameters)) {
    const absl::StatusOr<Tensor> weight = parameters->Find(average.name);
    const absl::Span<std::byte> bytes(average.tensor.data, average.tensor.type.bytes());
    std::swap_ranges(bytes.begin(), bytes.end(), weight->data);
  }
}

}  // namespace

std::vector<NamedTensor> ModelOfAverages(const Parameters& parameters) {
  std::vector<NamedTensor> model;
  if (AveragedWeights(parameters).empty()) return model;
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    const absl::StatusOr<Tensor> average = parameters.Find(absl::StrCat(kAveragePrefix, name));
    model.push_back({name, average.ok() ? *average : *parameters.Find(name)});
  }
  return model;
}

absl::StatusOr<Graph> CompileEvaluation(const TrainingProgram& program, DType precision, WeightGathers* gathers) {
  CompileOptions options = {.fetch = {ValidationLoss(program)}, .mode = kEval, .precision = precision};
  for (const Var& more : {program.correct, program.prediction}) {
    if (more) options.fetch.push_back(more);
  }
  if (gathers != nullptr) {
    options.reuse_messages = true;
    options.distribute = [gathers](Program* to, std::vector<ValueId>* roots) { return gathers->Insert(to, roots); };
  }
  return Compile(*program.tape, options);
}

Evaluator::Evaluator(TrainingTask* task, Parameters* parameters, const StepOptions& options,
                     absl::Span<const DividedWeight> divided)
    : task_(task), parameters_(parameters), options_(options), runners_(task->programs().size()) {
  if (divided.empty()) return;
  const std::vector<DividedWeight> weights(divided.begin(), divided.end());
  gathers_.emplace(weights, options.ranks.rank(), options.ranks.size());
}

absl::Status Evaluator::MakeRunner(size_t index) {
  std::unique_ptr<Runner>& runner = runners_[index];
  if (runner != nullptr) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(
      Graph graph, CompileEvaluation(task_->programs()[index], options_.precision, gathers_ ? &*gathers_ : nullptr));
  const RunnerOptions options = {.threads = static_cast<int>(options_.threads),
                                 .transport = gathers_ ? options_.ranks.transport() : nullptr};
  runner = std::make_unique<Runner>(std::move(graph), parameters_, options);
  return runner->status();
}

// Makes all runners. The first program decides the order of the gathers, so its runner must be the first on each rank.
absl::Status Evaluator::MakeRunners() {
  if (gatherer_ != nullptr) return absl::OkStatus();
  for (size_t i = 0; i < runners_.size(); ++i) WEFT_RETURN_IF_ERROR(MakeRunner(i));
  const CompileOptions compile = {.update = {gathering_.Group(gathers_->Record(&gathering_))}, .reuse_messages = true};
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(gathering_, compile));
  const RunnerOptions options = {.threads = 1, .transport = options_.ranks.transport()};
  gatherer_ = std::make_unique<Runner>(std::move(graph), parameters_, options);
  return gatherer_->status();
}

absl::StatusOr<Evaluator::MeasuredBatch> Evaluator::MeasureBatch(int64_t step, int64_t index) {
  WEFT_ASSIGN_OR_RETURN(const TrainingBatch batch, task_->Validate(step, index));
  if (batch.targets == 0) return MeasuredBatch();
  const TrainingProgram& program = task_->programs()[batch.program];
  WEFT_RETURN_IF_ERROR(MakeRunner(batch.program));
  WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runners_[batch.program]->Run(batch.feeds));
  if (program.prediction) task_->Predicted(outputs[program.prediction]);
  return MeasuredBatch{.targets = static_cast<double>(batch.targets),
                       .loss = outputs.Scalar(ValidationLoss(program)),
                       .correct = program.correct ? outputs.Scalar(program.correct) : 0,
                       .bytes = batch.bytes,
                       .counted = program.correct ? 1 : 0};
}

// Measures a batch, and takes part in the gathers of all ranks. After an error (`before`), only takes part.
absl::StatusOr<Evaluator::MeasuredBatch> Evaluator::MeasureRound(int64_t step, int64_t index,
                                                                 const absl::Status& before) {
  const bool has_batch = before.ok() && index < task_->validation_batches();
  const absl::StatusOr<MeasuredBatch> batch = has_batch ? MeasureBatch(step, index) : MeasuredBatch();
  if (!batch.ok() || batch->targets == 0) WEFT_RETURN_IF_ERROR(gatherer_->Run({}).status());
  return batch;
}

absl::StatusOr<std::optional<Metrics::Validation>> Evaluator::Measure(int64_t step, bool averaged,
                                                                      absl::FunctionRef<bool()> stop) {
  const auto predicts = [](const TrainingProgram& program) { return static_cast<bool>(program.prediction); };
  const Ranks ranks = absl::c_any_of(task_->programs(), predicts) ? Ranks() : options_.ranks;
  if (gathers_) WEFT_RETURN_IF_ERROR(AllAgree(options_.ranks, MakeRunners()));
  std::vector<MeasuredBatch> batches;
  absl::Status status;
  for (int64_t first = 0; first < task_->validation_batches(); first += ranks.size()) {
    const int64_t i = first + ranks.rank();  // the batch of this rank
    if (options_.ranks.size() == 1 && stop()) return std::nullopt;
    if (!gathers_ && (!status.ok() || i >= task_->validation_batches())) break;
    const absl::StatusOr<MeasuredBatch> batch = gathers_ ? MeasureRound(step, i, status) : MeasureBatch(step, i);
    status.Update(batch.status());
    if (status.ok() && i < task_->validation_batches()) batches.push_back(*batch);
  }
  WEFT_RETURN_IF_ERROR(AllAgree(options_.ranks, status));
  batches = GatherBatches(ranks, batches);
  double loss = 0, correct = 0, targets = 0, bytes = 0;
  bool counted = false, bytes_known = true;
  for (const MeasuredBatch& batch : batches) {
    if (batch.targets == 0) continue;
    loss += batch.targets * batch.loss;
    targets += batch.targets;
    bytes += static_cast<double>(batch.bytes);
    bytes_known = bytes_known && batch.bytes > 0;
    counted = batch.counted != 0;
    correct += batch.correct;
  }
  Metrics::Validation result = {.loss = loss / targets, .figures = task_->TakeFigures(averaged)};
  if (counted) result.accuracy = correct / targets;
  if (bytes_known && bytes > 0) result.bits_per_byte = loss / std::numbers::ln2 / bytes;
  return result;
}

// Returns the batches of all ranks in the order of the evaluation. `mine`: those of this rank.
std::vector<Evaluator::MeasuredBatch> Evaluator::GatherBatches(const Ranks& ranks, std::vector<MeasuredBatch> mine) {
  if (ranks.size() == 1) return mine;
  const size_t bytes = mine.size() * sizeof(MeasuredBatch);
  const std::vector<std::string> of_ranks = ranks.AllGather({reinterpret_cast<const char*>(mine.data()), bytes});
  std::vector<MeasuredBatch> all;
  for (size_t i = 0; i * sizeof(MeasuredBatch) < of_ranks[0].size(); ++i) {  // rank 0 has the maximum number of batches
    for (const std::string& values : of_ranks) {
      if ((i + 1) * sizeof(MeasuredBatch) > values.size()) break;
      std::memcpy(&all.emplace_back(), values.data() + i * sizeof(MeasuredBatch), sizeof(MeasuredBatch));
    }
  }
  return all;
}

absl::StatusOr<bool> Evaluator::Evaluate(int64_t step, absl::FunctionRef<bool()> stop, Metrics* line) {
  std::optional<Metrics::Validation> averaged;
  WEFT_ASSIGN_OR_RETURN(const std::optional<Metrics::Validation> measured, Measure(step, /*averaged=*/false, stop));
  if (!measured) return false;
  if (!AveragedWeights(*parameters_).empty()) {
    ExchangeAverages(parameters_);
    const absl::Cleanup exchange_back = [this] { ExchangeAverages(parameters_); };
    WEFT_ASSIGN_OR_RETURN(averaged, Measure(step, /*averaged=*/true, stop));
    if (!averaged) return false;
  }
  line->validation = measured;
  line->ema = averaged;
  return true;
}

}  // namespace weft
