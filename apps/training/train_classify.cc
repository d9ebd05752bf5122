#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/apps/training/training_command.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/text/buckets.h"
#include "weft/text/labelled_text.h"
#include "weft/train/bert_source.h"
#include "weft/train/optimizer.h"
#include "weft/train/options.h"
#include "weft/train/training_tokenizer.h"

namespace weft {
namespace {

struct Examples {
  std::vector<std::vector<int32_t>> tokens;  // with the special ones
  std::vector<int32_t> labels;

  std::vector<int64_t> Lengths() const {
    std::vector<int64_t> lengths;
    for (const std::vector<int32_t>& each : tokens) lengths.push_back(static_cast<int64_t>(each.size()));
    return lengths;
  }
};

// What is recorded for the batches of one bucket.
struct BucketProgram {
  Tape tape;
  Var tokens, lengths, targets;  // i32 [B, T], [B], [B]
};

class ClassifyJob final : public TrainingJob {
 public:
  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  TrainerOptions trainer() const override {
    return train_ == nullptr ? trainer_ : InSteps(trainer_, epochs_, train_->size());
  }
  nlohmann::ordered_json Model() const override {
    nlohmann::ordered_json json = ToJson(config_).value_or(nlohmann::ordered_json());
    AddLabels(names_, &json);
    return json;
  }
  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a classifier of ", parameters.ElementCount(), " parameters on ", examples_.labels.size(),
                        " texts (", tokenizer_->vocabulary_size(), " tokens, ", names_.size(), " labels, ",
                        train_->size(), " batches an epoch)");
  }
  absl::Status Initialize(Parameters* parameters) override {
    return source_.Initialize({"classifier.", "pooler."}, names_, parameters);
  }
  absl::Status WriteFiles(const RunDirectory& run) const override { return tokenizer_.Write(run); }

  absl::Span<const TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override {
    return Fill(examples_, train_->AtStep(trainer_.seed, step));
  }
  int64_t validation_batches() const override { return validate_->size(); }
  TrainingBatch Validate(int64_t /*step*/, int64_t index) override { return Fill(held_, (*validate_)[index]); }

 private:
  absl::StatusOr<Examples> Encode(const LabelledText& text) const;
  void Record(int64_t length);
  TrainingBatch Fill(const Examples& examples, const BucketBatch& batch);

  // Options.
  std::string data_, validation_;
  BertSource source_{{.context = 256, .layers = 2, .heads = 4, .width = 128, .feed_forward = 256, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  std::string pooling_ = "first";
  bool truncate_ = false;
  int64_t batch_ = 32, epochs_ = 5;
  AdamWConfig optimizer_ = {.beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01, .clip = 1.0};
  TrainerOptions trainer_ = {.steps = 0,
                             .learning_rate = 5e-4,
                             .minimum_learning_rate = 0,
                             .warmup_steps = 100,
                             .eval_every = -1,
                             .checkpoint_every = 0};

  std::string fingerprint_;
  BertConfig config_;
  std::vector<std::string> names_;  // of the labels
  Examples examples_, held_;        // for training and for validation
  std::vector<int64_t> lengths_;    // of the buckets
  std::unique_ptr<BucketBatches> train_, validate_;
  std::vector<std::unique_ptr<BucketProgram>> recorded_;
  std::vector<TrainingProgram> programs_;
  std::vector<int32_t> rows_, row_lengths_, targets_;
};

Hyperparameters ClassifyJob::Table() {
  Hyperparameters table = {
      {"data", "texts with labels, \"a text<TAB>its label\" a line", &data_, {.may_change = true, .is_path = true}},
      {"validation",
       "texts with labels for validation; without them, every tenth of --data",
       &validation_,
       {.may_change = true, .is_path = true}},
      {"truncate", "cut texts that are longer than the context, which else is an error", &truncate_},
      {"pooling",
       "what of the encoder's output is classified: the first token's through one more layer, as BERT has it, or the "
       "mean of all",
       &pooling_,
       {.choices = {"first", "mean"}}},
      {"batch", "texts in a batch", &batch_, {.low = 1, .high = 1e6}},
  };
  const auto append = [&](const Hyperparameters& rows) { table.insert(table.end(), rows.begin(), rows.end()); };
  append(source_.Table());
  append(tokenizer_.Table());
  append(TrainerHyperparameters(&trainer_, &epochs_));
  append(AdamWHyperparameters(&optimizer_));
  return table;
}

absl::Status ClassifyJob::Check(const RunDirectory* resumed) {
  if (data_.empty()) return absl::InvalidArgumentError("--data=FILE is missing");
  if (resumed != nullptr) tokenizer_.set_run(resumed->path());
  return source_.Read(ModelOf(resumed));
}

absl::StatusOr<Examples> ClassifyJob::Encode(const LabelledText& text) const {
  Examples examples;
  WEFT_ASSIGN_OR_RETURN(examples.labels, LabelIds(text, names_));
  const auto around = static_cast<int64_t>(tokenizer_->Wrap({}).ids.size());
  for (size_t i = 0; i < text.text.lines.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                          EncodeLine(text.text, i, *tokenizer_, {source_.config().context, truncate_}, around));
    examples.tokens.push_back(tokenizer_->Wrap(ids).ids);
  }
  return examples;
}

// Every tenth text, which is taken from `text`.
LabelledText HoldOut(LabelledText* text) {
  LabelledText kept = {.text = {.path = text->text.path}}, held = kept;
  for (size_t i = 0; i < text->labels.size(); ++i) {
    LabelledText& to = i % 10 == 9 ? held : kept;
    to.text.Take(text->text, i);
    to.labels.push_back(std::move(text->labels[i]));
  }
  *text = std::move(kept);
  return held;
}

absl::Status ClassifyJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(LabelledText text, ReadLabelledText(data_));
  LabelledText held;
  if (validation_.empty()) {
    held = HoldOut(&text);
  } else {
    WEFT_ASSIGN_OR_RETURN(held, ReadLabelledText(validation_));
  }
  names_ = LabelNames(text);
  const std::string all = absl::StrJoin(text.text.lines, "\n");
  tokenizer_.set_default(source_.init());
  WEFT_RETURN_IF_ERROR(tokenizer_.Prepare(all));
  WEFT_RETURN_IF_ERROR(source_.SetVocabulary(*tokenizer_));
  config_ = source_.config();
  config_.classifier_pooling = pooling_ == "mean" ? Pooling::kMean : Pooling::kFirst;
  WEFT_ASSIGN_OR_RETURN(examples_, Encode(text));
  WEFT_ASSIGN_OR_RETURN(held_, Encode(held));

