#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/apps/training/training_command.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/graph/compile.h"
#include "weft/models/transformer.h"
#include "weft/text/buckets.h"
#include "weft/text/noise.h"
#include "weft/text/sentence_pairs.h"
#include "weft/train/optimizer.h"
#include "weft/train/options.h"
#include "weft/train/scheduled_sampling.h"
#include "weft/train/training_tokenizer.h"

namespace weft {
namespace {

using Decay = ScheduledSampling::Decay;

// What is fed for a batch [B, L], but the targets.
struct Inputs {
  Var source, source_lengths, input;  // i32 [B, L], [B], [B, L]
};

// What is recorded for the batches of one bucket.
struct BucketProgram {
  Tape tape;
  Inputs inputs;
  Var target;  // i32 [B, L]
  // For scheduled sampling: what the model would say, i32 [B, L].
  Tape sampling_tape;
  Inputs sampling_inputs;
  Var said;
  std::unique_ptr<Runner> sampler;
};

class TranslateJob final : public TrainingJob {
 public:
  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  TrainerOptions trainer() const override {
    return train_ == nullptr ? trainer_ : InSteps(trainer_, epochs_, train_->size());
  }
  nlohmann::ordered_json Model() const override { return ToJson(model_).value_or(nlohmann::ordered_json()); }
  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a Transformer of ", parameters.ElementCount(), " parameters on ", pairs_.size(),
                        " pairs of sentences (", tokenizer_->vocabulary_size(), " tokens, ", train_->size(),
                        " batches an epoch)");
  }
  absl::Status WriteFiles(const RunDirectory& run) const override { return tokenizer_.Write(run); }

  absl::Span<const TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override;
  int64_t validation_batches() const override { return validate_->size(); }
  TrainingBatch Validate(int64_t /*step*/, int64_t index) override { return Fill(held_, (*validate_)[index]); }

 private:
  Inputs Declare(Tape* tape, int64_t length) const;
  void Record(int64_t length);
  TrainingBatch Fill(absl::Span<const SentencePair> pairs, const BucketBatch& batch);
  absl::Status Sample(BucketProgram* program, int64_t step);

  // Options.
  std::string source_, target_, validation_source_, validation_target_;
  TrainingTokenizer tokenizer_{8000, {"<pad>", "<s>", "</s>"}};
  TransformerConfig model_ = {.context = 128,
                              .encoder_layers = 3,
                              .decoder_layers = 3,
                              .heads = 8,
                              .width = 256,
                              .feed_forward = 1024,
                              .pre_norm = true,
                              .shared_embeddings = true};
  std::string positions_ = "sinusoidal", memory_ = "last", sampling_decay_ = "none";
  bool truncate_ = false;
  int64_t batch_ = 64, epochs_ = 10;
  double input_noise_ = 0;
  ScheduledSampling sampling_;
  AdamWConfig optimizer_ = {.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9, .weight_decay = 0.01, .clip = 1.0};
  TrainerOptions trainer_ = {.steps = 0,
                             .learning_rate = 1e-3,
                             .minimum_learning_rate = 1e-5,
                             .warmup_steps = 400,
                             .eval_every = -1,
                             .checkpoint_every = -1};

  std::string fingerprint_;
  Parameters* parameters_ = nullptr;
  PairTokens tokens_;
  std::vector<SentencePair> pairs_, held_;  // for training and for validation
  std::vector<int64_t> lengths_;            // of the buckets
  std::unique_ptr<BucketBatches> train_, validate_;
  std::vector<std::unique_ptr<BucketProgram>> recorded_;
  std::vector<TrainingProgram> programs_;
  PairRows rows_;
};

