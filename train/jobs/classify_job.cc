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
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/core/tensor.h"
#include "weft/formats/config_json.h"
#include "weft/inference/measure/metrics.h"
#include "weft/models/bert.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"
#include "weft/text/data/buckets.h"
#include "weft/text/data/classifier_input.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/labelled_examples.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/job_list.h"

namespace weft {
namespace {

// Encoded examples. Element i of each member belongs to example i.
struct ClassifyExamples {
  std::vector<std::vector<int32_t>> tokens;    // with special tokens
  std::vector<std::vector<int32_t>> segments;  // of the tokens; only for pairs
  // Indices of the labels: one for the text, or one for each word of a sentence. Empty for regression.
  std::vector<std::vector<int32_t>> labels;
  // The index in `tokens` of the first token of each word, or -1 if the word has no token. Only for the task tokens.
  std::vector<std::vector<int32_t>> first_tokens;
  std::vector<float> numbers;  // only for regression
};

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
    Hyperparameters table = {
        ChoiceRow<TextTask>("task",
                            "what to learn: a label for a text or for a pair of texts, a label for each word, or a "
                            "number for a text or pair",
                            kTextTaskNames, &data_.task),
        {"data",
         "labelled texts, one a line: a text, a tab and its label; or files of the other formats; commas separate "
         "paths",
         &data_path_,
         {.may_change = true, .is_path_list = true, .required = true}},
        {"validation",
         "labelled texts for validation; without them, every tenth text of the data",
         &validation_path_,
         {.may_change = true, .is_path_list = true}},
    };
    Append(LabelledDataTable(&data_), &table);
    table.push_back({"truncate", "cut texts that are longer than the context, instead of failing", &truncate_});
    table = InGroup("Data", std::move(table));
    table.push_back({"pooling",
                     "input of the classifier: the encoder's output for the first token, through one more layer as in "
                     "BERT, or the mean of the outputs for all tokens",
                     &pooling_,
                     {.choices = {"first", "mean"}, .group = "Model"}});
    table.push_back({"batch", "number of texts in a step", &batch_, {.low = 1, .high = 1e6, .group = "Training"}});
    table.push_back(RDropRow("task=sequence|pair|tokens"));
    return WithSharedRows(std::move(table));
  }

  absl::Status Check(const RunDirectory* resumed) override {
    WEFT_RETURN_IF_ERROR(weft::Validate(data_));
    if (labels_words() && pooling_ == "mean") {
      return InvalidArgument("pooling: mean has no use in the task tokens, which labels each word");
    }
    return BucketJob::Check(resumed);
  }

  absl::Status Prepare(Parameters* /*parameters*/) override {
    WEFT_ASSIGN_OR_RETURN(LabelledExamples text, ReadLabelledExamples(data_path_, data_));
    // Also the labels of the examples that are held out below. A number has the name that Hugging Face gives it.
    labels_ = is_regression() ? std::vector<std::string>{"LABEL_0"} : LabelNames(text);
    WEFT_ASSIGN_OR_RETURN(const LabelledExamples validation_text, validation_path_.empty()
                                                                      ? TakeEveryTenth(&text)
                                                                      : ReadLabelledExamples(validation_path_, data_));
    const char* const between = labels_words() ? " " : "\n";
    WEFT_RETURN_IF_ERROR(
        PrepareTokenizer(absl::StrJoin(text.examples, "\n", [&](std::string* all, const LabelledExample& example) {
          absl::StrAppend(all, absl::StrJoin(example.texts, between));
        })));
    const BertConfig& config = model_.config();
    if (reads_segments() && config.segments < 2) {
      return InvalidArgument("segments: the model has 1, but a pair of texts needs 2");
    }
    base_pooling_ = config.classifier_pooling;
    model_.mutable_config()->classifier_pooling = pooling_ == "mean" ? Pooling::kMean : Pooling::kFirst;
    WEFT_ASSIGN_OR_RETURN(train_, Encode(text));
    WEFT_ASSIGN_OR_RETURN(validation_, Encode(validation_text));
    // The fingerprint of labelled texts is that of earlier versions, so that their runs can be resumed.
    std::vector<int32_t> labels;
    for (const std::vector<int32_t>& each : train_.labels) labels.insert(labels.end(), each.begin(), each.end());
    fingerprint_ = Fingerprint<int32_t>(labels, absl::StrJoin(labels_, "\t"));
    for (const auto* rows : {&train_.tokens, &train_.segments, &train_.first_tokens}) {
      for (const std::vector<int32_t>& row : *rows) fingerprint_ = Fingerprint<int32_t>(row, fingerprint_);
    }
    if (!train_.numbers.empty()) fingerprint_ = Fingerprint<float>(train_.numbers, fingerprint_);
    SetLengths(LengthsOf(train_.tokens), LengthsOf(validation_.tokens), config.context);
    return absl::OkStatus();
  }

