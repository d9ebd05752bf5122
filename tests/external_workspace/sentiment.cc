// This program trains a classifier of texts with Weft's trainer, resumes the training, and uses the result.
// docs/tutorials/train_your_own_model.md explains the program.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "weft/base/checksum.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/models/block.h"
#include "weft/text/data/buckets.h"
#include "weft/text/data/labelled_examples.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/train/loop/trainer.h"

// `kBatch`: texts in a batch. `kLengths`: tokens in a row of a batch; a longer text is cut to the last of these.
// `kVocabulary`: maximum number of different tokens. `kClasses`: number of labels.
constexpr int64_t kBatch = 32, kLengths[] = {16, 64}, kWidth = 64, kVocabulary = 4000, kClasses = 2;

struct Texts {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int32_t> labels;
  std::string checksum;  // of the texts and labels
};

absl::StatusOr<Texts> Encode(const weft::LabelledExamples& data, const weft::Tokenizer& tokenizer) {
  Texts texts;
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> labels, weft::LabelIds(data, {"0", "1"}));
  weft::Checksummer checksum;
  for (size_t i = 0; i < labels.size(); ++i) {
    const weft::LabelledExample& example = data.examples[i];
    checksum.Add(absl::StrCat(example.texts[0], "\t", example.labels[0], "\n"));
    texts.labels.push_back(labels[i][0]);
    WEFT_ASSIGN_OR_RETURN(texts.tokens.emplace_back(), tokenizer.Encode(example.texts[0]));
    if (texts.tokens[i].size() > kLengths[1]) texts.tokens[i].resize(kLengths[1]);
  }
  texts.checksum = checksum.Digest();
  return texts;
}

// Returns the logits [B, classes] of B texts. `tokens`: i32 [B, T], one text a row. `lengths`: i32 [B], the number of
// tokens of each text; the rest of its row is padding.
weft::Var Logits(weft::Var tokens, weft::Var lengths) {
  const int64_t batch = tokens.dim(0), length = tokens.dim(1);
  weft::Var x = weft::Embedding(weft::EmbeddingTable("words", tokens.tape, kVocabulary, kWidth), tokens);  // [B, T, C]
  x = x + weft::SinusoidalPositions(tokens.tape, weft::kF32, length, kWidth);
  const weft::Var padding = weft::PaddingMask(lengths, length);  // [B, 1, 1, T]
  for (const char* name : {"block.0", "block.1"}) {
    x = weft::Block(name, x, {.attention = {.heads = 4}}, {.attention = {.mask = padding}});
  }
  x = weft::MaskFill(x, weft::Reshape(padding, {batch, length, 1}), 0);
  const weft::Var count = weft::Reshape(weft::Cast(lengths, weft::kF32), {batch, 1}) + 1e-9;  // not 0 in an empty row
  return weft::Linear("classifier", weft::Sum(x, 1) / count, kClasses);
}

class Sentiment final : public weft::TrainingTask {
 public:
  Sentiment(Texts train, Texts validation)
      : train_(std::move(train)),
        validation_(std::move(validation)),
        train_batches_(kLengths, weft::LengthsOf(train_.tokens), kBatch),
        validation_batches_(kLengths, weft::LengthsOf(validation_.tokens), kBatch) {
    for (const int64_t length : kLengths) {
      Recorded& r = recorded_.emplace_back();
      r.tokens = r.tape.Input("tokens", {weft::kI32, {kBatch, length}}, {.below = kVocabulary});
      r.lengths = r.tape.Input("lengths", {weft::kI32, {kBatch}}, {.below = length + 1});
      r.labels = r.tape.Input("labels", {weft::kI32, {kBatch}}, {.below = kClasses, .ignored = weft::kIgnoredTarget});
      r.logits = Logits(r.tokens, r.lengths);
      programs_.push_back({&r.tape, weft::CrossEntropy(r.logits, r.labels), weft::CountCorrect(r.logits, r.labels)});
    }
  }
  absl::Span<const weft::TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return train_.checksum; }
  absl::StatusOr<weft::TrainingBatch> Train(int64_t step, weft::MicroBatch) override {
    return Fill(train_, train_batches_.AtStep(/*seed=*/1, step));
  }
  int64_t validation_batches() const override { return validation_batches_.size(); }
  absl::StatusOr<weft::TrainingBatch> Validate(int64_t, int64_t i) override {
    return Fill(validation_, validation_batches_[i]);
  }

 private:
  weft::TrainingBatch Fill(const Texts& texts, const weft::BucketBatch& batch) {
    const Recorded& r = recorded_[batch.bucket];
    rows_.Fill(texts.tokens, batch.examples, {.rows = kBatch, .length = kLengths[batch.bucket]});
    labels_.assign(kBatch, weft::kIgnoredTarget);
    for (size_t i = 0; i < batch.examples.size(); ++i) labels_[i] = texts.labels[batch.examples[i]];
    return {.program = batch.bucket,
            .feeds = {{r.tokens, rows_.tokens}, {r.lengths, rows_.lengths}, {r.labels, labels_}},
            .tokens = rows_.count,
            .targets = static_cast<int64_t>(batch.examples.size())};
  }

  struct Recorded {
    weft::Tape tape;
    weft::Var tokens, lengths, labels, logits;
  };
  Texts train_, validation_;
  weft::BucketBatches train_batches_, validation_batches_;
  std::deque<Recorded> recorded_;  // for each length
  std::vector<weft::TrainingProgram> programs_;
  weft::PaddedRows rows_;  // of the newest batch
  std::vector<int32_t> labels_;
};

