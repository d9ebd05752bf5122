// Each execution reads tokens that the cache lacks, and draws a token for each text whose tokens are then all read.
//
// A text with many unread tokens reads them in chunks; other tokens are read in executions of few rows. Both may
// give different bits (inference/generate/generate.h). So the text alone decides which kind reads a token, and how
// many tokens of other texts are beside it has no influence.
#include "weft/inference/generate/generate.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/random.h"

namespace weft {
namespace {

constexpr int64_t kStepRows = CachedGpt::kStepRows;
constexpr int64_t kLongText = 2048;

}  // namespace

// A text reads its prompt in chunks if it is long, and then one token at a time, until it ends. Whenever it fills the
// context, it may slide: it waits to be admitted again and reads its newer half like a prompt.
enum class Generator::State : uint8_t { kReadsChunks, kReadsTokens, kSlid, kEnded };

struct Generator::Text : CachedText {
  std::shared_ptr<const GenerateOptions> options;
  Sink sink;
  std::function<void(TextEnd)> ended;
  State state = State::kReadsTokens;
  TextEnd end = TextEnd::kLength;  // why it ended, if it did
  size_t shared = 0;               // number of its first pages that another text fills
  TokenCounts counts;              // of the prompt, up to a context, and the continuation; empty without penalties
  std::vector<int32_t> continuation;
  std::vector<int32_t> draft;  // guesses of its next tokens
  size_t number = 0;           // tells texts apart
  size_t prompt = 0;           // the index of the prompt, or the number
  int64_t length = 0;          // maximum number of tokens of its continuation
  bool served = true;          // false: the latest execution had no row left for it

  int64_t left() const { return length - static_cast<int64_t>(continuation.size()); }
};

Generator::Generator(const GptConfig& config, const GeneratorOptions& options, int64_t pages, int64_t page_size)
    : config_(config),
      options_(options),
      pages_(static_cast<size_t>(pages)),
      pool_(pages_, static_cast<size_t>(page_size)) {}

Generator::~Generator() = default;

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const GptConfig& config, Parameters* parameters,
                                                             const GeneratorOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  const auto [batch, beam, n_best] = std::tuple(options.runtime.batch, options.search.beam, options.search.n_best);
  if (batch < 1 || options.chunk < 1) {
    return InvalidArgument("generate: batch ", batch, " and chunk ", options.chunk, " must be at least 1");
  }
  if (beam != 0 && (beam < 0 || beam > kStepRows || n_best < 1 || n_best > beam)) {
    return InvalidArgument("generate: beam ", beam, " and n_best ", n_best,
                           "; wanted 1 <= n_best <= beam <= ", kStepRows);
  }
  constexpr int64_t kMaxPositions = 1 << 30;
  const int64_t page_size = beam > 0 ? 1 : kCachePage;
  const int64_t context = PagesOf(config.context, page_size);
  if (options.pages != 0 && (options.pages < context || options.pages > kMaxPositions / page_size)) {
    return InvalidArgument("generate: pages is ", options.pages, ", wanted ", context, " to ",
                           kMaxPositions / page_size, ", because a context of ", config.context, " tokens takes ",
                           context);
  }
  const int64_t long_texts = std::min(batch, kMaxPositions / kCachePage / kLongText);
  const int64_t usual = beam > 0
                            ? context * (1 + beam)
                            : std::max(context, long_texts * PagesOf(std::min(config.context, kLongText), page_size));
  const int64_t pages = options.pages != 0 ? options.pages : usual;
  auto generator = std::unique_ptr<Generator>(new Generator(config, options, pages, page_size));
  WEFT_ASSIGN_OR_RETURN(
      generator->gpt_,
      CachedGpt::Create(config, parameters, {.pages = pages, .page_size = page_size, .runtime = options.runtime}));
  return generator;
}

absl::Status Generator::Check(absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options) const {
  WEFT_RETURN_IF_ERROR(Annotate(Validate(options.sampling), "generate"));
  if (options.length < 0) {
    return InvalidArgument("generate: length is ", options.length, ", wanted at least 0");
  }
  WEFT_RETURN_IF_ERROR(Annotate(ValidateLogitBias(options.sampling, config_.vocabulary), "generate"));
  if (options.max_length < 0 || options.vocabulary < 0 || options.vocabulary > config_.vocabulary) {
    return InvalidArgument("generate: max_length ", options.max_length, " and vocabulary ", options.vocabulary,
                           " must be at least 0, and vocabulary at most ", config_.vocabulary);
  }
  if (options.draft < 0) return InvalidArgument("generate: draft is ", options.draft, ", wanted at least 0");
  if (options.logprobs < -1 || options.logprobs > config_.vocabulary) {
    return InvalidArgument("generate: logprobs is ", options.logprobs, ", wanted -1 to the vocabulary's ",
                           config_.vocabulary);
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const int64_t longest = options.truncate ? std::numeric_limits<int64_t>::max() : config_.context;
    WEFT_RETURN_IF_ERROR(CheckTokens(absl::StrCat("generate: prompt ", i), prompts[i], longest, config_.vocabulary));
  }
  return absl::OkStatus();
}

