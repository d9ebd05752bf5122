// ClassifyJob trains a classifier of texts, of pairs of texts or of words, or a regression, on a BERT-style encoder
// (models/bert.h), from initial or published weights.
// ClassifyJob trains the encoder and the head of its task together. For the task tokens, the first token of each word
// carries the word's label, and other tokens are ignored.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/tensor.h"
#include "weft/formats/config_json.h"
#include "weft/inference/measure/metrics.h"
#include "weft/models/bert.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"
#include "weft/text/data/buckets.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/classify_data.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {
namespace {

// Returns the index of the largest logit.
int32_t Highest(absl::Span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class ClassifyJob final : public BucketJob {
 public:
  ClassifyJob()
      : BucketJob(&tokenizer_, /*batch=*/32, {.also_train = "classifier,pooler.dense,head.*"},
                  {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01, .clip = 1.0}),
                   .schedule = {.peak = 5e-4, .floor = 0, .warmup = 100},
                   .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = 0},
                   .epochs = 5}) {
    set_source(&model_);
  }

  Hyperparameters Table() override {
    Hyperparameters table = InGroup("Data", data_.Table());
    table.push_back({"pooling",
                     "input of the classifier: the encoder's output for the first token, through one more layer as in "
                     "BERT, or the mean of the outputs for all tokens",
                     &pooling_,
                     {.choices = {"first", "mean"}, .group = "Model"}});
    table.push_back({"batch", "number of texts in a step", &batch_, {.low = 1, .high = 1e6, .group = "Training"}});
    Append(model_.Table(), &table);
    return WithSharedRows(std::move(table));
  }

  absl::Status Check(const RunDirectory* resumed) override {
    WEFT_RETURN_IF_ERROR(data_.Check());
    if (data_.task() == TextTask::kTokens && pooling_ == "mean") {
      return InvalidArgument("pooling: mean has no use in the task tokens, which labels each word");
    }
    return BucketJob::Check(resumed);
  }

  absl::Status Prepare(Parameters* /*parameters*/) override {
    WEFT_RETURN_IF_ERROR(data_.Read());
    WEFT_RETURN_IF_ERROR(PrepareTokenizer(data_.text()));
    const BertConfig& config = model_.config();
    if (reads_segments() && config.segments < 2) {
      return InvalidArgument("segments: the model has 1, but a pair of texts needs 2");
    }
    base_pooling_ = config.classifier_pooling;
    model_.mutable_config()->classifier_pooling = pooling_ == "mean" ? Pooling::kMean : Pooling::kFirst;
    WEFT_RETURN_IF_ERROR(data_.Encode(*tokenizer_, config.context));
    fingerprint_ = data_.Fingerprint();
    SetLengths(LengthsOf(data_.examples(DataSplit::kTrain).tokens),
               LengthsOf(data_.examples(DataSplit::kValidation).tokens), config.context);
    return absl::OkStatus();
  }

  nlohmann::ordered_json Model() const override {
    nlohmann::ordered_json json = BucketJob::Model();
    AddLabels(data_.labels(), &json);
    if (model_.config().classifier_pooling == Pooling::kMean) return json;  // Hugging Face has no such model
    json["architectures"] = {ClassName(
        model_.config(), data_.task() == TextTask::kTokens ? "ForTokenClassification" : "ForSequenceClassification")};
    if (data_.task() == TextTask::kRegression) json["problem_type"] = "regression";
    return json;
  }

  std::string Title(const Parameters& parameters) const override {
    const bool regression = data_.task() == TextTask::kRegression, tokens = data_.task() == TextTask::kTokens;
    return absl::StrCat(regression ? "a regression" : "a classifier", tokens ? " of words, " : " of ",
                        CountParameters(parameters), " on ", data_.size(),
                        tokens          ? " sentences"
                        : data_.pairs() ? " pairs of texts"
                                        : " texts",
                        " (", tokenizer_->vocabulary_size(), " tokens, ",
                        regression ? "" : absl::StrCat(data_.labels().size(), " labels, "), batches_per_epoch(),
                        " batches an epoch)");
  }

  absl::Status Initialize(Parameters* parameters) override {
    return model_.Initialize({"classifier.", "pooler.", "head."}, data_.labels(), parameters);
  }
  // Writes no adapter for a pooling that the base model lacks, because the files of adapters can't express it.
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override {
    const BertConfig& config = model_.config();
    const bool only_first = !config.shared_transform && pooling_ == "mean";
    return only_first || config.classifier_pooling != base_pooling_ ? absl::OkStatus()
                                                                    : TrainingJob::SaveMore(parameters, folder);
  }

  void Predicted(const Tensor& values) override {
    const ClassifyExamples& examples = data_.examples(DataSplit::kValidation);
    const absl::Span<const float> all = values.span<const float>();
    if (data_.task() == TextTask::kRegression) {
      for (size_t row = 0; row < filled_.size(); ++row) {
        right_.push_back(static_cast<double>(examples.numbers[static_cast<size_t>(filled_[row])]));
        predicted_.push_back(static_cast<double>(all[row]));
      }
      return;
    }
    const std::vector<std::string>& names = data_.labels();
    const auto length = static_cast<size_t>(values.type.shape.dim(1));
    for (size_t row = 0; row < filled_.size(); ++row) {
      const auto example = static_cast<size_t>(filled_[row]);
      std::vector<std::string> right, predicted;
      for (size_t word = 0; word < examples.labels[example].size(); ++word) {
        const int32_t first = examples.first_tokens[example][word];
        if (first < 0) continue;
        const size_t token = row * length + static_cast<size_t>(first);
        right.push_back(names[static_cast<size_t>(examples.labels[example][word])]);
        predicted.push_back(names[static_cast<size_t>(Highest(all.subspan(token * names.size(), names.size())))]);
      }
      tags_.Add(right, predicted);
    }
  }

  // Returns precision, recall and F1 of tagged entities, or the correlations of a regression.
  NamedFigures TakeFigures(bool averaged) override {
    NamedFigures figures;
    if (data_.task() == TextTask::kTokens) {
      const TagReport report = tags_.Report();
      figures = {{"precision", report.all.precision}, {"recall", report.all.recall}, {"f1", report.all.f1}};
      if (!averaged) report_ = ToText(report);
      tags_ = {};
    } else if (data_.task() == TextTask::kRegression) {
      const double pearson = PearsonCorrelation(right_, predicted_), spearman = SpearmanCorrelation(right_, predicted_);
      if (!std::isnan(pearson)) figures = {{"pearson", pearson}, {"spearman", spearman}};
      right_.clear();
      predicted_.clear();
    }
    return figures;
  }

  std::vector<std::string> figure_names() const override {
    if (data_.task() == TextTask::kTokens) return {"precision", "recall", "f1"};
    if (data_.task() == TextTask::kRegression) return {"pearson", "spearman"};
    return {};
  }

  // Returns the figures of each type of entity in the last evaluation, if the task is tokens.
  absl::StatusOr<std::string> Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) override {
    return report_;
  }

 protected:
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override {
    const auto [rows, length] = shape;
    const BertConfig& config = model_.config();
    const auto classes = static_cast<int64_t>(data_.labels().size());
    const bool tokens_task = data_.task() == TextTask::kTokens, regression = data_.task() == TextTask::kRegression;
    const Var tokens = tape->Input("tokens", {kI32, {rows, length}}, {.below = config.vocabulary});
    const Var lengths = tape->Input("lengths", {kI32, {rows}}, {.below = length + 1});
    BertInputs bert_inputs = {.lengths = lengths};
    *inputs = {tokens, lengths};
    if (reads_segments()) {
      bert_inputs.segments = tape->Input("segments", {kI32, {rows, length}}, {.below = config.segments});
      inputs->push_back(bert_inputs.segments);
    }
    Var targets, weights;
    if (regression) {
      targets = tape->Input("targets", {kF32, {rows}});
      weights = tape->Input("weights", {kF32, {rows}});
      inputs->push_back(targets);
      inputs->push_back(weights);
    } else {
      const weft::Shape shape_of_targets = tokens_task ? weft::Shape{rows, length} : weft::Shape{rows};
      targets = tape->Input("targets", {kI32, shape_of_targets}, {.below = classes, .ignored = kIgnoredTarget});
      inputs->push_back(targets);
    }
    const LoraScope lora(tape, lora_);
    const Bert bert(config);
    const Var hidden = bert.Encode(tokens, bert_inputs);
    if (regression) {
      const Var predicted = Reshape(bert.ClassifyText(hidden, lengths, 1), {rows});
      const Var loss = Sum(weights * Square(predicted - targets)) / Sum(weights);
      return {.tape = tape, .loss = loss, .prediction = predicted};
    }
    const Var logits = tokens_task ? bert.Classify(hidden, classes)                // [B, T, classes]
                                   : bert.ClassifyText(hidden, lengths, classes);  // [B, classes]
    return {.tape = tape,
            .loss = CrossEntropy(logits, targets),
            .correct = CountCorrect(logits, targets),
            .prediction = tokens_task ? logits : Var()};
  }

  absl::StatusOr<BucketJob::Rows> Fill(const Examples& micro_batch) override {
    const ClassifyExamples& from = data_.examples(micro_batch.split);
    const absl::Span<const int32_t> examples = micro_batch.indices;
    const Shape shape = micro_batch.shape;
    filled_.assign(examples.begin(), examples.end());
    const PaddedRows::Shape padded = {shape.rows, shape.length, tokenizer_->special_tokens().padding.value_or(0)};
    rows_.Fill(from.tokens, examples, padded);
    Rows result = {.inputs = {rows_.tokens, rows_.lengths},
                   .tokens = rows_.count,
                   .targets = static_cast<int64_t>(examples.size())};
    if (reads_segments()) {
      segments_.Fill(from.segments, examples, {shape.rows, shape.length, /*padding=*/0});
      result.inputs.emplace_back(segments_.tokens);
    }
    if (data_.task() == TextTask::kRegression) {
      numbers_.assign(static_cast<size_t>(shape.rows), 0);
      weights_.assign(static_cast<size_t>(shape.rows), 0);
      for (size_t row = 0; row < examples.size(); ++row) {
        numbers_[row] = from.numbers[static_cast<size_t>(examples[row])];
        weights_[row] = 1;
      }
      result.inputs.emplace_back(numbers_);
      result.inputs.emplace_back(weights_);
      return result;
    }
    const bool tokens_task = data_.task() == TextTask::kTokens;
    const auto each = static_cast<size_t>(tokens_task ? shape.length : 1);  // targets of a row
    targets_.assign(static_cast<size_t>(shape.rows) * each, kIgnoredTarget);
    if (tokens_task) result.targets = 0;
    for (size_t row = 0; row < examples.size(); ++row) {
      const auto example = static_cast<size_t>(examples[row]);
      const std::vector<int32_t>& labels = from.labels[example];
      if (!tokens_task) {
        targets_[row] = labels[0];
        continue;
      }
      for (size_t word = 0; word < labels.size(); ++word) {
        const int32_t first = from.first_tokens[example][word];
        if (first < 0) continue;
        targets_[row * each + static_cast<size_t>(first)] = labels[word];
        ++result.targets;
      }
    }
    result.inputs.emplace_back(targets_);
    return result;
  }

 private:
  bool reads_segments() const { return data_.pairs() && model_.config().segment_inputs; }

  // Options.
  ClassifyData data_;
  SourceOf<PublishedBert> model_{
      {.context = 256, .layers = 2, .heads = 4, .width = 128, .feed_forward = 256, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  std::string pooling_ = "first";
  Pooling base_pooling_ = Pooling::kFirst;  // of the model before Prepare

  // The micro-batch that Fill filled last.
  std::vector<int32_t> filled_;  // its examples
  PaddedRows rows_, segments_;
  std::vector<int32_t> targets_;
  std::vector<float> numbers_, weights_;
  // What Predicted received since the last figures.
  TaggingScore tags_;
  std::vector<double> right_, predicted_;
  std::string report_;
};

}  // namespace

std::unique_ptr<TrainingJob> MakeClassifyJob() { return std::make_unique<ClassifyJob>(); }

}  // namespace weft