  nlohmann::ordered_json Model() const override {
    nlohmann::ordered_json json = BucketJob::Model();
    AddLabels(labels_, &json);
    if (model_.config().classifier_pooling == Pooling::kMean) return json;  // Hugging Face has no such model
    json["architectures"] = {
        ClassName(model_.config(), labels_words() ? "ForTokenClassification" : "ForSequenceClassification")};
    if (is_regression()) json["problem_type"] = "regression";
    return json;
  }

  std::string Title(const Parameters& parameters) const override {
    const auto [one, many] = labels_words()  ? std::pair{"sentence", "sentences"}
                             : data_.pairs() ? std::pair{"pair of texts", "pairs of texts"}
                                             : std::pair{"text", "texts"};
    return absl::StrCat(is_regression() ? "a regression" : "a classifier", labels_words() ? " of words, " : " of ",
                        CountParameters(parameters), " on ", Count(train_.tokens.size(), one, many), " (",
                        tokenizer_->vocabulary_size(), " tokens, ",
                        is_regression() ? "" : Count(labels_.size(), "label, ", "labels, "),
                        Count(static_cast<size_t>(batches_per_epoch()), "batch", "batches"), " an epoch)");
  }

  absl::Status Initialize(Parameters* parameters) override {
    return model_.Initialize({"classifier.", "pooler.", "head."}, labels_, parameters);
  }
  // Writes no adapter for a pooling that the base model lacks, because the files of adapters can't express it.
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override {
    const BertConfig& config = model_.config();
    const bool only_first = !config.shared_transform && pooling_ == "mean";
    return only_first || config.classifier_pooling != base_pooling_ ? absl::OkStatus()
                                                                    : TrainingJob::SaveMore(parameters, folder);
  }

  void Predicted(const Tensor& values) override {
    const absl::Span<const float> all = values.span<const float>();
    if (is_regression()) {
      for (size_t row = 0; row < filled_.size(); ++row) {
        right_.push_back(static_cast<double>(validation_.numbers[static_cast<size_t>(filled_[row])]));
        predicted_.push_back(static_cast<double>(all[row]));
      }
      return;
    }
    const auto length = static_cast<size_t>(values.type.shape.dim(1));
    for (size_t row = 0; row < filled_.size(); ++row) {
      const auto example = static_cast<size_t>(filled_[row]);
      std::vector<std::string> right, predicted;
      for (size_t word = 0; word < validation_.labels[example].size(); ++word) {
        const int32_t first = validation_.first_tokens[example][word];
        if (first < 0) continue;
        const size_t token = row * length + static_cast<size_t>(first);
        right.push_back(labels_[static_cast<size_t>(validation_.labels[example][word])]);
        const absl::Span<const float> logits = all.subspan(token * labels_.size(), labels_.size());
        const auto highest = std::max_element(logits.begin(), logits.end()) - logits.begin();
        predicted.push_back(labels_[static_cast<size_t>(highest)]);
      }
      tags_.Add(right, predicted);
    }
  }

  // Returns precision, recall and F1 of tagged entities, or the correlations of a regression.
  NamedFigures TakeFigures(bool averaged) override {
    NamedFigures figures;
    if (labels_words()) {
      const TagReport report = tags_.Report();
      figures = {{"precision", report.all.precision}, {"recall", report.all.recall}, {"f1", report.all.f1}};
      if (!averaged) report_ = ToText(report);
      tags_ = {};
    } else if (is_regression()) {
      const double pearson = PearsonCorrelation(right_, predicted_), spearman = SpearmanCorrelation(right_, predicted_);
      if (!std::isnan(pearson)) figures = {{"pearson", pearson}, {"spearman", spearman}};
      right_.clear();
      predicted_.clear();
    }
    return figures;
  }

