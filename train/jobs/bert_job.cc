// BertJob trains a BERT (models/bert.h) to predict the masked tokens of a text, from initial or published weights.
// Each row of a batch is a masked window of the text, or two half windows for next-sentence prediction.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/distributed/index_range.h"
#include "weft/models/bert.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/masking.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/step/task.h"

namespace weft {
namespace {

// Returns the entropy of the tokens' frequencies, in nats per token. A model that knows only the frequencies cannot
// have a lower loss.
double UnigramEntropy(absl::Span<const int32_t> tokens, int64_t vocabulary) {
  std::vector<double> counts(static_cast<size_t>(vocabulary));
  for (const int32_t token : tokens) ++counts[static_cast<size_t>(token)];
  double entropy = 0;
  for (const double count : counts) {
    const double frequency = count / static_cast<double>(tokens.size());
    if (count > 0) entropy -= frequency * std::log(frequency);
  }
  return entropy;
}

class BertJob final : public TrainingJob {
 public:
  BertJob()
      : TrainingJob(
            &tokenizer_, /*batch=*/32, {.also_train = "cls.*,pooler.dense,head.*"},
            {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.01, .clip = 1.0}),
             .schedule = {.peak = 1e-3, .floor = 1e-5, .warmup = 200}}) {
    set_source(&model_);
  }

  Hyperparameters Table() override {
    const Hyperparameters rows = {
        {"data",
         "a UTF-8 text; without it, the King James Bible",
         &data_path_,
         {.may_change = true, .is_path = true, .group = "Data"}},
        {"validation",
         "a UTF-8 text for validation; without it, the last tenth of the data",
         &validation_path_,
         {.may_change = true, .is_path = true, .group = "Data"}},
        {"masked", "fraction of the tokens that are masked and must be predicted", &masked_, {.low = 0.001, .high = 1}},
        {"next-sentence", "also learn to tell whether the second half of an input follows the first", &next_sentence_},
        {"batch", "number of windows of text in a step; each has --context tokens", &batch_, {.low = 1, .high = 1e6}},
        {"eval-batches",
         "number of batches in an evaluation",
         &eval_batches_,
         {.low = 0, .may_change = true, .group = "Evaluation and checkpoints"}},
    };
    return WithSharedRows(InGroup("Training", rows));
  }

