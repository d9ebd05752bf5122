// Loss of a GPT on texts.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/evaluation/evaluate.h"
#include "weft/core/status.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/open_model.h"
#include "weft/text/corpus.h"

namespace weft {
namespace {

struct Sums {
  double loss = 0;
  int64_t count = 0, bytes = 0;  // tokens that were predicted; bytes of the texts
};

// Loss of a GPT in windows of so many tokens, so many at once.
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
    WEFT_ASSIGN_OR_RETURN(windows->runner_,
                          EvalRunner(*tape, {.fetch = {windows->loss_}}, parameters, static_cast<int>(threads)));
    return windows;
  }

  // Adds the loss of stream[known], stream[known + 1], ..., each from those before it in its window.
  absl::Status Add(absl::Span<const int32_t> stream, size_t known, Sums* sums) {
    const auto size = static_cast<size_t>(tokens_.shape().elements());
    for (size_t begin = 0; begin + 1 < stream.size(); begin += size) {
      std::vector<int32_t> tokens(size, 0), targets(size, kIgnoredTarget);
      int64_t count = 0;
      for (size_t i = 0; i < size && begin + i + 1 < stream.size(); ++i) {
        tokens[i] = stream[begin + i];
        if (begin + i + 1 < known) continue;
        targets[i] = stream[begin + i + 1];
        ++count;
      }
      if (count == 0) continue;
      WEFT_ASSIGN_OR_RETURN(const Outputs out, runner_->Run({{tokens_, tokens}, {targets_, targets}}));
      sums->loss += static_cast<double>(count) * out.Scalar(loss_);
      sums->count += count;
    }
    return absl::OkStatus();
  }

 private:
  Tape tape_;
  Var tokens_, targets_, loss_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace

absl::StatusOr<Figures> EvaluateGpt(const EvaluateFlags& flags) {
  const absl::StatusOr<OpenedGpt> gpt = OpenGpt(flags.model, flags.tokenizer);
  if (!gpt.ok()) return UsageError(gpt.status());
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> beginning, BeginningOfText(*gpt->tokenizer));
  std::vector<std::vector<int32_t>> streams;
  Sums sums;
  size_t longest = 0;
  for (const std::string& path : flags.files) {
    const absl::StatusOr<std::string> text = ReadText(path);
    if (!text.ok()) return UsageError(text.status());
    const absl::StatusOr<std::vector<int32_t>> ids = gpt->tokenizer->Encode(*text);
    if (!ids.ok()) return Annotate(ids.status(), path);
    if (ids->empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": there are no tokens in it"));
    streams.push_back(beginning);
    streams.back().insert(streams.back().end(), ids->begin(), ids->end());
    sums.bytes += static_cast<int64_t>(text->size());
    longest = std::max(longest, streams.back().size() - 1);
  }
  constexpr int64_t kTokensAtOnce = 1024;  // so that the logits of large vocabularies find room
  const GptConfig& config = gpt->model.config;
  const int64_t length = std::min(config.context, static_cast<int64_t>(longest));
  const int64_t most = (static_cast<int64_t>(longest) + length - 1) / length;
  const int64_t rows = std::clamp<int64_t>(kTokensAtOnce / length, 1, most);
  Parameters parameters({.draw = false});
  WEFT_ASSIGN_OR_RETURN(const auto windows, Windows::Create(config, rows, length, &parameters, flags.threads));
  WEFT_RETURN_IF_ERROR(UsageError(parameters.Set(flags.model, gpt->model.weights.tensors())));
  for (const std::vector<int32_t>& stream : streams) {
    WEFT_RETURN_IF_ERROR(Failure(windows->Add(stream, beginning.size(), &sums)));
  }
  const double loss = sums.loss / static_cast<double>(sums.count);
  const double bits = sums.loss / std::numbers::ln2 / static_cast<double>(sums.bytes);
  return Figures{Count("tokens", sums.count),
                 Loss(loss, "token"),
                 {"perplexity", std::exp(loss), absl::StrFormat("%.4f", std::exp(loss))},
                 {"bits_per_byte", bits, absl::StrFormat("%.6f", bits)},
                 Count("bytes", sums.bytes)};
}

}  // namespace weft
