// A prompt has a page for each of its positions, and a search `beam` pages for each of its own.
#include "weft/inference/beam_generation.h"

#include <algorithm>
#include <tuple>

#include "absl/cleanup/cleanup.h"
#include "weft/core/status.h"
#include "weft/inference/sampling.h"

namespace weft {
namespace {

constexpr int32_t kNoToken = -1;  // the end token of a search without stop tokens

}  // namespace

BeamGenerator::BeamGenerator(const GptConfig& config, const BeamSearchOptions& search, const GenerateOptions& options,
                             size_t pages)
    : config_(config),
      options_(options),
      search_({.beam = search.beam,
               .n_best = search.n_best,
               .length_penalty = search.length_penalty,
               .end = {options.stop.empty() ? kNoToken : options.stop[0]}}),
      pool_(pages, /*page_size=*/1) {}

absl::StatusOr<std::unique_ptr<BeamGenerator>> BeamGenerator::Create(const GptConfig& config, Parameters* parameters,
                                                                     const BeamSearchOptions& search,
                                                                     const GenerateOptions& options,
                                                                     const RuntimeOptions& runtime) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  const auto [beam, n_best, length] = std::tuple(search.beam, search.n_best, options.length);
  if (beam < 1 || beam > CachedGpt::kStepRows || n_best < 1 || n_best > beam || length < 0) {
    return InvalidArgument("generate: beam ", beam, ", n_best ", n_best, " and length ", length,
                           "; wanted 1 <= n_best <= beam <= ", CachedGpt::kStepRows, " and a length of at least 0");
  }
  const int64_t pages = config.context + beam * std::min(length, config.context);
  auto generator =
      std::unique_ptr<BeamGenerator>(new BeamGenerator(config, search, options, static_cast<size_t>(pages)));
  WEFT_ASSIGN_OR_RETURN(generator->gpt_,
                        CachedGpt::Create(config, parameters, {.pages = pages, .page_size = 1, .runtime = runtime}));
  return generator;
}

// Returns the logits of the token after the prompt.
absl::StatusOr<const float*> BeamGenerator::ReadPrompt(CachedText* prompt) {
  const bool chunk = prompt->unread() > static_cast<size_t>(CachedGpt::kStepRows);
  while (true) {
    CachedGpt::Rows rows = {.chunk = chunk};
    const bool complete = rows.Read(CachedGpt::kMaxChunk, prompt);
    WEFT_ASSIGN_OR_RETURN(const float* logits, gpt_->Run(rows));
    if (complete) return logits;
  }
}

// Reads the newest token of each live hypothesis. Returns the logits of the tokens after them.
absl::StatusOr<const float*> BeamGenerator::ReadNewest(const CachedText& prompt, const BeamSearch& search,
                                                       const PageTable& of_search) {
  const absl::Span<const BeamSearch::Beam> live = search.live();
  std::vector<PageTable> tables(live.size(), prompt.table);
  CachedGpt::Rows rows;
  for (size_t k = 0; k < live.size(); ++k) {
    // The prompt takes the place of the position 0. The search's first token is at position 1.
    search.AppendPages(k, /*begin=*/1, of_search.pages, &tables[k].pages);
    rows.last.push_back(static_cast<int32_t>(k));
    rows.Add(live[k].tokens.back(), tables[k].pages.size() - 1, &tables[k]);
  }
  return gpt_->Run(rows);
}

void BeamGenerator::Extend(const float* logits, BeamSearch* search) const {
  const auto vocabulary = static_cast<size_t>(config_.vocabulary);
  const size_t known = options_.vocabulary > 0 ? static_cast<size_t>(options_.vocabulary) : vocabulary;
  const size_t each = std::min(static_cast<size_t>(BeamSearch::Candidates(search_)), known);
  std::vector<float> logprobs;
  std::vector<int32_t> tokens;
  for (size_t k = 0; k < search->live().size(); ++k, logits += vocabulary) {
    const std::vector<TokenLogprob> likeliest = Logprobs({logits, vocabulary}, /*token=*/0, each, known);
    for (size_t i = 1; i < likeliest.size(); ++i) {  // the first is that of token 0
      const auto& [token, logprob] = likeliest[i];
      const bool stops = std::find(options_.stop.begin(), options_.stop.end(), token) != options_.stop.end();
      tokens.push_back(stops ? search_.end[0] : token);
      logprobs.push_back(logprob);
    }
  }
  search->Extend(logprobs, tokens);
}

absl::StatusOr<std::vector<Hypothesis>> BeamGenerator::Generate(absl::Span<const int32_t> prompt) {
  WEFT_RETURN_IF_ERROR(CheckTokens("generate: prompt", prompt, config_.context, config_.vocabulary));
  // The last token that is added need not be read, so one more than the context fits.
  const int64_t most = options_.max_length > 0 ? options_.max_length : config_.context + 1;
  const int64_t room = std::min(most, config_.context + 1) - static_cast<int64_t>(prompt.size());
  const int64_t length = std::clamp<int64_t>(room, 0, options_.length);
  BeamSearch search(search_, length);
  if (search.done()) return std::vector<Hypothesis>{{}};
  CachedText text = {.tokens = {prompt.begin(), prompt.end()}};
  PageTable of_search;
  const absl::Cleanup release = [&] {
    pool_.Release(&text.table);
    pool_.Release(&of_search);
  };
  // The last token of a hypothesis is not read.
  const auto positions = static_cast<size_t>(search_.beam * (length - 1));
  WEFT_CHECK(pool_.Take(prompt.size(), &text.table) && pool_.Take(positions, &of_search));
  WEFT_ASSIGN_OR_RETURN(const float* logits, ReadPrompt(&text));
  Extend(logits, &search);
  while (!search.done()) {
    WEFT_ASSIGN_OR_RETURN(logits, ReadNewest(text, search, of_search));
    Extend(logits, &search);
  }
  return search.Best();
}

}  // namespace weft
