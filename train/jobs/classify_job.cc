// ClassifyJob reads labelled texts, and trains the encoder and the classifier on these texts together.
#include "weft/train/jobs/classify_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/model_options.h"
#include "weft/formats/run_path.h"
#include "weft/models/layers.h"
#include "weft/text/sentence_pairs.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {
namespace {

// Returns the texts of the file `path`. If `path` is "", moves every tenth text of `text` to the result.
absl::StatusOr<LabelledText> ReadValidationText(const std::string& path, LabelledText* text) {
  if (!path.empty()) return ReadLabelledText(path);
  LabelledText kept = {.text = {.path = text->text.path}}, validation = kept;
  for (size_t i = 0; i < text->labels.size(); ++i) {
    LabelledText& to = i % 10 == 9 ? validation : kept;
    to.text.Take(text->text, i);
    to.labels.push_back(std::move(text->labels[i]));
  }
  *text = std::move(kept);
  return validation;
}

}  // namespace

ClassifyJob::ClassifyJob()
    : BucketJob(/*batch=*/32, {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01, .clip = 1.0}),
                               .schedule = {.peak = 5e-4, .floor = 0, .warmup = 100},
                               .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = 0},
                               .epochs = 5}) {}

nlohmann::ordered_json ClassifyJob::Model() const {
  nlohmann::ordered_json json = WriteModelConfig(config_).value_or(nlohmann::ordered_json());
  AddLabels(labels_, &json);
  return json;
}

std::string ClassifyJob::Title(const Parameters& parameters) const {
  return absl::StrCat("a classifier of ", parameters.ElementCount(), " parameters", CountTrained(lora_, parameters),
                      " on ", examples_.labels.size(), " texts (", tokenizer_->vocabulary_size(), " tokens, ",
                      labels_.size(), " labels, ", batches_per_epoch(), " batches an epoch)");
}

Hyperparameters ClassifyJob::Table() {
  Hyperparameters table = {
      {"data",
       "labelled texts, one a line: a text, a tab and its label",
       &data_,
       {.may_change = true, .is_path = true, .required = true}},
      {"validation",
       "labelled texts for validation; without them, every tenth text of the data",
       &validation_,
       {.may_change = true, .is_path = true}},
      {"truncate", "cut texts that are longer than the context, instead of failing", &truncate_},
      {"pooling",
       "input of the classifier: the encoder's output for the first token, through one more layer as in BERT, or the "
       "mean of the outputs for all tokens",
       &pooling_,
       {.choices = {"first", "mean"}, .group = "Model"}},
      {"batch", "number of texts in a step", &batch_, {.low = 1, .high = 1e6, .group = "Training"}},
  };
  table = InGroup("Data", std::move(table));
  Append(InGroup("Model", source_.Table()), &table);
  Append(tokenizer_.Table(), &table);
  Append(InGroup("Low-rank adapters", LoraHyperparameters(&lora_)), &table);
  Append(TrainingHyperparameters(&training_), &table);
  return table;
}

absl::Status ClassifyJob::Check(const RunDirectory* resumed) {
  if (data_.empty()) return MissingFile("data");
  WEFT_RETURN_IF_ERROR(weft::Validate(lora_));
  WEFT_RETURN_IF_ERROR(CheckMicroBatches(batch_, micro_batches()));
  if (resumed != nullptr) tokenizer_.set_run(resumed->path());
  return source_.Check();
}

absl::StatusOr<ClassifyJob::Examples> ClassifyJob::Encode(const LabelledText& text) const {
  Examples examples;
  WEFT_ASSIGN_OR_RETURN(examples.labels, LabelIds(text, labels_));
  const auto around = static_cast<int64_t>(tokenizer_->Wrap({}).ids.size());
  for (size_t i = 0; i < text.text.lines.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                          EncodeLine(text.text, i, *tokenizer_, {source_.config().context, truncate_}, around));
    examples.tokens.push_back(tokenizer_->Wrap(ids).ids);
  }
  return examples;
}

absl::Status ClassifyJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(LabelledText text, ReadLabelledText(data_));
  WEFT_ASSIGN_OR_RETURN(const LabelledText validation, ReadValidationText(validation_, &text));
  labels_ = LabelNames(text);
  const std::string all = absl::StrJoin(text.text.lines, "\n");
  tokenizer_.set_default(ParseRunPath(source_.init()).folder);
  WEFT_RETURN_IF_ERROR(tokenizer_.Prepare(all));
  WEFT_RETURN_IF_ERROR(source_.SetVocabulary(tokenizer_->vocabulary_size()));
  config_ = source_.config();
  config_.classifier_pooling = pooling_ == "mean" ? Pooling::kMean : Pooling::kFirst;
  WEFT_ASSIGN_OR_RETURN(examples_, Encode(text));
  WEFT_ASSIGN_OR_RETURN(validation_examples_, Encode(validation));

  fingerprint_ = Fingerprint<int32_t>(examples_.labels, absl::StrJoin(labels_, "\t"));
  for (const std::vector<int32_t>& tokens : examples_.tokens) fingerprint_ = Fingerprint<int32_t>(tokens, fingerprint_);
  SetLengths(LengthsOf(examples_.tokens), LengthsOf(validation_examples_.tokens), config_.context);
  return absl::OkStatus();
}

TrainingProgram ClassifyJob::Record(Shape shape, Tape* tape, VarList* inputs) {
  const auto [rows, length] = shape;
  const auto classes = static_cast<int64_t>(labels_.size());
  const Var tokens = tape->Input("tokens", {kI32, {rows, length}}, {.below = config_.vocabulary});
  const Var lengths = tape->Input("lengths", {kI32, {rows}}, {.below = length + 1});
  const Var targets = tape->Input("targets", {kI32, {rows}}, {.below = classes, .ignored = kIgnoredTarget});
  *inputs = {tokens, lengths, targets};
  const LoraScope lora(tape, lora_);
  const Bert bert(config_);
  const Var hidden = bert.Encode(tokens, {.lengths = lengths});
  const Var logits = bert.ClassifyText(hidden, lengths, classes);  // [B, classes]
  return {.tape = tape, .loss = CrossEntropy(logits, targets), .correct = CountCorrect(logits, targets)};
}

BucketJob::Rows ClassifyJob::Fill(DataSplit split, absl::Span<const int32_t> examples, Shape shape) {
  const Examples& from = split == DataSplit::kTrain ? examples_ : validation_examples_;
  rows_.Fill(from.tokens, examples, {shape.rows, shape.length, tokenizer_->special_tokens().padding.value_or(0)});
  targets_.assign(static_cast<size_t>(shape.rows), kIgnoredTarget);
  for (size_t row = 0; row < examples.size(); ++row) {
    targets_[row] = from.labels[static_cast<size_t>(examples[row])];
  }
  return {.inputs = {rows_.tokens, rows_.lengths, targets_},
          .tokens = rows_.count,
          .targets = static_cast<int64_t>(examples.size())};
}

}  // namespace weft
