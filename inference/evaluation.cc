// Sums losses in f64 over runs of one compiled graph each; the last run is filled up with ignored targets.
#include "weft/inference/evaluation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/core/tape.h"
#include "weft/graph/runner.h"
#include "weft/inference/eval_runner.h"
#include "weft/models/gpt.h"
#include "weft/text/corpus.h"

namespace weft {
namespace {

absl::Status NoTokens(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": there are no tokens in it"));
}

// A graph that computes the loss of a GPT in `rows` windows of `length` tokens.
class Windows {
 public:
  static absl::StatusOr<std::unique_ptr<Windows>> Create(const GptConfig& config, int64_t rows, int64_t length,
                                                         Parameters* parameters, int64_t threads) {
    auto windows = std::make_unique<Windows>();
    Tape* const tape = &windows->tape_;
    windows->tokens_ = tape->Input("tokens", {kI32, {rows, length}}, {.below = config.vocabulary});
    windows->targets_ =
        tape->Input("targets", {kI32, {rows, length}}, {.below = config.vocabulary, .ignored = kIgnoredTarget});
    windows->loss_ = CrossEntropy(Gpt(config).Logits(windows->tokens_), windows->targets_);
    WEFT_ASSIGN_OR_RETURN(windows->runner_, EvalRunner(*tape, {.fetch = {windows->loss_}}, parameters, threads));
    return windows;
  }

  // Predicts text[known] and all later tokens, each from the tokens before it in its window. Adds the sum of the losses
  // to `loss`, and the number of predicted tokens to `count`.
  absl::Status Add(absl::Span<const int32_t> text, size_t known, double* loss, int64_t* count) {
    const auto size = static_cast<size_t>(tokens_.shape().elements());
    for (size_t begin = 0; begin + 1 < text.size(); begin += size) {
      std::vector<int32_t> tokens(size, 0), targets(size, kIgnoredTarget);
      int64_t predicted = 0;
      for (size_t i = 0; i < size && begin + i + 1 < text.size(); ++i) {
        tokens[i] = text[begin + i];
        if (begin + i + 1 < known) continue;
        targets[i] = text[begin + i + 1];
        ++predicted;
      }
      if (predicted == 0) continue;
      WEFT_ASSIGN_OR_RETURN(const Outputs out, runner_->Run({{tokens_, tokens}, {targets_, targets}}));
      *loss += static_cast<double>(predicted) * out.Scalar(loss_);
      *count += predicted;
    }
    return absl::OkStatus();
  }

 private:
  Tape tape_;
  Var tokens_, targets_, loss_;  // i32 [B, T], [B, T]; f32 []
  std::unique_ptr<Runner> runner_;
};

}  // namespace

absl::StatusOr<EncodedTexts> EncodeTexts(const OpenedGpt& gpt, absl::Span<const std::string> paths) {
  EncodedTexts encoded;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> beginning, BeginningOfText(*gpt.tokenizer));
  encoded.beginning = beginning.size();
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    const absl::StatusOr<std::vector<int32_t>> ids = gpt.tokenizer->Encode(text);
    if (!ids.ok()) return Annotate(ids.status(), path);
    if (ids->empty()) return NoTokens(path);
    std::vector<int32_t>& tokens = encoded.texts.emplace_back(beginning);
    tokens.insert(tokens.end(), ids->begin(), ids->end());
    encoded.bytes += static_cast<int64_t>(text.size());
  }
  return encoded;
}

absl::StatusOr<EncodedTexts> EncodeTexts(const OpenedBert& bert, absl::Span<const std::string> paths) {
  EncodedTexts encoded;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    WEFT_ASSIGN_OR_RETURN(encoded.texts.emplace_back(), EncodeText(path, text, *bert.tokenizer));
    if (encoded.texts.back().empty()) return NoTokens(path);
    encoded.bytes += static_cast<int64_t>(text.size());
  }
  return encoded;
}

absl::StatusOr<LanguageModelScore> EvaluateGpt(const OpenedGpt& gpt, const EncodedTexts& texts, int64_t threads) {
  constexpr int64_t kTokensPerRun = 1024;  // so that logits over a large vocabulary take limited memory
  int64_t longest = 0;
  for (const auto& text : texts.texts) longest = std::max(longest, static_cast<int64_t>(text.size()) - 1);
  const GptConfig& config = gpt.model.config;
  const int64_t length = std::min(config.context, longest);
  const int64_t max_rows = (longest + length - 1) / length;
  const int64_t rows = std::clamp<int64_t>(kTokensPerRun / length, 1, max_rows);
  Parameters parameters({.draw = false});
  WEFT_ASSIGN_OR_RETURN(const auto windows, Windows::Create(config, rows, length, &parameters, threads));
  WEFT_RETURN_IF_ERROR(parameters.Set("the model", gpt.model.weights.tensors()));
  double sum = 0;
  LanguageModelScore score;
  for (const std::vector<int32_t>& text : texts.texts) {
    WEFT_RETURN_IF_ERROR(windows->Add(text, texts.beginning, &sum, &score.tokens));
  }
  score.loss = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(score.loss);
  score.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(texts.bytes);
  return score;
}

}  // namespace weft