std::unique_ptr<Generator::Text> Generator::TextOf(absl::Span<const int32_t> prompt,
                                                   std::shared_ptr<const GenerateOptions> options) {
  auto text = std::make_unique<Text>();
  text->number = text->prompt = added_++;
  text->length = options->length;
  if (options->max_length > 0) {
    text->length = std::min(text->length, options->max_length - static_cast<int64_t>(prompt.size()));
  }
  const absl::Span<const int32_t> end = prompt.last(std::min(prompt.size(), static_cast<size_t>(config_.context)));
  text->tokens.assign(end.begin(), end.end());
  if (HasPenalties(options->sampling)) {
    for (const int32_t token : end) text->counts[token] = 0;
  }
  text->options = std::move(options);
  return text;
}

// Admits a text that has no token in the cache yet. Returns false if the cache has too few free pages.
bool Generator::Admit(Text* text) {
  const size_t page = pool_.page_size(), size = text->tokens.size();
  const int64_t length = std::min(text->left(), config_.context) + static_cast<int64_t>(size);
  const size_t longest = static_cast<size_t>(std::min(length, config_.context));
  const bool chunks = static_cast<int64_t>(size) > kStepRows && options_.chunk >= CachedGpt::kMinChunk;
  text->state = chunks ? State::kReadsChunks : State::kReadsTokens;
  // Only pages that are read in chunks are shared. The newest token is never shared, because its logits are needed.
  const size_t whole = chunks ? (size - 1) / page : 0;
  if (!pool_.Admit(text->tokens, whole, pool_.PagesOf(std::max(longest, size)), &text->table)) return false;
  text->shared = text->table.pages.size();
  text->kept = text->shared * page;
  while (text->table.pages.size() < pool_.PagesOf(size)) pool_.Add(&text->table);
  for (size_t i = text->shared; i < whole; ++i) pool_.Name(text->tokens, i, text->table);
  counts_.peak_pages = std::max(counts_.peak_pages, pool_.used());
  return true;
}

// Asks a drafter for the next tokens of texts, and stores them as the texts' drafts. A text takes part if its newest
// token is its only unread token, and if it has the drafter of the first text that takes part. If any text still reads
// its prompt in chunks, no text takes part.
absl::Status Generator::Guess() {
  std::vector<Text*> texts;
  std::vector<DraftRequest> requests;
  for (const std::unique_ptr<Text>& text : texts_) {
    text->draft.clear();
    if (text->state == State::kReadsChunks) return absl::OkStatus();
    const int64_t rows = kStepRows / static_cast<int64_t>(texts_.size());
    const int64_t room = config_.context - static_cast<int64_t>(text->tokens.size());
    const int64_t count = std::min({text->options->draft, rows - 1, text->left() - 1, room});
    if (text->unread() != 1 || count <= 0) continue;
    if (!texts.empty() && text->options->drafter != texts[0]->options->drafter) continue;
    texts.push_back(text.get());
    requests.push_back({.text = text->number, .tokens = text->tokens, .count = static_cast<size_t>(count)});
  }
  if (texts.empty()) return absl::OkStatus();
  std::vector<std::vector<int32_t>> guesses;
  if (ModelDraft* const drafter = texts[0]->options->drafter; drafter != nullptr) {
    WEFT_ASSIGN_OR_RETURN(guesses, drafter->Guess(requests));
  } else {
    for (const DraftRequest& each : requests) guesses.push_back(DraftByLookup(each.tokens, each.count));
  }
  WEFT_CHECK(guesses.size() == texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t>& draft = guesses[i];
    draft.resize(std::min(draft.size(), requests[i].count));
    const auto is_unknown = [&](int32_t token) { return token < 0 || token >= config_.vocabulary; };
    draft.erase(std::find_if(draft.begin(), draft.end(), is_unknown), draft.end());
    texts[i]->draft = std::move(draft);
  }
  return absl::OkStatus();
}

