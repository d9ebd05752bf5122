// A Generator generates tokens with a GPT, for any number of prompts.
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, Generator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(auto texts, generator->Generate({prompt}, {.sampling = {.top_k = 10}, .length = 200}));
//
// Keys and values are cached, in pages of kCachePage tokens, which texts with the same beginning share. A text that
// ends makes room for the next at once. A long prompt is read in chunks, which several prompts share; after that, each
// execution computes one token of each text. If a text fills the context, it ends, or it slides: its older half is
// dropped and its newer half is read again. So a token of a text that slides depends on at least half a context, and
// the cost of a token does not grow.
//
// The continuation of a prompt does not depend on other prompts, nor on the batch, the pages or the threads.
//
// Search, by beam search, takes the place of sampling if GeneratorOptions ask for it:
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, Generator::Create(config, &parameters, {.search = {.beam = 5}}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<Hypothesis> best, generator->Search(prompt, {.length = 40}));
//
// A program that gets prompts one by one, such as a server, adds each when it comes:
//
//   WEFT_ASSIGN_OR_RETURN(const size_t text, generator->Add({.prompt = prompt, .sink = print}));
//   bool more = true;
//   while (more) {
//     WEFT_ASSIGN_OR_RETURN(more, generator->Step());   // a token for each text; others may be added in between
//   }
//
// A smaller GPT may guess the next tokens of texts, so that the generator checks several of them in one execution
// (Leviathan et al., "Fast inference from Transformers via speculative decoding", 2023):
//
//   WEFT_ASSIGN_OR_RETURN(auto small, ModelDraft::Create(small_config, &small_parameters, {.batch = 8}));
//   generator->Generate(prompts, {.draft = 4, .drafter = small.get()});
#ifndef WEFT_INFERENCE_GENERATE_GENERATE_H_
#define WEFT_INFERENCE_GENERATE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/runtime/beam_search.h"
#include "weft/inference/runtime/page_pool.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/models/gpt.h"

namespace weft {

// A text whose first `kept` tokens are in the cache.
struct CachedText {
  std::vector<int32_t> tokens;  // the tokens in the context, newest last
  size_t kept = 0;
  PageTable table = {};

  size_t unread() const { return tokens.size() - kept; }
};

// A CachedGpt computes the logits of a GPT for tokens of any texts. The keys and values of earlier tokens are in a
// cache of pages, which a PagePool hands out.
//
// A graph has a fixed number of rows: a power of two, or kStepRows. A chunk's graph computes 1 or kChunkEnds rows of
// logits. Executions of many rows, which read chunks of prompts, multiply packed weights, except block formats on CPUs
// with AVX-512 VNNI. Those of few rows read the weights as they are. Packed and stored weights give different bits.
class CachedGpt {
 public:
  static constexpr int64_t kStepRows = kFewRows;  // maximum number of rows for which weights are read as they are
  static constexpr int64_t kMaxChunk = 512;       // rows of the largest chunk that is of use
  static constexpr int64_t kMinChunk = 64;        // rows of the smallest chunk
  static constexpr int64_t kChunkEnds = 16;       // maximum number of rows of a chunk whose logits are computed

  struct Options {
    int64_t pages = 0;               // size of the cache, at least one context
    int64_t page_size = kCachePage;  // positions of a page, at most kCachePage
    RuntimeOptions runtime = {};     // without the batch
  };

  // The tokens of one execution.
  struct Rows {
    std::vector<int32_t> tokens, positions;
    std::vector<const PageTable*> tables;  // the pages of each token's text
    std::vector<int32_t> last;             // rows whose logits are wanted, in a chunk at most kChunkEnds
    bool chunk = false;                    // whether the rows are a chunk; otherwise there are at most kStepRows

    // Adds a token at `position` of a text whose `table` holds the positions 0 .. `position`.
    void Add(int32_t token, size_t position, const PageTable* table);
    // Adds the next unread tokens of `text`, at most `limit`, and counts them as kept. If all tokens are then read,
    // wants the logits of the last one and returns true.
    bool Read(size_t limit, CachedText* text);
  };

  // Adds missing weights and caches to `parameters`, which must outlive the result.
  static absl::StatusOr<std::unique_ptr<CachedGpt>> Create(const GptConfig& config, Parameters* parameters,
                                                           const Options& options);
  ~CachedGpt();

  // Adds the rows' tokens to the cache. Returns logits [rows.last.size(), V], valid until the next call.
  absl::StatusOr<const float*> Run(const Rows& rows);

 private:
  using Sizes = std::pair<int64_t, int64_t>;  // numbers of rows, and of rows with logits
  struct Part;

