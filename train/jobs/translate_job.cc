// TranslateJob trains an encoder-decoder Transformer (models/transformer.h) on pairs of sentences.
// For scheduled sampling, each shape of micro-batch has a second graph that predicts tokens without an update.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/formats/generation.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/inference/generate/translate.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/models/lora.h"
#include "weft/models/transformer.h"
#include "weft/text/data/masking.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/jobs/scheduled_sampling.h"

namespace weft {
namespace {

// Returns the text of the given files. If no files are given, moves the last tenth of the pairs of `text`, at most
// 1000 pairs, to the result.
absl::StatusOr<ParallelText> ReadValidationText(const std::string& source, const std::string& target,
                                                ParallelText* text) {
  if (!source.empty()) return ReadParallelText(source, target);
  ParallelText validation = {{.path = text->source.path}, {.path = text->target.path}};
  const size_t count = std::min<size_t>(text->source.lines.size() / 10, 1000);
  for (const auto& [from, to] :
       {std::pair{&text->source, &validation.source}, std::pair{&text->target, &validation.target}}) {
    for (size_t i = from->lines.size() - count; i < from->lines.size(); ++i) {
      to->lines.push_back(from->lines[i]);
      to->numbers.push_back(from->numbers.empty() ? i + 1 : from->numbers[i]);
    }
    from->lines.resize(from->lines.size() - count);
  }
  return validation;
}

class TranslateJob final : public BucketJob {
 public:
  TranslateJob()
      : BucketJob(
            &tokenizer_, /*batch=*/64, LoraOptions(),
            {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9, .weight_decay = 0.01, .clip = 1.0}),
             .schedule = {.peak = 1e-3, .floor = 1e-5, .warmup = 400},
             .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = -1},
             .epochs = 10}) {
    set_source(&model_);
  }

  Hyperparameters Table() override {
    constexpr double kMaxSize = 1e6;
    const Hyperparameters data = {
        {"source",
         "the sentences to translate, one a line",
         &source_,
         {.may_change = true, .is_path = true, .required = true}},
        {"target",
         "the translations of the sentences, in the same order",
         &target_,
         {.may_change = true, .is_path = true, .required = true}},
        {"validation-source",
         "sentences for validation; without them, the last tenth of the sentences, at most 1000",
         &validation_source_,
         {.may_change = true, .is_path = true}},
        {"validation-target",
         "the translations of the validation sentences",
         &validation_target_,
         {.may_change = true, .is_path = true}},
        {"truncate", "cut sentences that are longer than the context, instead of failing", &truncate_},
        {"bpe-dropout",
         "probability with which a merge of byte-pair encoding is left out (Provilkov et al., 2020); each epoch cuts "
         "the training texts into other tokens",
         &bpe_dropout_,
         {.low = 0, .high = 0.99}},
    };
    const Hyperparameters training = {
        {"batch", "number of pairs in a step", &batch_, {.low = 1, .high = kMaxSize}},
        RDropRow(),
        {"input-noise",
         "fraction of the decoder's input tokens that are replaced by random tokens in training",
         &input_noise_,
         {.low = 0, .high = 1}},
        {"scheduled-sampling",
         "how the fraction of decoder inputs that are replaced by predictions grows in training",
         &sampling_.schedule,
         {.choices = RowNames(kSamplingSchedules)}},
        {"sampling-rate",
         "highest fraction of decoder inputs that scheduled sampling replaces",
         &sampling_.rate,
         {.low = 0, .high = 1, .needs = "scheduled-sampling"}},
        {"sampling-steps",
         "linear: the step that reaches sampling-rate; inverse-sigmoid: k in k / (k + exp(step / k))",
         &sampling_.steps,
         {.low = 1, .needs = "scheduled-sampling=linear|inverse-sigmoid"}},
    };
    return WithSharedRows(InGroup("Data", data), training);
  }

  absl::Status Check(const RunDirectory* resumed) override {
    if (validation_source_.empty() != validation_target_.empty()) {
      return InvalidArgument("validation-source: it needs validation-target, and vice versa");
    }
    return BucketJob::Check(resumed);
  }

  absl::Status Prepare(Parameters* parameters) override {
    parameters_ = parameters;
    WEFT_ASSIGN_OR_RETURN(ParallelText text, ReadParallelText(source_, target_));
    WEFT_ASSIGN_OR_RETURN(const ParallelText validation,
                          ReadValidationText(validation_source_, validation_target_, &text));
    const std::string both =
        absl::StrCat(absl::StrJoin(text.source.lines, "\n"), "\n", absl::StrJoin(text.target.lines, "\n"), "\n");
    WEFT_RETURN_IF_ERROR(PrepareTokenizer(both));
    WEFT_RETURN_IF_ERROR(SetTokens());
    const EncodeLimits limits = {model_.config().context, truncate_};
    WEFT_ASSIGN_OR_RETURN(pairs_, EncodePairs(text, *tokenizer_, limits, format_));
    WEFT_ASSIGN_OR_RETURN(validation_pairs_, EncodePairs(validation, *tokenizer_, limits, format_));

    // Older runs have the fingerprint of sources without the end token.
    const size_t ends = is_published_ ? 0 : format_.after_source.size();
    for (const SentencePair& pair : pairs_) {
      const absl::Span<const int32_t> source(pair.source.data(), pair.source.size() - ends);
      fingerprint_ = Fingerprint<int32_t>(pair.target, Fingerprint<int32_t>(source, fingerprint_));
    }
    std::vector<int64_t> lengths = Lengths(pairs_);
    if (bpe_dropout_ > 0) {
      text_ = std::move(text);
      usual_pairs_ = pairs_;
      WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> dropped, BeginEpoch(0));
      for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = std::max(lengths[i], dropped[i]);
    }
    SetLengths(lengths, Lengths(validation_pairs_), model_.config().context);
    return absl::OkStatus();
  }

  // The run keeps the settings of generation of a published model.
  absl::Status WriteFiles(RunDirectory* run) const override {
    if (is_published_) {
      WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json settings, GenerationConfigOf(tokenizer_.owner()));
      WEFT_RETURN_IF_ERROR(run->WriteKept(kGenerationConfig, settings.dump(2) + "\n"));
    }
    return BucketJob::WriteFiles(run);
  }

  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a Transformer of ", CountParameters(parameters), " on ", Count(pairs_.size(), "pair", "pairs"),
                        " of sentences (", tokenizer_->vocabulary_size(), " tokens, ",
                        Count(static_cast<size_t>(batches_per_epoch()), "batch", "batches"), " an epoch)");
  }

  absl::Status CheckDivisible() const override {
    if (sampling_.schedule == "none") return TrainingJob::CheckDivisible();
    return InvalidArgument(
        "shard: weights does not work with scheduled sampling, which predicts with whole weights; use ", "optimizer");
  }

  // Returns the first three validation sentences, each with its reference and the model's greedy translation of at most
  // 60 tokens. Returns "" if adapters are trained, or if ranks divide the weights.
  absl::StatusOr<std::string> Sample(Parameters* parameters) const override {
    constexpr size_t kSentences = 3;
    constexpr int64_t kMaxTokens = 60;  // an untrained model may never end a translation
    const size_t count = std::min(kSentences, validation_pairs_.size());
    if (count == 0 || lora_.rank > 0 || parameters->divided()) return "";
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = 0; i < count; ++i) sources.push_back(validation_pairs_[i].source);
    WEFT_ASSIGN_OR_RETURN(const auto translator,
                          Translator::Create(model_.config(), parameters, {.threads = training_.trainer.threads}));
    WEFT_ASSIGN_OR_RETURN(const auto translations,
                          translator->Translate(sources, {.max_length = std::min(kMaxTokens, model_.config().context),
                                                          .begin = tokens_.begin,
                                                          .end = {tokens_.end},
                                                          .forced_begin = forced_begin_}));
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      const SentencePair& pair = validation_pairs_[i];
      for (const auto& [name, ids] : {std::pair{"source", &pair.source}, std::pair{"reference", &pair.target},
                                      std::pair{"translation", &translations[i][0].tokens}}) {
        WEFT_ASSIGN_OR_RETURN(const std::string line, tokenizer_->Decode(*ids));
        absl::StrAppend(&text, name, ": ", line, "\n");
      }
      if (i + 1 < count) text += "\n";
    }
    return text;
  }

 protected:
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override {
    const Var logits = RecordLogits(shape, tape, inputs, /*trains=*/true);
    const Var target = tape->Input("target", {kI32, {shape.rows, shape.length}},
                                   {.below = model_.config().target_vocabulary, .ignored = kIgnoredTarget});
    inputs->push_back(target);
    return LossOf(logits, target, {.label_smoothing = model_.config().label_smoothing});
  }

  absl::StatusOr<BucketJob::Rows> Fill(const Examples& examples) override {
    const auto [rows, length] = examples.shape;
    const bool trains = examples.split == DataSplit::kTrain;
    rows_.Fill(trains ? pairs_ : validation_pairs_, examples.indices, rows, length, tokens_);
    if (trains && rows_.targets > 0) {
      // Each micro-batch draws numbers of its own.
      const auto [index, count] = examples.micro_batch;
      const RandomStream random = Random(examples.number * count + index);
      WEFT_RETURN_IF_ERROR(SampleInputs(random, examples.number, examples.shape));
      AddNoise(absl::MakeSpan(rows_.input), input_noise_, model_.config().target_vocabulary, random, rows_.is_text);
    }
    return Rows{.inputs = {rows_.source, rows_.source_lengths, rows_.input, rows_.target},
                .tokens = rows_.sources + rows_.targets,
                .targets = rows_.targets};
  }

  // A pair that BPE dropout makes too long for all buckets, or for the context, keeps its usual tokens.
  absl::StatusOr<std::vector<int64_t>> BeginEpoch(int64_t epoch) override {
    if (bpe_dropout_ == 0) return std::vector<int64_t>();
    RandomStream random = Random(epoch);
    random.seed ^= StableHash("bpe-dropout");
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_->WithDropout(bpe_dropout_, random);
    if (tokenizer == nullptr) {
      return InvalidArgument("bpe-dropout: this kind of tokenizer cannot leave out merges; wanted byte-pair encoding");
    }
    WEFT_ASSIGN_OR_RETURN(pairs_, EncodePairs(text_, *tokenizer, {kMaxPositions, truncate_}, format_));
    const int64_t longest = longest_bucket() > 0 ? longest_bucket() : model_.config().context;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].length() > longest) pairs_[i] = usual_pairs_[i];
    }
    return Lengths(pairs_);
  }

 private:
  // Sets the special tokens. Those of a published model are the ones with which it generates, around texts as its
  // tokenizer wraps them. Otherwise the tokenizer has them, and the end token follows sources.
  absl::Status SetTokens() {
    const SpecialTokens& special = tokenizer_->special_tokens();
    GenerationSettings settings;
    if (!tokenizer_.owner().empty()) {
      WEFT_ASSIGN_OR_RETURN(settings,
                            ReadGenerationSettings(tokenizer_.owner(), *tokenizer_, model_.config().target_vocabulary));
    }
    const std::optional<int32_t> begin = settings.decoder_start ? settings.decoder_start : settings.begin;
    is_published_ = begin.has_value();
    const bool ends = is_published_ && !settings.end.empty();
    WEFT_ASSIGN_OR_RETURN(tokens_.begin, NeededToken(is_published_ ? begin : special.begin, "begin"));
    WEFT_ASSIGN_OR_RETURN(tokens_.end, NeededToken(ends ? settings.end.front() : special.end, "end"));
    tokens_.padding = is_published_ && settings.padding ? *settings.padding : special.padding.value_or(tokens_.end);
    format_ = {.after_source = {tokens_.end}};
    if (!is_published_) return absl::OkStatus();
    std::tie(format_.before_source, format_.after_source) = TokensAround(*tokenizer_);
    // A model of many languages begins a target with the language, and a BART with the token that begins sources, too.
    forced_begin_ = settings.forced_begin;
    format_.before_target = forced_begin_ ? std::vector<int32_t>{*forced_begin_} : format_.before_source;
    return absl::OkStatus();
  }

  // Predicts the tokens of a micro-batch [B, L], for scheduled sampling.
  struct Sampler {
    Tape tape;
    VarList inputs;  // as RecordLogits has them
    Var predicted;   // i32 [B, L]
    std::unique_ptr<Runner> runner;
  };

  // Records the model on a batch [B, L] with the inputs source, source_lengths and input. Returns logits [B, L, V].
  // If `trains`, the inputs pass through Twice, and with r-drop the logits are [2B, L, V].
  Var RecordLogits(Shape shape, Tape* tape, VarList* inputs, bool trains) const {
    const auto [rows, length] = shape;
    const TensorType sentences = {kI32, {rows, length}};
    const InputBounds tokens = {.below = model_.config().target_vocabulary};
    const Var source = tape->Input("source", sentences, tokens);
    const Var lengths = tape->Input("source_lengths", {kI32, {rows}}, {.below = length + 1});
    const Var input = tape->Input("input", sentences, tokens);
    *inputs = {source, lengths, input};
    const LoraScope lora(tape, lora_);
    const auto maybe_twice = [&](Var x) { return trains ? Twice(x) : x; };
    return Transformer(model_.config()).Logits(maybe_twice(source), maybe_twice(input), maybe_twice(lengths));
  }

  absl::StatusOr<Sampler*> SamplerFor(Shape shape) {
    Sampler& sampler = samplers_[{shape.rows, shape.length}];
    if (sampler.runner != nullptr) return &sampler;
    sampler.predicted = ArgMax(RecordLogits(shape, &sampler.tape, &sampler.inputs, /*trains=*/false));
    WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(sampler.tape, {.fetch = {sampler.predicted}, .mode = kEval}));
    sampler.runner = std::make_unique<Runner>(std::move(graph), parameters_,
                                              RunnerOptions{.threads = static_cast<int>(training_.trainer.threads)});
    return &sampler;
  }

  // Replaces some of the decoder's inputs in `rows_` by tokens that the model predicts (Mihaylova and Martins, 2019).
  absl::Status SampleInputs(RandomStream random, int64_t step, Shape shape) {
    const double fraction = sampling_.At(step);
    if (fraction <= 0) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(Sampler* const sampler, SamplerFor(shape));
    const VarList& inputs = sampler->inputs;
    WEFT_ASSIGN_OR_RETURN(
        const Outputs outputs,
        sampler->runner->Run({{inputs[0], rows_.source}, {inputs[1], rows_.source_lengths}, {inputs[2], rows_.input}}));
    rows_.Replace(outputs[sampler->predicted].span<const int32_t>(), fraction, random);
    return absl::OkStatus();
  }

  // Options.
  std::string source_, target_, validation_source_, validation_target_;
  TrainingTokenizer tokenizer_{{"<pad>", "<s>", "</s>"}, nullptr, {kBpe, kCharacters}};
  SourceOf<PublishedTransformer> model_{{.context = 128,
                                         .encoder_layers = 3,
                                         .decoder_layers = 3,
                                         .heads = 8,
                                         .width = 256,
                                         .feed_forward = 1024,
                                         .pre_norm = true,
                                         .shared_embeddings = true}};
  bool truncate_ = false;
  double input_noise_ = 0, bpe_dropout_ = 0;
  ScheduledSampling sampling_;

  Parameters* parameters_ = nullptr;
  PairTokens tokens_;
  PairFormat format_;
  std::optional<int32_t> forced_begin_;  // BeamSearchOptions::forced_begin
  bool is_published_ = false;            // whether the special tokens are those of a published model's files
  std::vector<SentencePair> pairs_, validation_pairs_;
  // With bpe-dropout: the texts for training and their usual tokens.
  ParallelText text_;
  std::vector<SentencePair> usual_pairs_;
  std::map<std::pair<int64_t, int64_t>, Sampler> samplers_;  // by shape of micro-batch
  PairRows rows_;
};

}  // namespace

std::unique_ptr<TrainingJob> MakeTranslateJob() { return std::make_unique<TranslateJob>(); }

}  // namespace weft
