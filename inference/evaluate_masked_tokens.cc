// Computes loss and accuracy of a BERT that guesses masked tokens.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/core/status.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/evaluation.h"
#include "weft/text/masking.h"

namespace weft {
namespace {

// A graph that guesses masked tokens in `rows` windows of at most `window` tokens at once.
class MaskedWindows {
 public:
  MaskedWindows(const OpenedBert& bert, const MaskedTokensOptions& options, int64_t rows, size_t window)
      : tokenizer_(*bert.tokenizer),
        seed_(options.seed),
        fraction_(options.fraction),
        rows_(static_cast<size_t>(rows)) {
    const BertConfig& config = bert.model.config;
    masking_ = {.mask = *tokenizer_.special_tokens().mask, .vocabulary = config.vocabulary};
    max_masked_ = CountMasked(window);
    length_ = static_cast<int64_t>(window + tokenizer_.Wrap({}).ids.size());
    const int64_t guessed = rows * max_masked_;
    tokens_ = tape_.Input("tokens", {kI32, {rows, length_}}, {.below = config.vocabulary});
    lengths_ = tape_.Input("lengths", {kI32, {rows}}, {.below = length_ + 1});
    places_ = tape_.Input("places", {kI32, {guessed}}, {.below = rows * length_});
    targets_ = tape_.Input("targets", {kI32, {guessed}}, {.below = config.vocabulary, .ignored = kIgnoredTarget});
    const Bert model(config);
    const Var hidden = Reshape(model.Encode(tokens_, {.lengths = lengths_}), {rows * length_, config.width});
    const Var logits = model.MaskedTokens(Embedding(hidden, places_));  // [B·M, V]
    loss_ = CrossEntropy(logits, targets_);
    correct_ = CountCorrect(logits, targets_);
  }

  absl::Status Compile(Parameters* parameters, int64_t threads) {
    WEFT_ASSIGN_OR_RETURN(runner_, EvalRunner(tape_, {.fetch = {loss_, correct_}}, parameters, threads));
    return absl::OkStatus();
  }

  // Masks and evaluates up to `rows` windows. `number`: the index of the first of these among all windows.
  absl::Status Add(size_t number, absl::Span<const absl::Span<const int32_t>> windows) {
    std::vector<int32_t> tokens, lengths, places, targets;
    int64_t chosen = 0;
    MaskedPositions masked;
    for (const absl::Span<const int32_t> window : windows) {
      std::vector<int32_t> ids = tokenizer_.Wrap(window).ids;
      std::vector<bool> maskable(ids.size());
      std::fill_n(maskable.begin() + (absl::c_search(ids, window) - ids.begin()), window.size(), true);
      masking_.count = CountMasked(window.size());
      // The masked tokens depend only on the number of the window, so the size of a batch changes no score.
      MaskTokens(maskable, 1, masking_, {.seed = seed_, .step = static_cast<uint32_t>(number++)}, absl::MakeSpan(ids),
                 &masked);
      for (const int32_t place : masked.indices) places.push_back(place + static_cast<int32_t>(tokens.size()));
      lengths.push_back(static_cast<int32_t>(ids.size()));
      ids.resize(static_cast<size_t>(length_));
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      targets.insert(targets.end(), masked.targets.begin(), masked.targets.end());
      chosen += masked.chosen;
    }
    tokens.resize(rows_ * static_cast<size_t>(length_));
    lengths.resize(rows_);
    places.resize(rows_ * static_cast<size_t>(max_masked_));
    targets.resize(places.size(), kIgnoredTarget);
    WEFT_ASSIGN_OR_RETURN(
        const Outputs out,
        runner_->Run({{tokens_, tokens}, {lengths_, lengths}, {places_, places}, {targets_, targets}}));
    sum_ += static_cast<double>(chosen) * out.Scalar(loss_);
    correct_sum_ += out.Scalar(correct_);
    count_ += chosen;
    return absl::OkStatus();
  }

  ClassScore score() const {
    const auto count = static_cast<double>(count_);
    return {.count = count_, .loss = sum_ / count, .accuracy = correct_sum_ / count};
  }

 private:
  int64_t CountMasked(size_t window) const {
    return std::max<int64_t>(1, std::llround(fraction_ * static_cast<double>(window)));
  }

  const Tokenizer& tokenizer_;
  const uint64_t seed_;
  const double fraction_;
  const size_t rows_;
  int64_t length_ = 0;      // tokens in a window, special tokens included
  int64_t max_masked_ = 0;  // maximum number of masked tokens in a window
  MaskingOptions masking_;
  Tape tape_;
  Var tokens_, lengths_, places_, targets_;  // i32 [B, T], [B], [B·M], [B·M]
  Var loss_, correct_;                       // f32 [], []
  std::unique_ptr<Runner> runner_;
  double sum_ = 0, correct_sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<ClassScore> EvaluateMaskedTokens(const OpenedBert& bert, const EncodedTexts& texts,
                                                const MaskedTokensOptions& options) {
  const auto max_window = static_cast<size_t>(bert.model.config.context) - bert.tokenizer->Wrap({}).ids.size();
  size_t window = 0;
  for (const std::vector<int32_t>& text : texts.texts) window = std::min(std::max(window, text.size()), max_window);
  std::vector<absl::Span<const int32_t>> windows;
  for (const std::vector<int32_t>& text : texts.texts) {
    for (size_t begin = 0; begin < text.size(); begin += window) {
      windows.push_back(absl::MakeConstSpan(text).subspan(begin, window));
    }
  }
  const size_t rows = std::min(static_cast<size_t>(options.batch), windows.size());
  MaskedWindows masked(bert, options, static_cast<int64_t>(rows), window);
  Parameters parameters({.draw = false});
  WEFT_RETURN_IF_ERROR(masked.Compile(&parameters, options.threads));
  WEFT_RETURN_IF_ERROR(
      parameters.Set(bert.path, bert.model.weights.tensors(), Parameters::kWeights, Parameters::kMayHaveMore));
  for (size_t begin = 0; begin < windows.size(); begin += rows) {
    WEFT_RETURN_IF_ERROR(masked.Add(begin, absl::MakeConstSpan(windows).subspan(begin, rows)));
  }
  return masked.score();
}

}  // namespace weft