  CachedGpt(const GptConfig& config, Parameters* parameters, const Options& options);
  const GptConfig config_;
  Parameters* const parameters_;
  const Options options_;
  GraphCache<Sizes, Part> parts_;
};

struct GeneratorOptions {
  RuntimeOptions runtime = {.batch = 8};
  int64_t chunk = CachedGpt::kMaxChunk;  // maximum number of tokens of prompts that are read at once
  // Size of the cache, at least one context; 0: `batch` contexts of up to 2,048 tokens. With a beam, pages have one
  // token, and 0 means a context for the prompt and for each hypothesis.
  int64_t pages = 0;
  // Whether a text may share pages with texts of earlier calls of Generate. The weights must not change in between.
  bool keep = false;
  // With a `beam` above 0, at most CachedGpt::kStepRows, texts are the likeliest ones that beam search finds
  // (inference/runtime/beam_search.h), one prompt at a time. `n_best` and `length_penalty` are used, too, and
  // GenerateOptions have the lengths. Sampling and drafts are then not used, and a text ends with the context.
  BeamSearchOptions search = {.beam = 0};
};

class ModelDraft;

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t length = 100;       // maximum number of tokens to add
  std::vector<int32_t> stop;  // tokens that end a text; the text does not include them
  bool truncate = false;      // true: keeps the end of a prompt that exceeds the context; false: it is an error
  int64_t max_length = 0;     // maximum number of tokens of a text with its prompt; 0: no limit
  bool slide = true;          // false: a text ends with the first token for which the context has no room
  // Above 0: only tokens below this number are drawn. Tables of tokens are often padded with rows of no token. The
  // log-probabilities include these rows, as in the package transformers, but the list of the likeliest tokens does
  // not.
  int64_t vocabulary = 0;
  // At least 0: also gives the log-probability of each token and of this many likeliest tokens. They are those of the
  // model, which the sampling options do not change.
  int64_t logprobs = -1;
  // Guesses up to this many tokens of each text, which the next execution checks. It changes no token, because each is
  // drawn from the model's own logits and a guess is only kept if it is that token. It is faster where guesses are
  // often right.
  int64_t draft = 0;
  ModelDraft* drafter = nullptr;  // makes the guesses; null: DraftByLookup
};

// The next token of a continuation, or the next piece of its text.
struct GeneratedToken {
  size_t prompt = 0;      // the index of its prompt, or the number that Generator::Add returned
  int32_t token = -1;     // -1: a piece of text without a token
  std::string text = {};  // of a TextGenerator: the text that later tokens can't change any more
  size_t withheld = 0;    // of a TextGenerator: the number of characters after `text` that it does not give yet
  // With GenerateOptions::logprobs, the token's own log-probability, and then those of the likeliest tokens.
  std::vector<TokenLogprob> logprobs = {};
};
// Receives each token as soon as it is drawn. Returns whether the text continues.
using TokenSink = absl::FunctionRef<bool(const GeneratedToken&)>;

// Why a text ended: a stop token was drawn, the text has its maximum length, it fills the context, or its sink returned
// false.
enum class TextEnd : uint8_t { kStop, kLength, kContext, kSink };

// A text to continue.
struct TextRequest {
  std::vector<int32_t> prompt;
  GenerateOptions options = {};
  std::function<bool(const GeneratedToken&)> sink;
  std::function<void(TextEnd)> ended = nullptr;  // called after the last token
};