Hyperparameters TranslateJob::Table() {
  constexpr double kMost = 1e6;
  Hyperparameters table = {
      {"source", "the sentences to translate, one a line", &source_, {.may_change = true, .is_path = true}},
      {"target", "their translations, line by line", &target_, {.may_change = true, .is_path = true}},
      {"validation-source",
       "sentences for validation; without them, the last tenth of the others, at most 1000",
       &validation_source_,
       {.may_change = true, .is_path = true}},
      {"validation-target", "their translations", &validation_target_, {.may_change = true, .is_path = true}},
      {"context", "the most tokens of a sentence, with its end", &model_.context, {.low = 2, .high = kMost}},
      {"truncate", "cut sentences that are longer, which else is an error", &truncate_},
      {"encoder-layers", "blocks of the encoder", &model_.encoder_layers, {.low = 1, .high = 1e4}},
      {"decoder-layers", "blocks of the decoder", &model_.decoder_layers, {.low = 1, .high = 1e4}},
      {"heads", "attention heads of a block", &model_.heads, {.low = 1, .high = 1e4}},
      {"width", "of the model, a multiple of heads", &model_.width, {.low = 1, .high = kMost}},
      {"feed-forward", "width of the feed-forward layers", &model_.feed_forward, {.low = 1, .high = 1e7}},
      {"dropout", "probability", &model_.dropout, {.low = 0, .high = 0.99}},
      {"attention-dropout", "of attention weights", &model_.attention_dropout, {.low = 0, .high = 0.99}},
      {"label-smoothing", "the part of a target that all tokens share", &model_.label_smoothing, {.low = 0, .high = 1}},
      {"pre-norm", "normalise before a block's layers, not after, as published", &model_.pre_norm},
      {"positions", "how positions are told", &positions_, {.choices = {"sinusoidal", "learned"}}},
      {"memory",
       "what a decoder block attends to: the encoder's last block, or that of its own number",
       &memory_,
       {.choices = {"last", "same-layer"}}},
      {"shared-embeddings", "one table of tokens for both sides and the output", &model_.shared_embeddings},
      {"batch", "pairs in a batch", &batch_, {.low = 1, .high = kMost}},
      {"input-noise",
       "the part of the decoder's input tokens that are drawn at random in training",
       &input_noise_,
       {.low = 0, .high = 1}},
      {"scheduled-sampling",
       "how the part of the decoder's inputs that are its own guesses grows in training",
       &sampling_decay_,
       {.choices = {"none", "constant", "linear", "inverse-sigmoid"}}},
      {"sampling-rate", "the greatest part of them", &sampling_.rate, {.low = 0, .high = 1}},
      {"sampling-steps",
       "linear: until it is reached; inverse-sigmoid: k of k / (k + exp(step / k))",
       &sampling_.steps,
       {.low = 1}},
  };
  const auto append = [&](const Hyperparameters& rows) { table.insert(table.end(), rows.begin(), rows.end()); };
  append(tokenizer_.Table());
  append(TrainerHyperparameters(&trainer_, &epochs_));
  append(AdamWHyperparameters(&optimizer_));
  return table;
}

absl::Status TranslateJob::Check(const RunDirectory* resumed) {
  if (resumed != nullptr) tokenizer_.set_run(resumed->path());
  for (const auto& [flag, path] : {std::pair{"source", &source_}, std::pair{"target", &target_}}) {
    if (path->empty()) return absl::InvalidArgumentError(absl::StrCat("--", flag, "=FILE is missing"));
  }
  if (validation_source_.empty() != validation_target_.empty()) {
    return absl::InvalidArgumentError("--validation-source and --validation-target belong together");
  }
  model_.positions =
      positions_ == "learned" ? TransformerConfig::Positions::kLearned : TransformerConfig::Positions::kSinusoidal;
  model_.memory = memory_ == "last" ? TransformerConfig::Memory::kLast : TransformerConfig::Memory::kSameLayer;
  sampling_.decay = sampling_decay_ == "none"       ? Decay::kNone
                    : sampling_decay_ == "constant" ? Decay::kConstant
                    : sampling_decay_ == "linear"   ? Decay::kLinear
                                                    : Decay::kInverseSigmoid;
  return weft::Validate(model_);
}

// The validation text: the files for it, or the last pairs of `text`, which are taken from it.
absl::StatusOr<ParallelText> HoldOut(const std::string& source, const std::string& target, ParallelText* text) {
  if (!source.empty()) return ReadParallelText(source, target);
  ParallelText held = {{.path = text->source.path}, {.path = text->target.path}};
  const size_t count = std::min<size_t>(text->source.lines.size() / 10, 1000);
  for (const auto& [from, to] : {std::pair{&text->source, &held.source}, std::pair{&text->target, &held.target}}) {
    for (size_t i = from->lines.size() - count; i < from->lines.size(); ++i) to->Take(*from, i);
    from->lines.resize(from->lines.size() - count);
  }
  return held;
}

