// A BeamSearch searches the best outputs for one sentence: it extends the best hypotheses and collects finished ones.
//
//   BeamSearch search(options, /*max_tokens=*/50);
//   while (!search.done()) {
//     ...  // `values`, `ids`: log probabilities and ids of the next tokens of each hypothesis in search.live()
//     search.Extend(values, ids);
//   }
//   search.Best()
//
// Extend ranks the max(2, 1 + number of end tokens)·beam most likely continuations. If a continuation among the first
// `beam` ends in the end token, it is finished, and the next continuation without an end token takes its place. At
// `max_tokens`, the first `beam` are all finished. BeamStop says when the search is done.
#ifndef WEFT_INFERENCE_RUNTIME_BEAM_SEARCH_H_
#define WEFT_INFERENCE_RUNTIME_BEAM_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// When a search with at least two beams is done. A greedy search is done when its hypothesis is finished.
enum class BeamStop : uint8_t {
  // When `beam` hypotheses are finished, as in CTranslate2 and Marian, and in transformers with early_stopping = true.
  // With length penalty 0: when the most likely continuation has ended and `n_best` hypotheses are finished, because
  // all others can only become less likely.
  kFull,
  // When `beam` hypotheses are finished and each has a better score than the best live hypothesis would have if it
  // ended at its present length. This is early_stopping = false of transformers.
  kNoBetter,
  // The same, but with a positive length penalty the live hypothesis's score is that of its log-probability at the
  // maximum length. This is early_stopping = "never" of transformers.
  kNever,
};

struct BeamSearchOptions {
  int64_t beam = 1;    // maximum number of live hypotheses; 1: greedy
  int64_t n_best = 1;  // maximum number of hypotheses to return, at most `beam`
  // The score of a finished hypothesis of n tokens, its end token included, is log_probability / n^length_penalty.
  double length_penalty = 1;
  int64_t min_length = 0;  // minimum number of tokens before the end token
  // Of a Translator: maximum number of tokens in a translation, at most the context. 0: 50 tokens more than the source
  // has, or the context if that is less (Vaswani et al., 2017, section 6.1).
  int64_t max_length = 0;
  int32_t begin = 1;               // the token that the decoder reads first
  std::vector<int32_t> end = {2};  // any of these tokens ends a hypothesis
  // The first token of each hypothesis, and its last one if it reaches the maximum length. They have probability 1.
  std::optional<int32_t> forced_begin, forced_end;
  std::vector<int32_t> excluded;  // these tokens are never chosen; the other tokens' probabilities stay as they are
  BeamStop stop = BeamStop::kFull;

  bool IsEnd(int32_t token) const;
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without the begin token and the end token
  double log_probability = 0;   // includes the probability of the end token
  double score = 0;
  bool ended = false;  // true: by the end token; false: at the maximum length
};

class BeamSearch {
 public:
  struct Beam {
    std::vector<int32_t> tokens;  // tokens after the begin token
    std::vector<int32_t> path;    // [t]: the index in live() of the beam that token t extended
    double log_probability = 0;
  };

  BeamSearch(const BeamSearchOptions& options, int64_t max_tokens);

  // Returns the hypotheses to extend: at most `beam`, all of one length. There are none when the search is done.
  absl::Span<const Beam> live() const { return live_; }
  bool done() const { return live_.empty(); }
  // Appends the pages of one position in which a cache holds live hypothesis `k`, from position `begin` to that of the
  // newest token, which may still have to be read. `of_search` has `beam` pages for each of these positions, one for
  // each hypothesis that was live when its token was read.
  void AppendPages(size_t k, int64_t begin, absl::Span<const int32_t> of_search, std::vector<int32_t>* pages) const;
  int64_t length() const { return length_; }  // number of tokens in each live hypothesis
  // Returns the number of next tokens that Extend needs for each live hypothesis. If the vocabulary is smaller, Extend
  // needs all its tokens.
  static int64_t Candidates(const BeamSearchOptions& options);

  // Extends the live hypotheses. Both arrays are [hypotheses, candidates] and hold each hypothesis's most likely next
  // tokens, most likely first.
  void Extend(absl::Span<const float> log_probabilities, absl::Span<const int32_t> tokens);

  // Returns the finished hypotheses with the highest scores, highest first: `n_best`, or fewer if fewer are finished.
  std::vector<Hypothesis> Best() const;

 private:
  void Finish(const Beam& from, int32_t token, double log_probability);
  // Reports whether the search is done, if `next` are the hypotheses that could be extended.
  bool Enough(absl::Span<const Beam> next);

  BeamSearchOptions options_;
  int64_t max_tokens_, length_ = 0;
  std::vector<Beam> live_;
  std::vector<Hypothesis> finished_;
  bool most_likely_ended_ = false;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_RUNTIME_BEAM_SEARCH_H_