class Generator {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the generator.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const GptConfig& config, Parameters* parameters,
                                                           const GeneratorOptions& options = {});
  ~Generator();

  // Returns the tokens that follow each of `prompts`. Prompts do not influence each other's continuations. Returns
  // InvalidArgument, with the prompt's index, if a prompt has no tokens or a token outside the vocabulary. A prompt
  // that exceeds the context is also an error, unless `truncate` is set.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
      absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
      TokenSink sink = [](const GeneratedToken&) { return true; });

  // Adds a text to those that Step continues, and returns its number, which no other text has. Errors are those of
  // Generate. A text of length 0 ends in the next Step.
  absl::StatusOr<size_t> Add(TextRequest request);
  // Ends a text before its time, without a call of `ended`. Texts that have ended are ignored. A text that still reads
  // its prompt reads the rest, because others may share its pages.
  void Remove(size_t text);
  // Admits texts, as far as the batch and the pages allow, executes the model once, and draws a token for each text
  // that has read its prompt. Returns whether a text is left. After an error, no text is left.
  absl::StatusOr<bool> Step();

  // Returns the `n_best` continuations of `prompt` with the highest scores, highest first, if `search.beam` is above 0.
  // Of `options`, uses `length`, `max_length`, `vocabulary` and `stop`. Errors are those of Generate.
  absl::StatusOr<std::vector<Hypothesis>> Search(absl::Span<const int32_t> prompt, const GenerateOptions& options);

  struct Counts {
    int64_t executions = 0;             // of graphs
    int64_t drafted = 0, accepted = 0;  // guessed tokens, and those of them that were right
    int64_t full = 0;                   // texts that ended before their time because they filled the context
    size_t peak_pages = 0;              // largest number of pages that texts held at once
  };
  // Returns what happened in all calls of Generate and Step.
  const Counts& counts() const { return counts_; }
  size_t live() const { return texts_.size(); }                      // number of texts in the batch
  size_t waiting() const { return waiting_.size() + slid_.size(); }  // number of texts that wait for room in it
  size_t used_pages() const { return pool_.used(); }                 // number of pages that texts hold
  size_t pages() const { return pages_; }                            // size of the cache

 private:
  enum class State : uint8_t;
  struct Text;
  using Sink = std::function<bool(const GeneratedToken&)>;

  Generator(const GptConfig& config, const GeneratorOptions& options, int64_t pages, int64_t page_size);
  absl::Status Check(absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options) const;
  std::unique_ptr<Text> TextOf(absl::Span<const int32_t> prompt, std::shared_ptr<const GenerateOptions> options);
  bool Admit(Text* text);
  void AdmitAll();
  absl::Status Guess();
  CachedGpt::Rows Collect(std::vector<Text*>* newest);
  void Draw(absl::Span<const float> logits, Text* text);
  absl::Status Execute();
  void End(std::unique_ptr<Text> text);

  const GptConfig config_;
  const GeneratorOptions options_;
  std::unique_ptr<CachedGpt> gpt_;
  const size_t pages_;
  PagePool pool_;
  std::deque<std::unique_ptr<Text>> texts_;  // admitted texts
  // Texts that wait to be admitted: first those that slid, and then those that were never admitted.
  std::deque<std::unique_ptr<Text>> slid_, waiting_;
  size_t added_ = 0;  // number of all texts so far
  Counts counts_;
};

// Returns up to `count` tokens that followed the latest earlier occurrence of the last three tokens of `text`. If these
// did not occur, looks up the last two. Returns no tokens if these did not occur either. Such guesses, prompt look-up
// decoding (Saxena, 2023), pay off for texts that repeat names and phrases.
std::vector<int32_t> DraftByLookup(absl::Span<const int32_t> text, size_t count);

struct DraftRequest {
  size_t text = 0;                        // a number that tells texts apart
  absl::Span<const int32_t> tokens = {};  // all tokens in the generator's context, at least one
  size_t count = 0;                       // maximum number of guesses
};

// Guesses the tokens that a smaller GPT with the same tokenizer finds most likely. The smaller GPT has a cache of its
// own, so it reads each token once. There are three exceptions: a token after a wrong guess, a text that has outgrown
// the smaller GPT's context, and a text that was dropped from the cache to make room for another.
class ModelDraft {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the drafter. `options.batch`: maximum number of
  // texts whose tokens are cached, and of requests in one call.
  static absl::StatusOr<std::unique_ptr<ModelDraft>> Create(const GptConfig& config, Parameters* parameters,
                                                            const RuntimeOptions& options);

  // Returns guesses of the tokens that follow each text. Guesses of a text that is longer than the GPT's context depend
  // on at least half a context. A text with a token outside the GPT's vocabulary gets no guesses.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Guess(absl::Span<const DraftRequest> requests);

 private:
  // Its tokens are the end of the request's tokens that fits the context, and guesses.
  struct Text : CachedText {
    size_t request = 0, given = 0;  // the index of the request, and the number of tokens of it
    size_t wanted = 0;              // number of tokens that `tokens` should have
  };

  ModelDraft(const GptConfig& config, const RuntimeOptions& options, int64_t pages)
      : config_(config), options_(options), pool_(static_cast<size_t>(pages), static_cast<size_t>(kCachePage)) {}
  Text* TextOf(size_t request, absl::Span<const DraftRequest> requests);
  absl::Status Read(const std::vector<Text*>& texts);

  const GptConfig config_;
  const RuntimeOptions options_;
  std::unique_ptr<CachedGpt> gpt_;
  PagePool pool_;
  std::map<size_t, Text> texts_;  // by DraftRequest::text
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_GENERATE_H_