  absl::Status Prepare(Parameters* /*parameters*/) override {
    WEFT_ASSIGN_OR_RETURN(const std::string text, data_path_.empty() ? ReadKingJamesBible() : ReadText(data_path_));
    WEFT_RETURN_IF_ERROR(PrepareTokenizer(text));
    const SpecialTokens& special = tokenizer_->special_tokens();
    WEFT_ASSIGN_OR_RETURN(classification_, NeededToken(special.classification, "classification"));
    WEFT_ASSIGN_OR_RETURN(separator_, NeededToken(special.separator, "separator"));
    WEFT_ASSIGN_OR_RETURN(masking_.mask, NeededToken(special.mask, "mask"));
    const int64_t window = length() - (next_sentence_ ? 3 : 2);  // room for text beside [CLS] and the [SEP]s
    if (window < 2) return InvalidArgument("a context of ", length(), " has room for no text");
    masking_.vocabulary = model_.config().vocabulary;
    masking_.count = std::max<int64_t>(1, std::llround(masked_ * static_cast<double>(window)));

    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeText(data_path_, text, *tokenizer_));
    if (validation_path_.empty()) {
      WEFT_ASSIGN_OR_RETURN(corpus_, TokenCorpus::Create(std::move(tokens), window));
    } else {
      WEFT_ASSIGN_OR_RETURN(const std::string validation, ReadText(validation_path_));
      WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> validation_tokens,
                            EncodeText(validation_path_, validation, *tokenizer_));
      WEFT_ASSIGN_OR_RETURN(corpus_, TokenCorpus::Create(std::move(tokens), validation_tokens, window));
    }
    fingerprint_ = Fingerprint<int32_t>(corpus_->tokens(DataSplit::kTrain));
    for (const int64_t rows : MicroBatchSizes(batch_, micro_batches())) Record(rows);
    return absl::OkStatus();
  }

  std::string Title(const Parameters& parameters) const override {
    return absl::StrFormat("a BERT of %s on %d tokens (%d different; the validation text's unigram entropy is %.4f)",
                           CountParameters(parameters), corpus_->tokens(DataSplit::kTrain).size(),
                           tokenizer_->vocabulary_size(),
                           UnigramEntropy(corpus_->tokens(DataSplit::kValidation), model_.config().vocabulary));
  }

  absl::Status Initialize(Parameters* parameters) override {
    return model_.Initialize({"cls.", "pooler.", "head."}, {}, parameters);
  }

  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override {
    return Sample(DataSplit::kTrain, 0, Random(step), micro_batch);
  }

  int64_t validation_batches() const override { return eval_batches_ * micro_batches(); }

  // The random numbers do not depend on the step, so that every evaluation has the same batches.
  absl::StatusOr<TrainingBatch> Validate(int64_t /*step*/, int64_t index) override {
    const int64_t count = micro_batches(), batch = index / count;
    return Sample(DataSplit::kValidation, batch, Random(batch), {index % count, count});
  }

 private:
  // The program for a size of micro-batch.
  struct Recorded {
    Tape tape;
    Var tokens, segments;           // i32 [B, T]
    Var masked_positions, targets;  // i32 [B·M] for M masked tokens a row: their indices in B·T; their tokens
    Var is_next;                    // i32 [B]: 0 if the second half of a row follows the first, else 1
  };

  void Record(int64_t rows) {
    Recorded& in = recorded_.emplace_back();
    Tape& tape = in.tape;
    const int64_t masked_count = rows * masking_.count;
    const BertConfig& config = model_.config();
    in.tokens = tape.Input("tokens", {kI32, {rows, length()}}, {.below = config.vocabulary});
    in.masked_positions = tape.Input("masked_positions", {kI32, {masked_count}}, {.below = rows * length()});
    in.targets = tape.Input("targets", {kI32, {masked_count}}, {.below = config.vocabulary, .ignored = kIgnoredTarget});
    BertInputs inputs;
    if (next_sentence_) inputs.segments = in.segments = tape.Input("segments", {kI32, {rows, length()}}, {.below = 2});
    const LoraScope lora(&tape, lora_);
    const Bert bert(config);
    const Var hidden = bert.Encode(in.tokens, inputs);  // [B, T, C]
    // Only masked tokens go through the head.
    const Var chosen = Embedding(Reshape(hidden, {rows * length(), config.width}), in.masked_positions);  // [B·M, C]
    const Var logits = bert.MaskedTokens(chosen);                                                         // [B·M, V]
    const Var masked_loss = CrossEntropy(logits, in.targets);
    Var loss = masked_loss;
    if (next_sentence_) {
      in.is_next = tape.Input("follows", {kI32, {rows}}, {.below = 2});
      loss = loss + CrossEntropy(bert.NextSentence(bert.Pool(hidden)), in.is_next);
    }
    programs_.push_back(
        {.tape = &tape, .loss = loss, .correct = CountCorrect(logits, in.targets), .validation_loss = masked_loss});
  }

  // Returns a micro-batch of batch `index` of `split`. Every row has random numbers of its own. So the rows are those
  // of the whole batch.
  TrainingBatch Sample(DataSplit split, int64_t index, RandomStream random, MicroBatch micro_batch) {
    const IndexRange range = RowsOf(micro_batch, batch_);
    WindowOptions options = {.split = split,
                             .rows = batch_,
                             .context = corpus_->context(),
                             .random = random,
                             .batch = 2 * index,
                             .begin = range.begin,
                             .end = range.end};
    corpus_->Sample(options, &windows_);
    options.batch = 2 * index + 1;
    if (next_sentence_) corpus_->Sample(options, &others_);
    rows_.clear();
    row_segments_.clear();
    row_is_next_.clear();
    may_mask_.clear();
    const auto window = static_cast<size_t>(corpus_->context()), half = next_sentence_ ? window / 2 : 0;
    RandomStream coin = random;
    coin.stream = kSecondStream;
    for (int64_t row = range.begin; row < range.end; ++row) {
      const size_t begin = static_cast<size_t>(row - range.begin) * window;
      const absl::Span<const int32_t> all = windows_.tokens;
      const bool follows = !next_sentence_ || coin.Below(2, static_cast<uint64_t>(row)) == 0;
      const absl::Span<const int32_t> others = follows ? all : absl::Span<const int32_t>(others_.tokens);
      AppendRow(all.subspan(begin, window), others.subspan(begin + window - half, half));
      row_is_next_.push_back(follows ? 0 : 1);  // the classes of BERT: 0 is "follows"
    }
    MaskTokens(may_mask_, range.size(), masking_, random, absl::MakeSpan(rows_), &row_masks_, range.begin);
    const size_t size = SizeIndex(micro_batch, batch_);
    const Recorded& in = recorded_[size];
    TrainingBatch batch = {
        .program = size,
        .feeds = {{in.tokens, rows_}, {in.masked_positions, row_masks_.indices}, {in.targets, row_masks_.targets}},
        .tokens = range.size() * length(),
        .targets = row_masks_.chosen};
    if (next_sentence_) {
      batch.feeds.push_back({in.segments, row_segments_});
      batch.feeds.push_back({in.is_next, row_is_next_});
    }
    return batch;
  }

  // Appends a row: [CLS] window [SEP] if `second` is empty. Otherwise `second` replaces the end of the window: [CLS]
  // first half [SEP] second [SEP].
  void AppendRow(absl::Span<const int32_t> window, absl::Span<const int32_t> second) {
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

  int64_t length() const { return model_.config().context; }

  // Options.
  std::string data_path_, validation_path_;
  SourceOf<PublishedBert> model_{
      {.context = 128, .layers = 4, .heads = 4, .width = 256, .feed_forward = 1024, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer();
  bool next_sentence_ = false;
  double masked_ = 0.15;  // fraction of the tokens to mask
  int64_t eval_batches_ = 20;

  std::optional<TokenCorpus> corpus_;
  int32_t classification_ = 0, separator_ = 0;
  MaskingOptions masking_;
  std::deque<Recorded> recorded_;  // for each size of micro-batch
  // The values of a micro-batch.
  TokenBatch windows_, others_;
  std::vector<int32_t> rows_, row_segments_, row_is_next_;
  std::vector<bool> may_mask_;
  MaskedPositions row_masks_;
};

}  // namespace

std::unique_ptr<TrainingJob> MakeBertJob() { return std::make_unique<BertJob>(); }

}  // namespace weft
