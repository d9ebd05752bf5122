#include "weft/models/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/core/status.h"
#include "weft/graph/compile.h"

namespace weft {
namespace {

constexpr uint32_t kSampleStream = 0xffff0003;  // far above those that a tape gives to its random ops

}  // namespace

int32_t SampleToken(absl::Span<const float> logits, const GenerateOptions& options, double uniform) {
  if (options.temperature == 0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  std::vector<int32_t> ranked(logits.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const size_t kept = options.top_k > 0 ? std::min(static_cast<size_t>(options.top_k), ranked.size()) : ranked.size();
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept), ranked.end(), likelier);
  std::vector<double> cumulative(kept);
  double sum = 0;
  const double highest = logits[static_cast<size_t>(ranked[0])];
  for (size_t i = 0; i < kept; ++i) {
    sum += std::exp((logits[static_cast<size_t>(ranked[i])] - highest) / options.temperature);
    cumulative[i] = sum;
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum) - cumulative.begin();
  return ranked[std::min(static_cast<size_t>(drawn), kept - 1)];
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const GptConfig& config, Parameters* parameters,
                                                             int threads) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  auto generator = std::unique_ptr<Generator>(new Generator());
  Tape& tape = generator->tape_;
  generator->tokens_ = tape.Input("tokens", {kI32, {1, config.context}}, {.below = config.vocabulary});
  generator->logits_ = Gpt(config).Logits(generator->tokens_);
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, {.fetch = {generator->logits_}, .mode = kEval}));
  generator->runner_ = std::make_unique<Runner>(std::move(graph), parameters, RunnerOptions{.threads = threads});
  WEFT_RETURN_IF_ERROR(generator->runner_->status());
  return generator;
}

absl::StatusOr<std::vector<int32_t>> Generator::Generate(absl::Span<const int32_t> prompt,
                                                         const GenerateOptions& options,
                                                         absl::FunctionRef<void(int32_t)> sink) {
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt has no tokens");
  const auto context = static_cast<size_t>(tokens_.dim(1));
  const auto vocabulary = static_cast<size_t>(logits_.dim(2));
  const RandomStream random = {.seed = options.seed, .stream = kSampleStream};
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  std::vector<int32_t> window(context);
  for (int64_t i = 0; i < options.length; ++i) {
    // The tokens stand at the left; what follows them can't be seen, by causality.
    const size_t used = std::min(context, text.size());
    std::fill(std::copy(text.end() - static_cast<std::ptrdiff_t>(used), text.end(), window.begin()), window.end(), 0);
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner_->Run({{tokens_, window}}));
    const absl::Span<const float> logits = outputs[logits_].span<const float>();
    const int32_t token = SampleToken(logits.subspan((used - 1) * vocabulary, vocabulary), options,
                                      random.Uniform(static_cast<uint64_t>(i)));
    text.push_back(token);
    sink(token);
  }
  return std::vector<int32_t>(text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end());
}

}  // namespace weft
