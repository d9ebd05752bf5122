// Beam search over one sentence's continuations: which of them live, and which are finished.
//
// At each step the 2·beam likeliest continuations are looked at. Of the first `beam` those that end are finished, and
// others from behind take their places. A sentence is done when it has `beam` finished ones, as CTranslate2 and
// Marian do it; without a length penalty, when its likeliest has ended, because what lives can only get less likely.
//
//   BeamSearch search(options, /*most_tokens=*/50);
//   while (!search.done()) search.Extend(values, ids);   // of the likeliest next tokens of each of search.live()
//   search.Best()
#ifndef WEFT_INFERENCE_BEAM_SEARCH_H_
#define WEFT_INFERENCE_BEAM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

struct BeamSearchOptions {
  int64_t beam = 1;    // continuations that live at once; 1: greedy
  int64_t n_best = 1;  // of each sentence, at most `beam`
  // A finished text of n tokens, its end among them, has the score (log-probability) / n^length_penalty.
  double length_penalty = 1;
  int64_t min_length = 0;  // tokens before the end
  int32_t begin = 1, end = 2;
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without begin and end
  double log_probability = 0;   // with that of the end
  double score = 0;
  bool ended = false;  // by its end, and not at the longest length
};

class BeamSearch {
 public:
  struct Beam {
    std::vector<int32_t> tokens;  // those after begin
    std::vector<int32_t> path;    // at each earlier step, the place in live() of what it descends from
    double log_probability = 0;
  };

  BeamSearch(const BeamSearchOptions& options, int64_t most_tokens);

  // The continuations to be extended, at most `beam`, all of one length; none when done.
  absl::Span<const Beam> live() const { return live_; }
  bool done() const { return live_.empty(); }
  int64_t length() const { return length_; }                    // of what lives
  static int64_t Candidates(const BeamSearchOptions& options);  // of each that Extend needs, if there are so many

  // Log-probabilities and ids of the likeliest next tokens of each of live(), [live, candidates], greatest first.
  void Extend(absl::Span<const float> log_probabilities, absl::Span<const int32_t> tokens);

  // The n_best finished ones, highest score first.
  std::vector<Hypothesis> Best() const;

 private:
  void Finish(const Beam& from, int32_t token, double log_probability);

  BeamSearchOptions options_;
  int64_t most_tokens_, length_ = 0;
  std::vector<Beam> live_;
  std::vector<Hypothesis> finished_;
  bool likeliest_ended_ = false;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_BEAM_SEARCH_H_