absl::Status Train(const std::string& train_path, const std::string& validation_path, const std::string& folder,
                   bool resume, const std::vector<std::string>& questions) {
  WEFT_ASSIGN_OR_RETURN(const weft::LabelledExamples data, weft::ReadLabelledExamples(train_path, {}));
  WEFT_ASSIGN_OR_RETURN(const weft::LabelledExamples validation_data, weft::ReadLabelledExamples(validation_path, {}));
  std::string text;  // from which the tokenizer is learnt
  for (const weft::LabelledExample& example : data.examples) absl::StrAppend(&text, example.texts[0], "\n");
  WEFT_ASSIGN_OR_RETURN(weft::BpeModel bpe, weft::LearnByteLevelBpe(text, {.vocabulary = kVocabulary}));
  WEFT_ASSIGN_OR_RETURN(const auto tokenizer, weft::Bpe::Create(std::move(bpe)));
  WEFT_ASSIGN_OR_RETURN(Texts texts, Encode(data, *tokenizer));
  WEFT_ASSIGN_OR_RETURN(Texts validation, Encode(validation_data, *tokenizer));
  Sentiment task(std::move(texts), std::move(validation));

  weft::TrainerOptions options = {
      .steps = 600, .optimizer = weft::AdamW({.clip = 1.0}), .eval_every = 200, .checkpoint_every = 200};
  options.learning_rate = weft::MakeRateSchedule(*weft::FindRateSchedule("cosine"), {.peak = 1e-3, .steps = 600});
  weft::Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(weft::RunDirectory run,
                        weft::RunDirectory::Find({.name = "sentiment", .out = folder, .resume = resume}));
  WEFT_ASSIGN_OR_RETURN(const auto trainer, weft::Trainer::Create(options, &task, &parameters, &run));
  if (resume) WEFT_RETURN_IF_ERROR(trainer->Resume().status());
  WEFT_RETURN_IF_ERROR(run.Begin({{"command", "train sentiment"}}));
  weft::Progress progress({.log_every = 200});
  WEFT_RETURN_IF_ERROR(trainer->Train(&progress));

  // The use: this tape takes one text of at most 64 tokens, and reads the same parameters.
  weft::Tape tape;
  const weft::Var tokens = tape.Input("tokens", {weft::kI32, {1, kLengths[1]}}, {.below = kVocabulary});
  const weft::Var length = tape.Input("length", {weft::kI32, {1}}, {.below = kLengths[1] + 1});
  const weft::Var probabilities = weft::Softmax(Logits(tokens, length));
  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {probabilities}, .mode = weft::kEval}));
  weft::Runner runner(std::move(graph), &parameters);
  for (const std::string& question : questions) {
    weft::PaddedRows row;
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode(question));
    row.Fill({ids}, {0}, {.rows = 1, .length = kLengths[1]});
    WEFT_ASSIGN_OR_RETURN(const weft::Outputs out, runner.Run({{tokens, row.tokens}, {length, row.lengths}}));
    std::printf("%.3f  %s\n", out[probabilities].as<float>()[1], question.c_str());
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc < 4) {
    return ExitCode(absl::InvalidArgumentError("usage: sentiment TRAIN.tsv VALIDATION.tsv RUN [--resume] [TEXT...]"));
  }
  const bool resume = argc > 4 && std::string(argv[4]) == "--resume";
  return ExitCode(Train(argv[1], argv[2], argv[3], resume, {argv + (resume ? 5 : 4), argv + argc}));
}
