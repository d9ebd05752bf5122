// Each execution of the decoder's graph adds a token to hypotheses of any sentences, at any positions.
//
// A hypothesis has one page of one position for each of its tokens. So hypotheses share the tokens that they have in
// common, and nothing is copied when a hypothesis is continued in two ways. Graphs have at most kMaxTranslatorRows
// rows, unless one sentence needs more, so that the bits of a row do not depend on other rows.
#include "weft/inference/generate/translate.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/inference/generate/translator_graphs.h"
#include "weft/inference/runtime/page_pool.h"

namespace weft {
namespace {

constexpr int64_t kMaxLonger = 50;     // by default, a translation has at most 50 tokens more than its source
constexpr int64_t kCapacityStep = 32;  // capacities of caches are multiples of this, or the context
constexpr int64_t kLengthStep = 4;     // lengths of sources are rounded up to 1, 2, 3, 4, 6, 8, ... times this
constexpr int64_t kMaxEncoded = 16;    // maximum number of sentences that are encoded at once
// Numbers of candidates and choices of shortlists are rounded up to 1, 2, 3, 4, 6, 8, ... times these. Sums of rows use
// four vectors at once (ops/kernels/rows/rows.cc), and kChoiceStep is a multiple of four vectors of up to 1,024 bits.
// So padding adds zeros to the sum of a row's probabilities, and does not change its order.
constexpr int64_t kCandidateStep = 256, kChoiceStep = 128;
constexpr bool kFiner = true;  // argument `finer` of GraphSize: also sizes 3, 6, 12, ...

// Returns `tokens` and the end tokens, without repetitions, in ascending order.
std::vector<int32_t> WithEnd(std::vector<int32_t> tokens, const std::vector<int32_t>& end) {
  tokens.insert(tokens.end(), end.begin(), end.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace

// The tokens of shortlists, as inputs of a decoder graph (TranslatorDecoder). All are empty without shortlists.
struct Translator::Choices {
  Tokens candidates, choices;  // [U], [rows, per_row]
  int64_t per_row = 0;
};

struct Translator::Graphs {
  GraphCache<EncoderSize, TranslatorEncoder> encoders;
  GraphCache<DecoderSize, TranslatorDecoder> decoders;
};

struct Translator::Sentence {
  size_t index = 0;  // among the sources
  const Tokens* source = nullptr;
  BeamSearch search;
  Tokens shortlist = {};            // the tokens to choose from, in ascending order; empty: all
  PageTable memory = {}, own = {};  // its pages in the caches of memories and of hypotheses
};

Translator::Translator(const TransformerConfig& config, Parameters* parameters, const RuntimeOptions& options)
    : config_(config), parameters_(parameters), options_(options), graphs_(new Graphs) {}

Translator::~Translator() = default;

absl::StatusOr<std::unique_ptr<Translator>> Translator::Create(const TransformerConfig& config, Parameters* parameters,
                                                               const RuntimeOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  if (options.batch < 1) return InvalidArgument("translate: batch ", options.batch, " must be at least 1");
  auto translator = std::unique_ptr<Translator>(new Translator(config, parameters, options));
  const int64_t shortest = std::min(kLengthStep, config.context);
  const TranslatorCaches caches = translator->CachesOf(shortest, /*sentences=*/1, {});
  Graphs& graphs = *translator->graphs_;
  WEFT_RETURN_IF_ERROR(graphs.encoders.Get({1, shortest, caches.memory}, config, options, parameters).status());
  WEFT_RETURN_IF_ERROR(graphs.decoders.Get({caches, 1}, config, options, parameters).status());
  return translator;
}

absl::Status Translator::Check(absl::Span<const Tokens> sources, const BeamSearchOptions& options,
                               absl::Span<const Tokens> shortlists) const {
  const auto invalid = [](auto... text) { return InvalidArgument("translate: ", text...); };
  if (options.beam < 1 || options.n_best < 1 || options.n_best > options.beam) {
    return invalid("beam ", options.beam, " and n_best ", options.n_best, "; wanted 1 <= n_best <= beam");
  }
  if (options.max_length < 0 || options.max_length > config_.context) {
    return invalid("max_length is ", options.max_length, ", but the model's context is ", config_.context);
  }
  size_t longest = 1;
  for (const Tokens& source : sources) longest = std::max(longest, source.size());
  const int64_t capacity = CachesOf(static_cast<int64_t>(longest), sources.size(), options).capacity;
  if (options.beam > kMaxBeamPositions / capacity) {
    return invalid("beam ", options.beam, " with caches of ", capacity, " tokens: beam * tokens may be at most ",
                   kMaxBeamPositions);
  }
  if (options.min_length < 0 || (options.max_length > 0 && options.min_length > options.max_length)) {
    return invalid("min_length is ", options.min_length, ", wanted 0 .. max_length");
  }
  Tokens special = options.end;
  special.push_back(options.begin);
  for (const std::optional<int32_t>& forced : {options.forced_begin, options.forced_end}) {
    if (forced.has_value()) special.push_back(*forced);
  }
  WEFT_RETURN_IF_ERROR(
      CheckTokens("translate: the format", special, std::numeric_limits<int64_t>::max(), config_.target_vocabulary));
  for (size_t i = 0; i < sources.size(); ++i) {
    WEFT_RETURN_IF_ERROR(
        CheckTokens(absl::StrCat("translate: source ", i), sources[i], config_.context, config_.source_vocabulary));
  }
  if (!shortlists.empty() && shortlists.size() != sources.size()) {
    return invalid(shortlists.size(), " shortlists, wanted one for each of ", sources.size(), " sources");
  }
  for (size_t i = 0; i < shortlists.size(); ++i) {
    WEFT_RETURN_IF_ERROR(CheckTokens(absl::StrCat("translate: the shortlist of source ", i), shortlists[i],
                                     std::numeric_limits<int64_t>::max(), config_.target_vocabulary));
    if (options.min_length > 0 && absl::c_all_of(shortlists[i], [&](int32_t id) { return options.IsEnd(id); })) {
      return invalid("the shortlist of source ", i, " has only end tokens, but min_length is ", options.min_length);
    }
  }
  const int64_t candidates = GraphSize(config_.target_vocabulary, kCandidateStep, kFiner);
  if (!shortlists.empty() &&
      std::max(options.beam, kMaxTranslatorRows) > std::numeric_limits<int32_t>::max() / candidates) {
    return invalid("beam ", options.beam, " is too large for shortlists from ", config_.target_vocabulary, " tokens");
  }
  return absl::OkStatus();
}

int64_t Translator::MaxLength(int64_t source_length, const BeamSearchOptions& options) const {
  return options.max_length > 0 ? options.max_length : std::min(source_length + kMaxLonger, config_.context);
}

TranslatorCaches Translator::CachesOf(int64_t source_length, size_t sentences, const BeamSearchOptions& options) const {
  const int64_t beam = options.beam;
  const int64_t wanted = GraphSize(std::min(static_cast<int64_t>(sentences), kMaxTranslatorRows));
  const int64_t searches = std::max<int64_t>(1, std::min({options_.batch, kMaxTranslatorRows / beam, wanted}));
  const int64_t pages = GraphSize(PagesOf(source_length, kMemoryPage));
  return {.memory = {searches + std::min({options_.batch, kMaxEncoded, wanted}), pages},
          .searches = searches,
          .hypotheses = beam,
          .capacity = std::min(GraphSize(MaxLength(source_length, options), kCapacityStep, kFiner), config_.context),
          .candidates = BeamSearch::Candidates(options)};
}

absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translator::Translate(absl::Span<const Tokens> sources,
                                                                           const BeamSearchOptions& options,
                                                                           absl::Span<const Tokens> shortlists) {
  WEFT_RETURN_IF_ERROR(Check(sources, options, shortlists));
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  absl::c_stable_sort(order, [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<std::vector<Hypothesis>> translations(sources.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto length = [&](size_t i) { return static_cast<int64_t>(sources[order[i]].size()); };
    const TranslatorCaches caches = CachesOf(length(begin), order.size(), options);
    // Sentences with a quarter of the capacity or less get caches of their own, because their graphs have fewer
    // positions.
    const auto fits = [&](size_t i) {
      return 4 * CachesOf(length(i), order.size(), options).capacity > caches.capacity;
    };
    std::vector<std::unique_ptr<Sentence>> sentences;
    for (end = begin; end < order.size() && fits(end); ++end) {
      sentences.push_back(std::make_unique<Sentence>(
          Sentence{order[end], &sources[order[end]], {options, MaxLength(length(end), options)}}));
      if (!shortlists.empty()) sentences.back()->shortlist = WithEnd(shortlists[order[end]], options.end);
    }
    WEFT_RETURN_IF_ERROR(TranslateAll(std::move(sentences), caches, options, &translations));
  }
  return translations;
}

// Translates sentences that share caches. The first sentence must be the longest.
absl::Status Translator::TranslateAll(std::vector<std::unique_ptr<Sentence>> sentences, const TranslatorCaches& caches,
                                      const BeamSearchOptions& options,
                                      std::vector<std::vector<Hypothesis>>* translations) {
  PagePool memories(static_cast<size_t>(caches.memory.page_count()), static_cast<size_t>(kMemoryPage));
  PagePool searches(static_cast<size_t>(caches.search_pages()), /*page_size=*/1);
  Sentences encoded, live;
  size_t next = 0;  // the first sentence that is not encoded
  while (true) {
    while (!encoded.empty() || next < sentences.size()) {
      PageTable own;
      if (!searches.Take(static_cast<size_t>(caches.hypotheses * caches.capacity), &own)) break;
      if (encoded.empty()) {
        const size_t fit = static_cast<size_t>(kMaxTranslatorRows) / sentences[next]->source->size();
        const size_t batch = static_cast<size_t>(std::min(options_.batch, kMaxEncoded));
        const size_t limit = std::min(sentences.size() - next, std::max<size_t>(1, std::min(fit, batch)));
        const size_t pages = static_cast<size_t>(caches.memory.pages);
        size_t count = 0;
        while (count < limit && memories.Take(pages, &sentences[next + count]->memory)) ++count;
        WEFT_RETURN_IF_ERROR(Encode(absl::MakeConstSpan(sentences).subspan(next, count), caches));
        for (; encoded.size() < count; ++next) encoded.push_back(std::move(sentences[next]));
      }
      live.push_back(std::move(encoded.front()));
      encoded.pop_front();
      live.back()->own = std::move(own);
    }
    if (live.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(Extend(live, caches, options));
    // A sentence that ends makes room for the next one at once.
    for (auto sentence = live.begin(); sentence != live.end();) {
      Sentence& done = **sentence;
      if (!done.search.done()) {
        ++sentence;
        continue;
      }
      std::vector<Hypothesis>& best = (*translations)[done.index];
      best = done.search.Best();
      if (best.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat("translate: source ", done.index, ": the model's probabilities are not numbers"));
      }
      memories.Release(&done.memory);
      searches.Release(&done.own);
      sentence = live.erase(sentence);
    }
  }
}

// Encodes sentences. The first sentence must be the longest.
absl::Status Translator::Encode(absl::Span<const std::unique_ptr<Sentence>> sentences, const TranslatorCaches& caches) {
  const int64_t longest = static_cast<int64_t>(sentences[0]->source->size());
  int64_t length = GraphSize(longest, kLengthStep, kFiner);
  if (longest <= kMaxTranslatorRows) length = std::min(length, kMaxTranslatorRows);
  length = std::min(length, config_.context);
  const int64_t most = std::max<int64_t>(1, kMaxTranslatorRows / length);
  // The step of lengths may leave room for one sentence less than their own lengths would.
  for (; static_cast<int64_t>(sentences.size()) > most; sentences.remove_prefix(static_cast<size_t>(most))) {
    WEFT_RETURN_IF_ERROR(Encode(sentences.first(static_cast<size_t>(most)), caches));
  }
  const int64_t rows = std::min(GraphSize(static_cast<int64_t>(sentences.size())), most);
  WEFT_ASSIGN_OR_RETURN(TranslatorEncoder* const encoder,
                        graphs_->encoders.Get({rows, length, caches.memory}, config_, options_, parameters_));
  Tokens source(static_cast<size_t>(rows * length)), lengths(static_cast<size_t>(rows));
  Tokens position(source.size(), -1), pages(static_cast<size_t>(rows * caches.memory.pages));
  for (size_t i = 0; i < sentences.size(); ++i) {
    const Tokens& own = *sentences[i]->source;
    const auto row = static_cast<std::ptrdiff_t>(static_cast<int64_t>(i) * length);
    std::copy(own.begin(), own.end(), source.begin() + row);
    std::iota(position.begin() + row, position.begin() + row + static_cast<std::ptrdiff_t>(own.size()), 0);
    lengths[i] = static_cast<int32_t>(own.size());
    absl::c_copy(sentences[i]->memory.pages, pages.begin() + static_cast<int64_t>(i) * caches.memory.pages);
  }
  return encoder
      ->Run({{encoder->source, source},
             {encoder->lengths, lengths},
             {encoder->position, position},
             {encoder->pages, pages}})
      .status();
}

// Returns the candidates of all sentences in `live`, and the choices of each hypothesis, for a graph of `rows` rows.
Translator::Choices Translator::ChoicesOf(const Sentences& live, int64_t rows) const {
  Choices choices;
  if (live[0]->shortlist.empty()) return choices;
  Tokens index(static_cast<size_t>(config_.target_vocabulary), -1);  // of each token in choices.candidates
  size_t longest = 0;
  for (const auto& sentence : live) {
    longest = std::max(longest, sentence->shortlist.size());
    for (const int32_t token : sentence->shortlist) index[static_cast<size_t>(token)] = 0;
  }
  for (size_t token = 0; token < index.size(); ++token) {
    if (index[token] < 0) continue;
    index[token] = static_cast<int32_t>(choices.candidates.size());
    choices.candidates.push_back(static_cast<int32_t>(token));
  }
  const int64_t count = GraphSize(static_cast<int64_t>(choices.candidates.size()), kCandidateStep, kFiner);
  choices.candidates.resize(static_cast<size_t>(count));
  choices.per_row = GraphSize(static_cast<int64_t>(longest), kChoiceStep, kFiner);
  choices.choices.assign(static_cast<size_t>(rows * choices.per_row), -1);
  int64_t row = 0;
  for (const auto& sentence : live) {
    for (size_t k = 0; k < sentence->search.live().size(); ++k, ++row) {
      int32_t* to = choices.choices.data() + row * choices.per_row;
      for (const int32_t token : sentence->shortlist) {
        *to++ = static_cast<int32_t>(row * count) + index[static_cast<size_t>(token)];
      }
    }
  }
  return choices;
}

// Adds a token to each live hypothesis.
absl::Status Translator::Extend(const Sentences& live, const TranslatorCaches& caches,
                                const BeamSearchOptions& options) {
  size_t wanted = 0;
  for (const auto& sentence : live) wanted += sentence->search.live().size();
  // A sentence with more hypotheses than kMaxTranslatorRows always has the same graph, and so the same bits.
  const int64_t used = static_cast<int64_t>(wanted);
  const int64_t step = static_cast<int64_t>(std::bit_floor(std::max<size_t>(wanted / 4, 1)));
  const int64_t rows = options.beam > kMaxTranslatorRows ? options.beam : (used + step - 1) / step * step;
  const Choices choices = ChoicesOf(live, rows);
  const DecoderSize size = {caches, rows, static_cast<int64_t>(choices.candidates.size()), choices.per_row};
  WEFT_ASSIGN_OR_RETURN(TranslatorDecoder* const decoder, graphs_->decoders.Get(size, config_, options_, parameters_));
  const size_t count = static_cast<size_t>(rows), capacity = static_cast<size_t>(caches.capacity);
  const size_t memory_pages = static_cast<size_t>(caches.memory.pages);
  Tokens token(count), position(count, -1), pages, last(count, -1), memory(count * memory_pages);
  size_t row = 0;
  for (const auto& sentence : live) {
    const BeamSearch& search = sentence->search;
    for (size_t k = 0; k < search.live().size(); ++k, ++row) {
      const Tokens& tokens = search.live()[k].tokens;
      token[row] = tokens.empty() ? options.begin : tokens.back();
      position[row] = static_cast<int32_t>(search.length());
      search.AppendPages(k, /*begin=*/0, sentence->own.pages, &pages);
      pages.resize((row + 1) * capacity);
      last[row] = static_cast<int32_t>(sentence->source->size()) - 1;
      absl::c_copy(sentence->memory.pages, memory.begin() + static_cast<std::ptrdiff_t>(row * memory_pages));
    }
  }
  pages.resize(count * capacity);
  std::vector<FeedPair> feeds = {{decoder->token, token},
                                 {decoder->position, position},
                                 {decoder->pages, pages},
                                 {decoder->memory_last, last},
                                 {decoder->memory_pages, memory}};
  if (choices.per_row > 0) {
    feeds.push_back({decoder->candidates, choices.candidates});
    feeds.push_back({decoder->choices, choices.choices});
  }
  WEFT_ASSIGN_OR_RETURN(const Outputs out, decoder->Run(feeds));
  const absl::Span<const float> chances = out[decoder->log_probability].span<const float>();
  const absl::Span<const int32_t> next = out[decoder->next].span<const int32_t>();
  const size_t each = next.size() / count;
  row = 0;
  for (const auto& sentence : live) {
    const size_t hypotheses = sentence->search.live().size();
    absl::Span<const int32_t> tokens = next.subspan(row * each, hypotheses * each);
    Tokens chosen;
    if (const Tokens& list = sentence->shortlist; !list.empty()) {
      // Choices beyond the list are padding and have no probability, so any token may stand for them.
      for (const int32_t choice : tokens)
        chosen.push_back(list[std::min(static_cast<size_t>(choice), list.size() - 1)]);
      tokens = chosen;
    }
    sentence->search.Extend(chances.subspan(row * each, hypotheses * each), tokens);
    row += hypotheses;
  }
  return absl::OkStatus();
}

}  // namespace weft
