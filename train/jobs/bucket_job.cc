// A BucketJob keeps a tape for each shape of micro-batch, since a program has fixed shapes.
#include "weft/train/jobs/bucket_job.h"

#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weft/base/status.h"
#include "weft/distributed/index_range.h"
#include "weft/models/layers.h"

namespace weft {

Hyperparameter BucketJob::RDropRow(const char* needs) {
  return {"r-drop",
          "alpha of R-Drop (Liang et al., 2021): each example is computed twice, with different dropout. The training "
          "loss is the mean of both losses, and alpha/4 times KL(p, q) + KL(q, p) of the predictions. The validation "
          "loss is that of one. Time and memory at least double. 0: computed once",
          &r_drop_,
          {.low = 0, .needs = needs, .group = "Training"}};
}

absl::Status BucketJob::Check(const RunDirectory* resumed) {
  // Dropout of the data is the same in both computations.
  const bool drops = absl::c_any_of(Table(), [](const Hyperparameter& row) {
    const nlohmann::ordered_json value = row.json();
    return absl::EndsWith(row.flag, "dropout") && row.rules.group != "Data" && value.is_number() &&
           value.get<double>() > 0;
  });
  if (r_drop_ > 0 && !drops) {
    return InvalidArgument("r-drop: no dropout is above 0, so both predictions would be equal; wanted dropout");
  }
  return TrainingJob::Check(resumed);
}

TrainingProgram BucketJob::LossOf(Var logits, Var targets, const CrossEntropyOptions& options) const {
  if (r_drop_ == 0) return {.tape = targets.tape, .loss = CrossEntropy(logits, targets, options)};
  const VarList halves = Split(logits, 0, 2);
  const Var loss = CrossEntropy(halves[0], targets, options), second = CrossEntropy(halves[1], targets, options);
  const Var divergence = SymmetricDivergence(halves[0], halves[1], targets);
  return {.tape = targets.tape,
          .loss = Scale(loss + second, 0.5) + Scale(divergence, r_drop_ / 4),
          .validation_loss = loss};
}

void BucketJob::SetLengths(absl::Span<const int64_t> train, absl::Span<const int64_t> validation, int64_t longest) {
  lengths_ = BucketLengths(train, validation, batch_, longest);
  train_ = std::make_unique<BucketBatches>(lengths_, train, batch_);
  validate_ = std::make_unique<BucketBatches>(lengths_, validation, batch_);
  batches_per_epoch_ = train_->size();
  for (const int64_t length : lengths_) {
    for (const int64_t rows : MicroBatchSizes(batch_, micro_batches())) {
      Recorded& recorded = recorded_.emplace_back();
      recorded.shape = {rows, length};
      programs_.push_back(Record(recorded.shape, &recorded.tape, &recorded.inputs));
    }
  }
}

size_t BucketJob::ProgramOf(const BucketBatch& batch, MicroBatch micro_batch) const {
  return batch.bucket * MicroBatchSizes(batch_, micro_batch.count).size() + SizeIndex(micro_batch, batch_);
}

// Divides the examples of the batch evenly, also if they are fewer than batch_.
absl::StatusOr<TrainingBatch> BucketJob::ToBatch(DataSplit split, int64_t number, const BucketBatch& batch,
                                                 MicroBatch micro_batch) {
  const size_t program = ProgramOf(batch, micro_batch);
  const Recorded& recorded = recorded_[program];
  const IndexRange range = RowsOf(micro_batch, static_cast<int64_t>(batch.examples.size()));
  const auto indices = batch.examples.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
  WEFT_ASSIGN_OR_RETURN(const Rows rows, Fill({split, number, micro_batch, range.begin, indices, recorded.shape}));
  TrainingBatch result = {.program = program, .tokens = rows.tokens, .targets = rows.targets};
  for (size_t i = 0; i < rows.inputs.size(); ++i) result.feeds.push_back({recorded.inputs[i], rows.inputs[i]});
  return result;
}

absl::StatusOr<TrainingBatch> BucketJob::Train(int64_t step, MicroBatch micro_batch) {
  const int64_t epoch = step / batches_per_epoch_;
  if (epoch != epoch_) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, BeginEpoch(epoch));
    if (!lengths.empty()) train_ = std::make_unique<BucketBatches>(lengths_, lengths, batch_);
    epoch_ = epoch;
  }
  // If the epoch has more batches than batches_per_epoch_, some are left out; if fewer, some are read twice.
  const int64_t index = step % batches_per_epoch_ % train_->size();
  return ToBatch(DataSplit::kTrain, step, train_->AtStep(training_.seed, epoch * train_->size() + index), micro_batch);
}

absl::StatusOr<TrainingBatch> BucketJob::Validate(int64_t /*step*/, int64_t index) {
  const int64_t count = micro_batches(), batch = index / count;
  return ToBatch(DataSplit::kValidation, batch, (*validate_)[batch], {index % count, count});
}

// Every epoch has the same batches in another order, so only those of the last, partial epoch need to be counted. With
// BeginEpoch, the counts are estimates.
absl::StatusOr<ProgramCounts> BucketJob::CountPrograms(int64_t steps) {
  const int64_t count = micro_batches(), epoch = train_->size();
  const auto add = [&](const BucketBatch& batch, int64_t times, std::vector<int64_t>* to) {
    for (int64_t i = 0; i < count; ++i) {
      if (RowsOf({i, count}, static_cast<int64_t>(batch.examples.size())).size() == 0) continue;
      (*to)[ProgramOf(batch, {i, count})] += times;
    }
  };
  ProgramCounts counts = {.training = std::vector<int64_t>(programs_.size()),
                          .evaluation = std::vector<int64_t>(programs_.size())};
  for (int64_t i = 0; i < validate_->size(); ++i) add((*validate_)[i], 1, &counts.evaluation);
  if (epoch == 0) return counts;
  for (int64_t i = 0; i < epoch; ++i) add((*train_)[i], steps / epoch, &counts.training);
  for (int64_t step = steps / epoch * epoch; step < steps; ++step) {
    add(train_->AtStep(training_.seed, step), 1, &counts.training);
  }
  return counts;
}

}  // namespace weft
