// A BeamSearch searches the best outputs for one sentence: it extends the best hypotheses and collects finished ones.
//
//   BeamSearch search(options, /*max_tokens=*/50);
//   // values and ids of the most likely next tokens of each hypothesis in search.live()
//   while (!search.done()) search.Extend(values, ids);
//   search.Best()
//
// Extend ranks the 2·beam most likely continuations. Of the first `beam` of them, those that end in the end token are
// finished. The next continuations that do not end take their places. The search is done when `beam` hypotheses are
// finished, as in CTranslate2 and Marian. With length penalty 0, it is done when the most likely continuation has
// ended, because all others can only become less likely.
#ifndef WEFT_INFERENCE_BEAM_SEARCH_H_
#define WEFT_INFERENCE_BEAM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

struct BeamSearchOptions {
  int64_t beam = 1;    // maximum number of live hypotheses; 1: greedy
  int64_t n_best = 1;  // number of hypotheses to return, at most `beam`
  // The score of a finished hypothesis of n tokens, its end token included, is log_probability / n^length_penalty.
  double length_penalty = 1;
  int64_t min_length = 0;      // minimum number of tokens before the end token
  int32_t begin = 1, end = 2;  // the special tokens
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without the begin and end tokens
  double log_probability = 0;   // includes the probability of the end token
  double score = 0;
  bool ended = false;  // true: by the end token; false: at the maximum length
};

class BeamSearch {
 public:
  struct Beam {
    std::vector<int32_t> tokens;  // tokens after the begin token
    std::vector<int32_t> path;    // for each token before the last, the index of its beam in live() then
    double log_probability = 0;
  };

  BeamSearch(const BeamSearchOptions& options, int64_t max_tokens);

  // The hypotheses to extend: at most `beam`, all of one length. Empty when the search is done.
  absl::Span<const Beam> live() const { return live_; }
  bool done() const { return live_.empty(); }
  int64_t length() const { return length_; }  // number of tokens in each live hypothesis
  // Returns the number of next tokens that Extend needs for each live hypothesis, or all if the vocabulary is smaller.
  static int64_t Candidates(const BeamSearchOptions& options);

  // Extends live() by its most likely next tokens. Both arrays are [live, candidates], each row most likely first.
  void Extend(absl::Span<const float> log_probabilities, absl::Span<const int32_t> tokens);

  // Returns the `n_best` finished hypotheses, highest score first.
  std::vector<Hypothesis> Best() const;

 private:
  void Finish(const Beam& from, int32_t token, double log_probability);

  BeamSearchOptions options_;
  int64_t max_tokens_, length_ = 0;
  std::vector<Beam> live_;
  std::vector<Hypothesis> finished_;
  bool most_likely_ended_ = false;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_BEAM_SEARCH_H_
