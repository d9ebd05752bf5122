// Generator::Search. A prompt has a page for each of its positions, and a search `beam` pages for each of its own. So
// hypotheses share the pages of their common tokens, and no keys and values are copied.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "weft/base/status.h"
#include "weft/inference/generate/generate.h"
#include "weft/inference/runtime/sampling.h"

namespace weft {
namespace {

// Returns the logits of the token after the prompt.
absl::StatusOr<const float*> ReadPrompt(CachedText* prompt, CachedGpt* gpt) {
  const bool chunk = prompt->unread() > static_cast<size_t>(CachedGpt::kStepRows);
  while (true) {
    CachedGpt::Rows rows = {.chunk = chunk};
    const bool complete = rows.Read(CachedGpt::kMaxChunk, prompt);
    WEFT_ASSIGN_OR_RETURN(const float* logits, gpt->Run(rows));
    if (complete) return logits;
  }
}

// Reads the newest token of each live hypothesis. Returns the logits of the tokens after them.
absl::StatusOr<const float*> ReadNewest(const CachedText& prompt, const BeamSearch& search, const PageTable& of_search,
                                        CachedGpt* gpt) {
  const absl::Span<const BeamSearch::Beam> live = search.live();
  std::vector<PageTable> tables(live.size(), prompt.table);
  CachedGpt::Rows rows;
  for (size_t k = 0; k < live.size(); ++k) {
    // The search counts its tokens from position 1. The prompt's own pages come before them.
    search.AppendPages(k, /*begin=*/1, of_search.pages, &tables[k].pages);
    rows.last.push_back(static_cast<int32_t>(k));
    rows.Add(live[k].tokens.back(), tables[k].pages.size() - 1, &tables[k]);
  }
  return gpt->Run(rows);
}

void Extend(const float* logits, size_t vocabulary, const GenerateOptions& options, const BeamSearchOptions& how,
            BeamSearch* search) {
  const size_t known = options.vocabulary > 0 ? static_cast<size_t>(options.vocabulary) : vocabulary;
  const size_t each = std::min(static_cast<size_t>(BeamSearch::Candidates(how)), known);
  std::vector<float> logprobs;
  std::vector<int32_t> tokens;
  for (size_t k = 0; k < search->live().size(); ++k, logits += vocabulary) {
    const std::vector<TokenLogprob> likeliest = Logprobs({logits, vocabulary}, /*token=*/0, each, known);
    for (size_t i = 1; i < likeliest.size(); ++i) {  // the first is that of token 0
      tokens.push_back(likeliest[i].token);
      logprobs.push_back(likeliest[i].logprob);
    }
  }
  search->Extend(logprobs, tokens);
}

}  // namespace

absl::StatusOr<std::vector<Hypothesis>> Generator::Search(absl::Span<const int32_t> prompt,
                                                          const GenerateOptions& options) {
  if (options_.search.beam == 0) return InvalidArgument("generate: search.beam of GeneratorOptions is 0");
  WEFT_RETURN_IF_ERROR(Check({}, options));
  WEFT_RETURN_IF_ERROR(CheckTokens("generate: prompt", prompt, config_.context, config_.vocabulary));
  const BeamSearchOptions how = {.beam = options_.search.beam,
                                 .n_best = options_.search.n_best,
                                 .length_penalty = options_.search.length_penalty,
                                 .end = options.stop,
                                 .stop = options_.search.stop};
  // The last token that is added need not be read, so one more than the context fits.
  const int64_t most = options.max_length > 0 ? options.max_length : config_.context + 1;
  const int64_t room = std::min(most, config_.context + 1) - static_cast<int64_t>(prompt.size());
  const int64_t length = std::clamp<int64_t>(room, 0, options.length);
  BeamSearch search(how, length);
  if (search.done()) return std::vector<Hypothesis>{{}};
  CachedText text = {.tokens = {prompt.begin(), prompt.end()}};
  PageTable of_search;
  const absl::Cleanup release = [&] {
    pool_.Release(&text.table);
    pool_.Release(&of_search);
  };
  const auto positions = static_cast<size_t>(how.beam * (length - 1));
  if (!pool_.Take(prompt.size(), &text.table) || !pool_.Take(positions, &of_search)) {
    return InvalidArgument("generate: pages is less than ", prompt.size() + positions, ", one for each token");
  }
  const auto vocabulary = static_cast<size_t>(config_.vocabulary);
  WEFT_ASSIGN_OR_RETURN(const float* logits, ReadPrompt(&text, gpt_.get()));
  Extend(logits, vocabulary, options, how, &search);
  while (!search.done()) {
    WEFT_ASSIGN_OR_RETURN(logits, ReadNewest(text, search, of_search, gpt_.get()));
    Extend(logits, vocabulary, options, how, &search);
  }
  return search.Best();
}

}  // namespace weft
