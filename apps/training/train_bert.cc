#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/training/training_command.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/text/corpus.h"
#include "weft/text/masking.h"
#include "weft/train/bert_source.h"
#include "weft/train/optimizer.h"
#include "weft/train/options.h"
#include "weft/train/training_tokenizer.h"

namespace weft {
namespace {

class BertJob final : public TrainingJob {
 public:
  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override {
    if (resumed != nullptr) tokenizer_.set_run(resumed->path());
    return source_.Read(ModelOf(resumed));
  }
  absl::Status Prepare(Parameters* parameters) override;
  TrainerOptions trainer() const override { return trainer_; }
  nlohmann::ordered_json Model() const override { return ToJson(source_.config()).value_or(nlohmann::ordered_json()); }
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override {
    return source_.Initialize({"cls.", "pooler."}, {}, parameters);
  }
  absl::Status WriteFiles(const RunDirectory& run) const override { return tokenizer_.Write(run); }

  absl::Span<const TrainingProgram> programs() const override { return {&program_, 1}; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override {
    return Sample(CorpusPart::kTrain, 0, {.seed = trainer_.seed, .step = static_cast<uint32_t>(step)});
  }
  int64_t validation_batches() const override { return eval_batches_; }
  TrainingBatch Validate(int64_t /*step*/, int64_t index) override {  // the same each time
    return Sample(CorpusPart::kValidation, index, {.seed = trainer_.seed, .step = static_cast<uint32_t>(index)});
  }

 private:
  void Record();
  TrainingBatch Sample(CorpusPart part, int64_t index, RandomStream random);
  void PutRow(absl::Span<const int32_t> window, absl::Span<const int32_t> second);
  int64_t length() const { return source_.config().context; }

  // Options.
  std::string data_, validation_;
  BertSource source_{{.context = 128, .layers = 4, .heads = 4, .width = 256, .feed_forward = 1024, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  bool next_sentence_ = false;
  double masked_ = 0.15;
  int64_t batch_ = 32, eval_batches_ = 20;
  AdamWConfig optimizer_ = {.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.01, .clip = 1.0};
  TrainerOptions trainer_ = {.learning_rate = 1e-3, .minimum_learning_rate = 1e-5, .warmup_steps = 200};

  std::string fingerprint_;
  std::optional<TokenCorpus> corpus_;
  int32_t classification_ = 0, separator_ = 0;
  MaskingOptions masking_;
  Tape tape_;
  Var tokens_, segments_, places_, targets_, follows_;  // i32 [B, T] twice, [B·M] twice, [B]
  TrainingProgram program_;
  TokenBatch windows_, others_;
  std::vector<int32_t> rows_, row_segments_, row_follows_;
  std::vector<bool> may_mask_;
  MaskedPositions masked_positions_;
};

Hyperparameters BertJob::Table() {
  Hyperparameters table = {
      {"data", "a UTF-8 text; without it, the King James Bible", &data_, {.may_change = true, .is_path = true}},
      {"validation",
       "a text for validation; without it, the last tenth of --data",
       &validation_,
       {.may_change = true, .is_path = true}},
      {"masked", "the part of the tokens that are to be guessed", &masked_, {.low = 0.001, .high = 1}},
      {"next-sentence", "learn, too, whether the second half of an input follows the first", &next_sentence_},
      {"batch", "windows of text in a batch", &batch_, {.low = 1, .high = 1e6}},
      {"eval-batches", "batches in an evaluation", &eval_batches_, {.low = 0, .may_change = true}},
  };
  const auto append = [&](const Hyperparameters& rows) { table.insert(table.end(), rows.begin(), rows.end()); };
  append(source_.Table());
  append(tokenizer_.Table());
  append(TrainerHyperparameters(&trainer_));
  append(AdamWHyperparameters(&optimizer_));
  return table;
}

// What a model that knows only how frequent tokens are could not go below, in nats a token.
double UnigramEntropy(absl::Span<const int32_t> tokens, int64_t vocabulary) {
  std::vector<double> counts(static_cast<size_t>(vocabulary));
  for (const int32_t token : tokens) ++counts[static_cast<size_t>(token)];
  double entropy = 0;
  for (const double count : counts) {
    const double part = count / static_cast<double>(tokens.size());
    if (count > 0) entropy -= part * std::log(part);
  }
  return entropy;
}

std::string BertJob::Title(const Parameters& parameters) const {
  return absl::StrFormat(
      "a BERT of %d parameters on %d tokens (%d different; the validation text's unigram entropy is %.4f)",
      parameters.ElementCount(), corpus_->tokens(CorpusPart::kTrain).size(), tokenizer_->vocabulary_size(),
      UnigramEntropy(corpus_->tokens(CorpusPart::kValidation), source_.config().vocabulary));
}

absl::Status BertJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, data_.empty() ? ReadKingJamesBible() : ReadText(data_));
  tokenizer_.set_default(source_.init());
  WEFT_RETURN_IF_ERROR(tokenizer_.Prepare(text));
  WEFT_RETURN_IF_ERROR(source_.SetVocabulary(*tokenizer_));
  const SpecialTokens& special = tokenizer_->special_tokens();
  WEFT_ASSIGN_OR_RETURN(classification_, NeededToken(special.classification, "classification"));
  WEFT_ASSIGN_OR_RETURN(separator_, NeededToken(special.separator, "separator"));
  WEFT_ASSIGN_OR_RETURN(masking_.mask, NeededToken(special.mask, "mask"));
  const int64_t window = length() - (next_sentence_ ? 3 : 2);  // but for [CLS] and [SEP]
  if (window < 2) return absl::InvalidArgumentError(absl::StrCat("a context of ", length(), " has room for no text"));
  masking_.vocabulary = source_.config().vocabulary;
  masking_.count = std::max<int64_t>(1, std::llround(masked_ * static_cast<double>(window)));

  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeText(data_, text, *tokenizer_));
  absl::StatusOr<TokenCorpus> corpus;
  if (validation_.empty()) {
    corpus = TokenCorpus::Create(std::move(tokens), window);
  } else {
    WEFT_ASSIGN_OR_RETURN(const std::string held, ReadText(validation_));
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> held_tokens, EncodeText(validation_, held, *tokenizer_));
    corpus = TokenCorpus::Create(std::move(tokens), held_tokens, window);
  }
  if (!corpus.ok()) return corpus.status();
  corpus_.emplace(*std::move(corpus));
  fingerprint_ = Fingerprint<int32_t>(corpus_->tokens(CorpusPart::kTrain));
  Record();
  return absl::OkStatus();
}

void BertJob::Record() {
  const int64_t guessed = batch_ * masking_.count;
  const BertConfig& config = source_.config();
  tokens_ = tape_.Input("tokens", {kI32, {batch_, length()}}, {.below = config.vocabulary});
  places_ = tape_.Input("places", {kI32, {guessed}}, {.below = batch_ * length()});
  targets_ = tape_.Input("targets", {kI32, {guessed}}, {.below = config.vocabulary, .ignored = -100});
  BertInputs inputs;
  if (next_sentence_) inputs.segments = segments_ = tape_.Input("segments", {kI32, {batch_, length()}}, {.below = 2});
  const Bert bert(config);
  const Var hidden = bert.Encode(tokens_, inputs);  // [B, T, C]
  // Only what is to be guessed goes through the head.
  const Var chosen = Embedding(Reshape(hidden, {batch_ * length(), config.width}), places_);
  const Var logits = bert.MaskedTokens(chosen);  // [B·M, V]
  const Var masked = CrossEntropy(logits, targets_);
  Var loss = masked;
  if (next_sentence_) {
    follows_ = tape_.Input("follows", {kI32, {batch_}}, {.below = 2});
    loss = loss + CrossEntropy(bert.NextSentence(bert.Pool(hidden)), follows_);
  }
  program_ = RecordUpdate(loss, optimizer_, CountCorrect(logits, targets_));
  program_.held = masked;
}

// Appends [CLS] window [SEP] or, with a second text in place of the window's second half, [CLS] half [SEP] second
// [SEP].
void BertJob::PutRow(absl::Span<const int32_t> window, absl::Span<const int32_t> second) {
  const auto special = [&](int32_t token, int32_t segment) {
    rows_.push_back(token);
    row_segments_.push_back(segment);
    may_mask_.push_back(false);
  };
  const auto text = [&](absl::Span<const int32_t> tokens, int32_t segment) {
    rows_.insert(rows_.end(), tokens.begin(), tokens.end());
    row_segments_.insert(row_segments_.end(), tokens.size(), segment);
    may_mask_.insert(may_mask_.end(), tokens.size(), true);
  };
  special(classification_, 0);
  text(window.subspan(0, window.size() - second.size()), 0);
  special(separator_, 0);
  if (second.empty()) return;
  text(second, 1);
  special(separator_, 1);
}

TrainingBatch BertJob::Sample(CorpusPart part, int64_t index, RandomStream random) {
  corpus_->Sample(part, batch_, random, 2 * index, &windows_);
  if (next_sentence_) corpus_->Sample(part, batch_, random, 2 * index + 1, &others_);
  rows_.clear();
  row_segments_.clear();
  row_follows_.clear();
  may_mask_.clear();
  const auto window = static_cast<size_t>(corpus_->context()), half = next_sentence_ ? window / 2 : 0;
  RandomStream coin = random;
  coin.stream = kSecondStream;
  for (size_t row = 0; row < static_cast<size_t>(batch_); ++row) {
    const size_t begin = row * window;
    const absl::Span<const int32_t> all = windows_.tokens;
    const bool follows = !next_sentence_ || coin.Below(2, row) == 0;
    const absl::Span<const int32_t> others = follows ? all : absl::Span<const int32_t>(others_.tokens);
    PutRow(all.subspan(begin, window), others.subspan(begin + window - half, half));
    row_follows_.push_back(follows ? 0 : 1);  // as BERT's head has it
  }
  MaskTokens(may_mask_, batch_, masking_, random, absl::MakeSpan(rows_), &masked_positions_);
  TrainingBatch batch = {
      .feeds = {{tokens_, rows_}, {places_, masked_positions_.places}, {targets_, masked_positions_.targets}},
      .tokens = static_cast<int64_t>(rows_.size()),
      .targets = masked_positions_.chosen};
  if (next_sentence_) {
    batch.feeds.push_back({segments_, row_segments_});
    batch.feeds.push_back({follows_, row_follows_});
  }
  return batch;
}

}  // namespace

Command TrainBertCommand(CLI::App* train) {
  return TrainingCommand(train, "bert", "Trains a BERT to guess the masked tokens of a text.",
                         [] { return std::make_unique<BertJob>(); });
}

}  // namespace weft