// Returns the tokens of the next execution, and counts them as kept. Its `last` has a row for the newest token of each
// text in `newest`, and after it one for each guess of the text's draft.
CachedGpt::Rows Generator::Collect(std::vector<Text*>* newest) {
  CachedGpt::Rows rows;
  const auto reads_chunks = [](const auto& text) { return text->state == State::kReadsChunks; };
  rows.chunk = std::any_of(texts_.begin(), texts_.end(), reads_chunks);
  const size_t limit = rows.chunk ? std::bit_floor(static_cast<size_t>(options_.chunk)) : kStepRows;
  const size_t ends = rows.chunk ? CachedGpt::kChunkEnds : kStepRows, page = pool_.page_size();
  for (const std::unique_ptr<Text>& text : texts_) {
    bool reads = reads_chunks(text) == rows.chunk;
    for (size_t i = 0; i < text->shared; ++i) reads = reads && pool_.filled(text->table.pages[i]) == page;
    const size_t room = newest->size() < ends ? limit - rows.tokens.size() : 0;
    const size_t begin = text->kept, end = reads ? begin + std::min(room, text->unread()) : begin;
    text->served = end > begin || !reads;
    if (end == begin) continue;
    text->draft.resize(std::min(text->draft.size(), room - (end - begin)));
    while (text->table.pages.size() < pool_.PagesOf(end + text->draft.size())) pool_.Add(&text->table);
    for (size_t i = begin; i < end; ++i) ++pool_.filled(text->table.pages[i / page]);
    if (!rows.Read(end - begin, text.get())) continue;
    text->state = State::kReadsTokens;
    for (const int32_t guess : text->draft) {
      rows.last.push_back(static_cast<int32_t>(rows.tokens.size()));
      rows.Add(guess, text->kept++, &text->table);
    }
    newest->push_back(text.get());
  }
  counts_.peak_pages = std::max(counts_.peak_pages, pool_.used());
  // Texts for which no row was left come first next time.
  std::stable_partition(texts_.begin(), texts_.end(), [](const auto& text) { return !text->served; });
  return rows;
}

// Draws the next token of a text whose tokens are all read.
void Generator::Draw(absl::Span<const float> logits, Text* text) {
  const GenerateOptions& options = *text->options;
  const SamplingOptions& sampling = options.sampling;
  const absl::Span<const float> own_logits = logits;
  std::vector<float> adjusted;
  const bool penalizes = HasPenalties(sampling);
  if (penalizes || !sampling.logit_bias.empty()) {
    adjusted.assign(logits.begin(), logits.end());
    AdjustLogits(text->counts, sampling, absl::MakeSpan(adjusted));
    logits = adjusted;
  }
  const RandomStream random = {.seed = sampling.seed, .stream = kSampleStream};
  const auto tokens = static_cast<size_t>(options.vocabulary > 0 ? options.vocabulary : config_.vocabulary);
  const int32_t token = SampleToken(logits.first(tokens), sampling, random.Uniform(text->continuation.size()));
  if (std::find(options.stop.begin(), options.stop.end(), token) != options.stop.end()) {
    text->state = State::kEnded;
    text->end = TextEnd::kStop;
    return;
  }
  text->continuation.push_back(token);
  if (penalizes) ++text->counts[token];
  GeneratedToken generated = {.prompt = text->prompt, .token = token};
  if (options.logprobs >= 0) {
    generated.logprobs = Logprobs(own_logits, token, static_cast<size_t>(options.logprobs), tokens);
  }
  const bool wanted = text->sink(generated), ends = !wanted || text->left() == 0;
  if (ends) {
    text->state = State::kEnded;
    text->end = wanted ? TextEnd::kLength : TextEnd::kSink;
  }
  const size_t context = static_cast<size_t>(config_.context);
  if (!ends && text->tokens.size() == context) {
    text->state = options.slide ? State::kSlid : State::kEnded;
    text->end = TextEnd::kContext;
    text->tokens.erase(text->tokens.begin(), text->tokens.end() - static_cast<std::ptrdiff_t>(context / 2));
    counts_.full += options.slide ? 0 : 1;
  }
  text->tokens.push_back(token);
}

// Executes the model once for the admitted texts, and draws tokens.
absl::Status Generator::Execute() {
  WEFT_RETURN_IF_ERROR(Guess());
  std::vector<Text*> newest;
  const CachedGpt::Rows rows = Collect(&newest);
  ++counts_.executions;
  WEFT_ASSIGN_OR_RETURN(const float* logits, gpt_->Run(rows));
  const size_t vocabulary = static_cast<size_t>(config_.vocabulary);
  for (Text* const text : newest) {
    const std::vector<int32_t> draft = std::exchange(text->draft, {});
    // Tokens are drawn as without a draft. If a guess is the token that is drawn, the next row has the next logits.
    size_t right = 0;
    Draw({logits, vocabulary}, text);
    while (right < draft.size() && text->state == State::kReadsTokens && text->tokens.back() == draft[right]) {
      Draw({logits + ++right * vocabulary, vocabulary}, text);
    }
    text->kept = text->tokens.size() - 1;
    logits += (draft.size() + 1) * vocabulary;
    counts_.drafted += static_cast<int64_t>(draft.size());
    counts_.accepted += static_cast<int64_t>(right);
  }
  return absl::OkStatus();
}

