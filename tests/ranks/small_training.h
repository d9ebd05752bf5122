// Trains a small model of each family on one batch, for tests of training steps.
//
//   Training training(kFamilies[0], kF32, {.micro_batches = 4});
//   ASSERT_TRUE(training.Create(AdamW({})).ok());
//   ASSERT_TRUE(training.Run(/*step=*/0, /*rate=*/0.1).ok());
#ifndef WEFT_TESTS_RANKS_SMALL_TRAINING_H_
#define WEFT_TESTS_RANKS_SMALL_TRAINING_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/transformer.h"
#include "weft/train/step/training_step.h"

namespace weft {

inline constexpr int64_t kRows = 8, kLength = 6, kVocabulary = 13;

// A model with its batch: kRows rows of tokens and of targets, some of them ignored.
struct Family {
  const char* name;
  Var (*loss)(Var tokens, Var targets, DType dtype);
};

inline Var GptLoss(Var tokens, Var targets, DType dtype) {
  const GptConfig config = {
      .vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 2, .width = 8, .dtype = dtype};
  return CrossEntropy(Gpt(config).Logits(tokens), targets);
}

inline Var BertLoss(Var tokens, Var targets, DType dtype) {
  const BertConfig config = {
      .vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 2, .width = 8, .dropout = 0, .dtype = dtype};
  const Bert bert(config);
  return CrossEntropy(bert.MaskedTokens(bert.Encode(tokens, {})), targets);
}

inline Var TransformerLoss(Var tokens, Var targets, DType dtype) {
  const TransformerConfig config = {.source_vocabulary = kVocabulary,
                                    .target_vocabulary = kVocabulary,
                                    .context = kLength,
                                    .encoder_layers = 1,
                                    .decoder_layers = 1,
                                    .heads = 2,
                                    .width = 8,
                                    .feed_forward = 16,
                                    .dropout = 0,
                                    .dtype = dtype};
  const Transformer model(config);
  return model.Loss(model.Logits(tokens, tokens), targets);
}

// A GPT with BatchNorm. Its statistics are those of a whole batch, so its step has one micro-batch.
inline Var BatchNormLoss(Var tokens, Var targets, DType dtype) {
  const GptConfig config = {.vocabulary = kVocabulary,
                            .context = kLength,
                            .layers = 2,
                            .heads = 2,
                            .width = 8,
                            .norm = {.kind = NormKind::kBatchNorm},
                            .dtype = dtype};
  return CrossEntropy(Gpt(config).Logits(tokens), targets);
}
inline constexpr Family kBatchNormFamily = {"batch norm", BatchNormLoss};

inline constexpr Family kFamilies[] = {{"gpt", GptLoss}, {"bert", BertLoss}, {"transformer", TransformerLoss}};

// Trains a model of a family on the first `rows` rows of one batch.
class Training {
 public:
  Training(const Family& family, DType dtype, const StepOptions& options, int64_t rows = kRows)
      : options_(options), rows_(rows) {
    const RandomStream random = {.seed = 5};
    for (int64_t i = 0; i < kRows * kLength; ++i) {
      tokens_.push_back(static_cast<int32_t>(random.Below(kVocabulary, 2 * i)));
      const auto target = static_cast<int32_t>(random.Below(kVocabulary, 2 * i + 1));
      targets_.push_back(target % 5 == 0 ? kIgnoredTarget : target);  // so rows differ in their number of targets
    }
    for (const int64_t size : MicroBatchSizes(kRows, options.micro_batches)) {
      Recorded& recorded = recorded_.emplace_back();
      const TensorType type = {kI32, {size, kLength}};
      recorded.tokens = recorded.tape.Input("tokens", type, {.below = kVocabulary});
      recorded.targets = recorded.tape.Input("targets", type, {.below = kVocabulary, .ignored = kIgnoredTarget});
      programs_.push_back({.tape = &recorded.tape, .loss = family.loss(recorded.tokens, recorded.targets, dtype)});
    }
  }

  absl::Status Create(const Optimizer& optimizer) {
    WEFT_ASSIGN_OR_RETURN(step_, TrainingStep::Plan(programs_, optimizer, options_));
    return step_->Allocate(&parameters_);
  }
  absl::StatusOr<StepResult> Run(int64_t step, double rate, double limit = std::numeric_limits<double>::infinity()) {
    return step_->Run(
        step, rate, [this](MicroBatch m) { return Batch(m); }, limit);
  }

  // The values of all weights, in the order of their names. Waits for the other ranks if weights are divided.
  std::vector<double> Weights() const {
    std::map<std::string, Tensor> tensors;
    for (const std::string& name : parameters_.Names(Parameters::kWeights)) {
      if (!ParsePiece(name)) tensors[name] = *parameters_.Find(name);
    }
    std::deque<std::vector<std::byte>> gathered;
    for (const DividedWeight& weight : step_->divided()) {
      std::vector<std::byte>& whole = gathered.emplace_back(weight.type.bytes());
      GatherRows(options_.ranks, weight, parameters_, GatherTo::kAll, whole.data());
      tensors[weight.name] = {weight.type, whole.data()};
    }
    std::vector<double> values;
    for (const auto& [name, tensor] : tensors) {
      for (int64_t i = 0; i < tensor.type.shape.elements(); ++i) {
        values.push_back(tensor.type.dtype == kF64 ? tensor.as<double>()[i] : tensor.as<float>()[i]);
      }
    }
    return values;
  }
  // Replaces the first token of row `row` by a token outside the vocabulary, or by token 0 if `unknown` is false.
  void set_unknown_token(int64_t row, bool unknown) {
    tokens_[static_cast<size_t>(row * kLength)] = unknown ? static_cast<int32_t>(kVocabulary) : 0;
  }
  const Parameters& parameters() const { return parameters_; }
  const TrainingStep& step() const { return *step_; }

 private:
  struct Recorded {
    Tape tape;
    Var tokens, targets;
  };

  absl::StatusOr<TrainingBatch> Batch(MicroBatch m) {
    const size_t program = SizeIndex(m, kRows);
    const IndexRange rows = RowsOf(m, rows_), padded = RowsOf(m, kRows);
    const auto begin = static_cast<size_t>(rows.begin * kLength), size = static_cast<size_t>(rows.size() * kLength);
    fed_tokens_.assign(static_cast<size_t>(padded.size() * kLength), 0);
    fed_targets_.assign(fed_tokens_.size(), kIgnoredTarget);
    std::copy_n(tokens_.begin() + begin, size, fed_tokens_.begin());
    std::copy_n(targets_.begin() + begin, size, fed_targets_.begin());
    const auto ignored = std::count(fed_targets_.begin(), fed_targets_.end(), kIgnoredTarget);
    return TrainingBatch{
        .program = program,
        .feeds = {{recorded_[program].tokens, fed_tokens_}, {recorded_[program].targets, fed_targets_}},
        .tokens = static_cast<int64_t>(size),
        .targets = static_cast<int64_t>(fed_targets_.size()) - ignored};
  }

  StepOptions options_;
  int64_t rows_;
  std::vector<int32_t> tokens_, targets_, fed_tokens_, fed_targets_;
  std::deque<Recorded> recorded_;
  std::vector<TrainingProgram> programs_;
  Parameters parameters_{{.seed = 3}};
  std::unique_ptr<TrainingStep> step_;
};

}  // namespace weft

#endif  // WEFT_TESTS_RANKS_SMALL_TRAINING_H_
