// Loss and accuracy of a masked-language model on texts.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/apps/evaluation/evaluate.h"
#include "weft/core/status.h"
#include "weft/inference/eval_runner.h"
#include "weft/text/corpus.h"
#include "weft/text/masking.h"
#include "weft/train/task.h"

namespace weft {
namespace {

absl::StatusOr<std::vector<int32_t>> ReadTokens(const std::string& path, const Tokenizer& tokenizer) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return UsageError(text.status());
  absl::StatusOr<std::vector<int32_t>> ids = EncodeText(path, *text, tokenizer);
  if (!ids.ok() || !ids->empty()) return ids;
  return absl::InvalidArgumentError(absl::StrCat(path, ": there are no tokens in it"));
}

// Windows of up to so many tokens, so many at once, of which some are masked.
class MaskedWindows {
 public:
  MaskedWindows(const OpenedBert& bert, const EvaluateFlags& flags, int64_t rows, size_t window)
      : tokenizer_(*bert.tokenizer), seed_(flags.seed), masked_(flags.masked), rows_(static_cast<size_t>(rows)) {
    const BertConfig& config = bert.model.config;
    masking_ = {.mask = *tokenizer_.special_tokens().mask, .vocabulary = config.vocabulary};
    most_masked_ = CountMasked(window);
    length_ = static_cast<int64_t>(window + tokenizer_.Wrap({}).ids.size());
    const int64_t guessed = rows * most_masked_;
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
    WEFT_ASSIGN_OR_RETURN(runner_,
                          EvalRunner(tape_, {.fetch = {loss_, correct_}}, parameters, static_cast<int>(threads)));
    return absl::OkStatus();
  }

  // Adds up to so many windows, of which the first has this number.
  absl::Status Add(size_t number, absl::Span<const absl::Span<const int32_t>> windows) {
    std::vector<int32_t> tokens, lengths, places, targets;
    int64_t chosen = 0;
    MaskedPositions masked;
    for (const absl::Span<const int32_t> window : windows) {
      std::vector<int32_t> ids = tokenizer_.Wrap(window).ids;
      std::vector<bool> may(ids.size());
      std::fill_n(may.begin() + (absl::c_search(ids, window) - ids.begin()), window.size(), true);
      masking_.count = CountMasked(window.size());
      // By the window's number alone, so that the batch changes nothing.
      MaskTokens(may, 1, masking_, {.seed = seed_, .step = static_cast<uint32_t>(number++)}, absl::MakeSpan(ids),
                 &masked);
      for (const int32_t place : masked.places) places.push_back(place + static_cast<int32_t>(tokens.size()));
      lengths.push_back(static_cast<int32_t>(ids.size()));
      ids.resize(static_cast<size_t>(length_));
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      targets.insert(targets.end(), masked.targets.begin(), masked.targets.end());
      chosen += masked.chosen;
    }
    tokens.resize(rows_ * static_cast<size_t>(length_));
    lengths.resize(rows_);
    places.resize(rows_ * static_cast<size_t>(most_masked_));
    targets.resize(places.size(), kIgnoredTarget);
    WEFT_ASSIGN_OR_RETURN(
        const Outputs out,
        runner_->Run({{tokens_, tokens}, {lengths_, lengths}, {places_, places}, {targets_, targets}}));
    sum_ += static_cast<double>(chosen) * out.Scalar(loss_);
    right_ += out.Scalar(correct_);
    count_ += chosen;
    return absl::OkStatus();
  }

  Figures figures() const {
    const auto count = static_cast<double>(count_);
    return {Count("masked_tokens", count_), Loss(sum_ / count, "masked token"), Accuracy(right_ / count)};
  }

 private:
  int64_t CountMasked(size_t window) const {
    return std::max<int64_t>(1, std::llround(masked_ * static_cast<double>(window)));
  }

  const Tokenizer& tokenizer_;
  const uint64_t seed_;
  const double masked_;  // the part of a window
  const size_t rows_;
  int64_t length_ = 0, most_masked_ = 0;  // of a window with the special tokens; in a window
  MaskingOptions masking_;
  Tape tape_;
  Var tokens_, lengths_, places_, targets_, loss_, correct_;  // i32 [B, T], [B], [B·M] twice; f32 [] twice
  std::unique_ptr<Runner> runner_;
  double sum_ = 0, right_ = 0;
  int64_t count_ = 0;
};

absl::StatusOr<Figures> EvaluateMaskedTokens(const OpenedBert& bert, const EvaluateFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
  std::vector<std::vector<int32_t>> texts;
  const auto most = static_cast<size_t>(bert.model.config.context) - bert.tokenizer->Wrap({}).ids.size();
  size_t window = 0;
  for (const std::string& path : flags.files) {
    WEFT_ASSIGN_OR_RETURN(texts.emplace_back(), ReadTokens(path, *bert.tokenizer));
    window = std::min(std::max(window, texts.back().size()), most);
  }
  std::vector<absl::Span<const int32_t>> windows;
  for (const std::vector<int32_t>& text : texts) {
    for (size_t begin = 0; begin < text.size(); begin += window) {
      windows.push_back(absl::MakeConstSpan(text).subspan(begin, window));
    }
  }
  const size_t rows = std::min(static_cast<size_t>(flags.batch), windows.size());
  MaskedWindows masked(bert, flags, static_cast<int64_t>(rows), window);
  Parameters parameters({.draw = false});
  WEFT_RETURN_IF_ERROR(masked.Compile(&parameters, flags.threads));
  WEFT_RETURN_IF_ERROR(UsageError(
      parameters.Set(flags.model, bert.model.weights.tensors(), Parameters::kWeights, Parameters::kMayHaveMore)));
  for (size_t begin = 0; begin < windows.size(); begin += rows) {
    WEFT_RETURN_IF_ERROR(Failure(masked.Add(begin, absl::MakeConstSpan(windows).subspan(begin, rows))));
  }
  return masked.figures();
}

}  // namespace

absl::StatusOr<Figures> EvaluateBert(const EvaluateFlags& flags) {
  absl::StatusOr<OpenedBert> bert = OpenBert(flags.model);
  if (!bert.ok()) return UsageError(bert.status());
  if (bert->model.labels.empty()) {
    if (flags.given.count("truncate") > 0) return NoUse("truncate", "a BERT that guesses masked tokens");
    return EvaluateMaskedTokens(*bert, flags);
  }
  for (const char* flag : {"masked", "seed"}) {
    if (flags.given.count(flag) > 0) return NoUse(flag, "a BERT with a classifier");
  }
  return EvaluateTextClassifier(*std::move(bert), flags);
}

}  // namespace weft
