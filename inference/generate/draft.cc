// DraftByLookup and ModelDraft, which first reads the tokens of each text that its cache lacks. Then each execution
// adds the likeliest next token to every text.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/inference/generate/generate.h"
#include "weft/inference/runtime/sampling.h"

namespace weft {
namespace {

// Returns how many tokens a GPT with `context` positions leaves out at the beginning of a text of `size` tokens. The
// number grows by half a context at a time, so the cache of a growing text is usually still right.
size_t LeftOut(size_t size, size_t context) {
  if (size <= context) return 0;
  const size_t half = std::max<size_t>(context / 2, 1);
  return (size - context + half - 1) / half * half;
}

}  // namespace

std::vector<int32_t> DraftByLookup(absl::Span<const int32_t> text, size_t count) {
  constexpr size_t kLongest = 3, kShortest = 2;
  for (size_t n = kLongest; n >= kShortest; --n) {
    if (text.size() <= n) continue;
    const absl::Span<const int32_t> last = text.last(n);
    for (size_t end = text.size() - 1; end >= n; --end) {
      if (text.subspan(end - n, n) != last) continue;
      const absl::Span<const int32_t> next = text.subspan(end, count);
      return {next.begin(), next.end()};
    }
  }
  return {};
}

absl::StatusOr<std::unique_ptr<ModelDraft>> ModelDraft::Create(const GptConfig& config, Parameters* parameters,
                                                               const RuntimeOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  if (options.batch < 1) return InvalidArgument("draft: batch is ", options.batch, ", wanted at least 1");
  const int64_t pages = options.batch * PagesOf(config.context, kCachePage);
  auto draft = std::unique_ptr<ModelDraft>(new ModelDraft(config, options, pages));
  WEFT_ASSIGN_OR_RETURN(draft->gpt_, CachedGpt::Create(config, parameters, {.pages = pages, .runtime = options}));
  return draft;
}

// Returns the cached text of a request, and gives it the request's tokens. The longest beginning of these tokens that
// the cache already has stays in the cache. If the cache has no room for a new text, drops a text that no request
// names.
ModelDraft::Text* ModelDraft::TextOf(size_t index, absl::Span<const DraftRequest> requests) {
  const DraftRequest& request = requests[index];
  if (!texts_.contains(request.text) && static_cast<int64_t>(texts_.size()) == options_.batch) {
    const auto unused = absl::c_find_if(texts_, [&](const auto& text) {
      return absl::c_none_of(requests, [&](const DraftRequest& each) { return each.text == text.first; });
    });
    WEFT_CHECK(unused != texts_.end());
    pool_.Release(&unused->second.table);
    texts_.erase(unused);
  }
  const auto [it, is_new] = texts_.try_emplace(request.text);
  Text& text = it->second;
  const size_t context = static_cast<size_t>(config_.context);
  if (is_new) WEFT_CHECK(pool_.Admit({}, 0, pool_.PagesOf(context), &text.table));
  const size_t count = std::min(request.count, context / 2);
  const absl::Span<const int32_t> tokens = request.tokens.subspan(LeftOut(request.tokens.size() + count, context));
  const auto differs = std::mismatch(tokens.begin(), tokens.end(), text.tokens.begin(), text.tokens.end()).first;
  const auto same = static_cast<size_t>(differs - tokens.begin());
  text.kept = std::min({text.kept, same, tokens.size() - 1});  // the last token's logits are needed
  text.tokens.assign(tokens.begin(), tokens.end());
  text.request = index;
  text.given = tokens.size();
  text.wanted = tokens.size() + count;
  while (text.table.pages.size() < pool_.PagesOf(text.wanted)) pool_.Add(&text.table);
  return &text;
}

// Reads tokens in one execution, and adds a guess to each text whose tokens are then all read.
absl::Status ModelDraft::Read(const std::vector<Text*>& texts) {
  CachedGpt::Rows rows;
  rows.chunk = absl::c_any_of(texts, [](const Text* text) { return text->unread() > CachedGpt::kStepRows; });
  const size_t limit = rows.chunk ? CachedGpt::kMaxChunk : CachedGpt::kStepRows;
  const size_t ends = rows.chunk ? CachedGpt::kChunkEnds : CachedGpt::kStepRows;
  std::vector<Text*> complete;
  for (Text* const text : texts) {
    if (text->tokens.size() == text->wanted || complete.size() == ends) continue;
    if (rows.Read(limit - rows.tokens.size(), text)) complete.push_back(text);
  }
  WEFT_ASSIGN_OR_RETURN(const float* logits, gpt_->Run(rows));
  for (Text* const text : complete) {
    text->tokens.push_back(LikeliestToken({logits, static_cast<size_t>(config_.vocabulary)}));
    logits += config_.vocabulary;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int32_t>>> ModelDraft::Guess(absl::Span<const DraftRequest> requests) {
  if (static_cast<int64_t>(requests.size()) > options_.batch) {
    return InvalidArgument("draft: ", requests.size(), " texts, wanted at most batch, ", options_.batch);
  }
  std::vector<Text*> texts;
  const auto is_unknown = [&](int32_t token) { return token < 0 || token >= config_.vocabulary; };
  for (size_t i = 0; i < requests.size(); ++i) {
    // The other model's table of tokens may have more rows, which no tokenizer uses.
    if (absl::c_any_of(requests[i].tokens, is_unknown)) continue;
    texts.push_back(TextOf(i, requests));
  }
  const auto incomplete = [](const Text* text) { return text->tokens.size() < text->wanted; };
  while (absl::c_any_of(texts, incomplete)) WEFT_RETURN_IF_ERROR(Read(texts));
  std::vector<std::vector<int32_t>> guesses(requests.size());
  for (const Text* const text : texts) {
    guesses[text->request].assign(text->tokens.begin() + static_cast<std::ptrdiff_t>(text->given), text->tokens.end());
  }
  return guesses;
}

}  // namespace weft