// Admits texts until the batch is full, or the cache has no room for the next one.
void Generator::AdmitAll() {
  while (static_cast<int64_t>(texts_.size()) < options_.runtime.batch) {
    std::deque<std::unique_ptr<Text>>& queue = slid_.empty() ? waiting_ : slid_;
    if (queue.empty() || !Admit(queue.front().get())) return;
    texts_.push_back(std::move(queue.front()));
    queue.pop_front();
  }
}

void Generator::End(std::unique_ptr<Text> text) {
  pool_.Release(&text->table);
  if (text->ended != nullptr) text->ended(text->end);
}

absl::StatusOr<bool> Generator::Step() {
  for (auto text = waiting_.begin(); text != waiting_.end();) {
    if ((*text)->length > 0) {
      ++text;
      continue;
    }
    End(std::move(*text));
    text = waiting_.erase(text);
  }
  AdmitAll();
  if (!texts_.empty()) {
    if (const absl::Status status = Execute(); !status.ok()) {
      for (const std::unique_ptr<Text>& text : texts_) pool_.Release(&text->table);
      texts_.clear();
      slid_.clear();
      waiting_.clear();
      pool_.Forget();  // pages with names may not be computed
      return status;
    }
  }
  std::deque<std::unique_ptr<Text>> stay;
  for (std::unique_ptr<Text>& text : std::exchange(texts_, {})) {
    if (text->state == State::kSlid) {
      pool_.Release(&text->table);
      slid_.push_back(std::move(text));
    } else if (text->state == State::kEnded) {
      End(std::move(text));
    } else {
      stay.push_back(std::move(text));
    }
  }
  texts_ = std::move(stay);
  return live() + waiting() > 0;
}

absl::StatusOr<size_t> Generator::Add(TextRequest request) {
  if (options_.search.beam > 0) return InvalidArgument("generate: a search takes one prompt at a time");
  WEFT_RETURN_IF_ERROR(Check({&request.prompt, 1}, request.options));
  auto text = TextOf(request.prompt, std::make_shared<GenerateOptions>(std::move(request.options)));
  text->sink = std::move(request.sink);
  text->ended = std::move(request.ended);
  waiting_.push_back(std::move(text));
  return waiting_.back()->number;
}

void Generator::Remove(size_t number) {
  for (std::deque<std::unique_ptr<Text>>* const queue : {&waiting_, &slid_, &texts_}) {
    for (auto text = queue->begin(); text != queue->end(); ++text) {
      if ((*text)->number != number) continue;
      if ((*text)->state == State::kReadsChunks) {
        (*text)->sink = [](const GeneratedToken&) { return false; };
        (*text)->ended = nullptr;
      } else {
        pool_.Release(&(*text)->table);
        queue->erase(text);
      }
      return;
    }
  }
}

absl::StatusOr<std::vector<std::vector<int32_t>>> Generator::Generate(absl::Span<const std::vector<int32_t>> prompts,
                                                                      const GenerateOptions& options, TokenSink sink) {
  WEFT_RETURN_IF_ERROR(Check(prompts, options));
  std::vector<std::vector<int32_t>> continuations(prompts.size());
  if (options.length == 0) return continuations;
  if (options_.search.beam > 0) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<Hypothesis> best, Search(prompts[i], options));
      if (best.empty()) {
        return absl::FailedPreconditionError("there is no best text: the model's probabilities are not numbers");
      }
      for (const int32_t token : best[0].tokens) {
        continuations[i].push_back(token);
        if (!sink({.prompt = i, .token = token})) break;
      }
    }
    return continuations;
  }
  if (!options_.keep && live() == 0) pool_.Forget();  // the weights may have changed
  const auto shared = std::make_shared<const GenerateOptions>(options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto text = TextOf(prompts[i], shared);
    text->prompt = i;
    text->sink = [&continuations, sink](const GeneratedToken& generated) {
      continuations[generated.prompt].push_back(generated.token);
      return sink(generated);
    };
    waiting_.push_back(std::move(text));
  }
  for (bool more = true; more;) {
    WEFT_ASSIGN_OR_RETURN(more, Step());
  }
  return continuations;
}

}  // namespace weft