absl::Status TranslateJob::Prepare(Parameters* parameters) {
  parameters_ = parameters;
  WEFT_ASSIGN_OR_RETURN(ParallelText text, ReadParallelText(source_, target_));
  WEFT_ASSIGN_OR_RETURN(const ParallelText held, HoldOut(validation_source_, validation_target_, &text));
  const std::string both =
      absl::StrCat(absl::StrJoin(text.source.lines, "\n"), "\n", absl::StrJoin(text.target.lines, "\n"), "\n");
  WEFT_RETURN_IF_ERROR(tokenizer_.Prepare(both));
  const SpecialTokens& special = tokenizer_->special_tokens();
  WEFT_ASSIGN_OR_RETURN(tokens_.begin, NeededToken(special.begin, "begin"));
  WEFT_ASSIGN_OR_RETURN(tokens_.end, NeededToken(special.end, "end"));
  tokens_.padding = special.padding.value_or(tokens_.end);
  const EncodeLimits limits = {model_.context, truncate_};
  WEFT_ASSIGN_OR_RETURN(pairs_, EncodePairs(text, *tokenizer_, limits));
  WEFT_ASSIGN_OR_RETURN(held_, EncodePairs(held, *tokenizer_, limits));

  model_.source_vocabulary = model_.target_vocabulary = tokenizer_->vocabulary_size();
  for (const SentencePair& pair : pairs_) {
    fingerprint_ = Fingerprint<int32_t>(pair.target, Fingerprint<int32_t>(pair.source, fingerprint_));
  }
  const std::vector<int64_t> lengths = Lengths(pairs_), held_lengths = Lengths(held_);
  lengths_ = BucketLengths(lengths, held_lengths, {.rows = batch_, .longest = model_.context});
  train_ = std::make_unique<BucketBatches>(lengths_, lengths, batch_);
  validate_ = std::make_unique<BucketBatches>(lengths_, held_lengths, batch_);
  for (const int64_t length : lengths_) Record(length);
  return absl::OkStatus();
}

Inputs TranslateJob::Declare(Tape* tape, int64_t length) const {
  const TensorType sentences = {kI32, {batch_, length}};
  const InputBounds tokens = {.below = model_.target_vocabulary};
  return {tape->Input("source", sentences, tokens),
          tape->Input("source_lengths", {kI32, {batch_}}, {.below = length + 1}),
          tape->Input("input", sentences, tokens)};
}

void TranslateJob::Record(int64_t length) {
  auto program = std::make_unique<BucketProgram>();
  const Transformer model(model_);
  const auto record = [&](Tape* tape, Inputs* inputs) {
    *inputs = Declare(tape, length);
    return model.Logits(inputs->source, inputs->input, inputs->source_lengths);  // [B, L, V]
  };
  if (sampling_.decay != Decay::kNone) {
    program->said = ArgMax(record(&program->sampling_tape, &program->sampling_inputs));
  }
  Tape* const tape = &program->tape;
  const Var logits = record(tape, &program->inputs);
  program->target =
      tape->Input("target", {kI32, {batch_, length}}, {.below = model_.target_vocabulary, .ignored = kIgnoredTarget});
  programs_.push_back(RecordUpdate(model.Loss(logits, program->target), optimizer_));
  recorded_.push_back(std::move(program));
}

TrainingBatch TranslateJob::Fill(absl::Span<const SentencePair> pairs, const BucketBatch& batch) {
  rows_.Fill(pairs, batch.examples, batch_, lengths_[batch.bucket], tokens_);
  const BucketProgram& program = *recorded_[batch.bucket];
  const Inputs& inputs = program.inputs;
  return {.program = batch.bucket,
          .feeds = {{inputs.source, rows_.source},
                    {inputs.source_lengths, rows_.source_lengths},
                    {inputs.input, rows_.input},
                    {program.target, rows_.target}},
          .tokens = rows_.sources + rows_.targets,
          .targets = rows_.targets};
}

absl::StatusOr<TrainingBatch> TranslateJob::Train(int64_t step) {
  TrainingBatch batch = Fill(pairs_, train_->AtStep(trainer_.seed, step));
  WEFT_RETURN_IF_ERROR(Sample(recorded_[batch.program].get(), step));
  AddNoise(absl::MakeSpan(rows_.input), input_noise_, model_.target_vocabulary,
           {.seed = trainer_.seed, .step = static_cast<uint32_t>(step)}, rows_.is_text);
  return batch;
}

// Puts what the model would say in place of some of the decoder's inputs (Mihaylova and Martins, 2019).
absl::Status TranslateJob::Sample(BucketProgram* program, int64_t step) {
  const double part = sampling_.At(step);
  if (part <= 0) return absl::OkStatus();
  if (program->sampler == nullptr) {
    WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(program->sampling_tape, {.fetch = {program->said}, .mode = kEval}));
    program->sampler = std::make_unique<Runner>(std::move(graph), parameters_,
                                                RunnerOptions{.threads = static_cast<int>(trainer_.threads)});
  }
  const Inputs& inputs = program->sampling_inputs;
  WEFT_ASSIGN_OR_RETURN(const Outputs outputs, program->sampler->Run({{inputs.source, rows_.source},
                                                                      {inputs.source_lengths, rows_.source_lengths},
                                                                      {inputs.input, rows_.input}}));
  rows_.Replace(outputs[program->said].span<const int32_t>(), part,
                {.seed = trainer_.seed, .step = static_cast<uint32_t>(step)});
  return absl::OkStatus();
}

}  // namespace

Command TrainTranslateCommand(CLI::App* train) {
  return TrainingCommand(train, "translate", "Trains an encoder-decoder Transformer on pairs of sentences.",
                         [] { return std::make_unique<TranslateJob>(); });
}

}  // namespace weft