  std::vector<std::string> figure_names() const override {
    if (labels_words()) return {"precision", "recall", "f1"};
    if (is_regression()) return {"pearson", "spearman"};
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
    const auto classes = static_cast<int64_t>(labels_.size());
    const Var tokens = tape->Input("tokens", {kI32, {rows, length}}, {.below = config.vocabulary});
    const Var lengths = tape->Input("lengths", {kI32, {rows}}, {.below = length + 1});
    BertInputs bert_inputs = {.lengths = Twice(lengths)};
    *inputs = {tokens, lengths};
    if (reads_segments()) {
      inputs->push_back(tape->Input("segments", {kI32, {rows, length}}, {.below = config.segments}));
      bert_inputs.segments = Twice(inputs->back());
    }
    Var targets, weights;
    if (is_regression()) {
      targets = tape->Input("targets", {kF32, {rows}});
      weights = tape->Input("weights", {kF32, {rows}});
      inputs->push_back(targets);
      inputs->push_back(weights);
    } else {
      const weft::Shape shape_of_targets = labels_words() ? weft::Shape{rows, length} : weft::Shape{rows};
      targets = tape->Input("targets", {kI32, shape_of_targets}, {.below = classes, .ignored = kIgnoredTarget});
      inputs->push_back(targets);
    }
    const LoraScope lora(tape, lora_);
    const Bert bert(config);
    const Var hidden = bert.Encode(Twice(tokens), bert_inputs);
    if (is_regression()) {
      const Var predicted = Reshape(bert.ClassifyText(hidden, lengths, 1), {rows});
      const Var loss = Sum(weights * Square(predicted - targets)) / Sum(weights);
      return {.tape = tape, .loss = loss, .prediction = predicted};
    }
    const Var logits = labels_words() ? bert.Classify(hidden, classes)                            // [B, T, classes]
                                      : bert.ClassifyText(hidden, bert_inputs.lengths, classes);  // [B, classes]
    TrainingProgram program = LossOf(logits, targets);
    program.correct = CountCorrect(Once(logits), targets);
    if (labels_words()) program.prediction = Once(logits);
    return program;
  }

  absl::StatusOr<BucketJob::Rows> Fill(const Examples& micro_batch) override {
    const ClassifyExamples& from = micro_batch.split == DataSplit::kTrain ? train_ : validation_;
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
    if (is_regression()) {
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
    const auto each = static_cast<size_t>(labels_words() ? shape.length : 1);  // targets of a row
    targets_.assign(static_cast<size_t>(shape.rows) * each, kIgnoredTarget);
    if (labels_words()) result.targets = 0;
    for (size_t row = 0; row < examples.size(); ++row) {
      const auto example = static_cast<size_t>(examples[row]);
      const std::vector<int32_t>& labels = from.labels[example];
      if (!labels_words()) {
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
  bool labels_words() const { return data_.task == TextTask::kTokens; }
  bool is_regression() const { return data_.task == TextTask::kRegression; }
  bool reads_segments() const { return data_.pairs() && model_.config().segment_inputs; }

  // Encodes examples, with at most the context's number of tokens each. Returns InvalidArgument, with file and line,
  // for an example that is too long or empty, and for a label that the training data lack.
  absl::StatusOr<ClassifyExamples> Encode(const LabelledExamples& from) const {
    ClassifyExamples to;
    if (is_regression()) {
      WEFT_ASSIGN_OR_RETURN(to.numbers, LabelNumbers(from));
    } else {
      WEFT_ASSIGN_OR_RETURN(to.labels, LabelIds(from, labels_));
    }
    const EncodeLimits limits = {model_.config().context, truncate_};
    for (size_t i = 0; i < from.examples.size(); ++i) {
      const std::vector<std::string>& texts = from.examples[i].texts;
      ModelInput input;
      if (labels_words()) {
        WEFT_ASSIGN_OR_RETURN(WordsInput words, Annotate(InputOfWords(texts, *tokenizer_, limits), from.Location(i)));
        to.first_tokens.push_back(std::move(words.first));
        input = std::move(words.input);
      } else {
        WEFT_ASSIGN_OR_RETURN(input, Annotate(data_.pairs() ? PairInput(texts[0], texts[1], *tokenizer_, limits)
                                                            : TextInput(texts[0], *tokenizer_, limits),
                                              from.Location(i)));
      }
      to.tokens.push_back(std::move(input.ids));
      if (data_.pairs()) to.segments.push_back(std::move(input.segments));
    }
    return to;
  }

  // Options.
  LabelledDataOptions data_;
  std::string data_path_, validation_path_;
  bool truncate_ = false;
  SourceOf<PublishedBert> model_{
      {.context = 256, .layers = 2, .heads = 4, .width = 128, .feed_forward = 256, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer();
  std::string pooling_ = "first";
  Pooling base_pooling_ = Pooling::kFirst;  // of the model before Prepare

  std::vector<std::string> labels_;  // the classes; a regression has one
  ClassifyExamples train_, validation_;
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