  fingerprint_ = Fingerprint<int32_t>(examples_.labels, absl::StrJoin(names_, "\t"));
  for (const std::vector<int32_t>& tokens : examples_.tokens) fingerprint_ = Fingerprint<int32_t>(tokens, fingerprint_);
  const std::vector<int64_t> lengths = examples_.Lengths(), held_lengths = held_.Lengths();
  lengths_ = BucketLengths(lengths, held_lengths, {.rows = batch_, .longest = source_.config().context});
  train_ = std::make_unique<BucketBatches>(lengths_, lengths, batch_);
  validate_ = std::make_unique<BucketBatches>(lengths_, held_lengths, batch_);
  for (const int64_t length : lengths_) Record(length);
  return absl::OkStatus();
}

void ClassifyJob::Record(int64_t length) {
  auto program = std::make_unique<BucketProgram>();
  Tape* const tape = &program->tape;
  const auto classes = static_cast<int64_t>(names_.size());
  program->tokens = tape->Input("tokens", {kI32, {batch_, length}}, {.below = source_.config().vocabulary});
  program->lengths = tape->Input("lengths", {kI32, {batch_}}, {.below = length + 1});
  program->targets = tape->Input("targets", {kI32, {batch_}}, {.below = classes, .ignored = kIgnoredTarget});
  const Bert bert(config_);
  const Var hidden = bert.Encode(program->tokens, {.lengths = program->lengths});
  const Var logits = bert.ClassifyText(hidden, program->lengths, classes);  // [B, classes]
  programs_.push_back(
      RecordUpdate(CrossEntropy(logits, program->targets), optimizer_, CountCorrect(logits, program->targets)));
  recorded_.push_back(std::move(program));
}

TrainingBatch ClassifyJob::Fill(const Examples& examples, const BucketBatch& batch) {
  const int64_t length = lengths_[batch.bucket];
  const auto rows = static_cast<size_t>(batch_);
  rows_.assign(rows * static_cast<size_t>(length), tokenizer_->special_tokens().padding.value_or(0));
  row_lengths_.assign(rows, 0);
  targets_.assign(rows, kIgnoredTarget);
  const BucketProgram& program = *recorded_[batch.bucket];
  TrainingBatch result = {
      .program = batch.bucket,
      .feeds = {{program.tokens, rows_}, {program.lengths, row_lengths_}, {program.targets, targets_}},
      .targets = static_cast<int64_t>(batch.examples.size())};
  for (size_t row = 0; row < batch.examples.size(); ++row) {
    const auto example = static_cast<size_t>(batch.examples[row]);
    const std::vector<int32_t>& tokens = examples.tokens[example];
    std::copy(tokens.begin(), tokens.end(), &rows_[row * static_cast<size_t>(length)]);
    row_lengths_[row] = static_cast<int32_t>(tokens.size());
    targets_[row] = examples.labels[example];
    result.tokens += static_cast<int64_t>(tokens.size());
  }
  return result;
}

}  // namespace

Command TrainClassifyCommand(CLI::App* train) {
  return TrainingCommand(train, "classify",
                         "Trains a BERT-style classifier of texts, from nothing or from weights that others trained.",
                         [] { return std::make_unique<ClassifyJob>(); });
}

}  // namespace weft
