// For each of its tokens, a hypothesis also keeps the index of the beam that the token extended. This path tells which
// pages of the decoder's cache hold the hypothesis's keys and values.
#include "weft/inference/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weft {
namespace {

struct Candidate {
  double log_probability;
  size_t beam;  // index in live_ of the hypothesis that this candidate extends
  int32_t token;
};

}  // namespace

BeamSearch::BeamSearch(const BeamSearchOptions& options, int64_t max_tokens)
    : options_(options), max_tokens_(max_tokens) {
  if (max_tokens > 0) live_.emplace_back();
}

// Extend ranks 2 · beam continuations. Each hypothesis gives one token more, because Extend drops an end token that
// comes before `min_length`.
int64_t BeamSearch::Candidates(const BeamSearchOptions& options) { return 2 * options.beam + 1; }

void BeamSearch::Finish(const Beam& from, int32_t token, double log_probability) {
  Hypothesis finished = {.tokens = from.tokens, .log_probability = log_probability, .ended = token == options_.end};
  if (!finished.ended) finished.tokens.push_back(token);
  const double length = static_cast<double>(finished.tokens.size() + (finished.ended ? 1 : 0));
  finished.score = log_probability / std::pow(length, options_.length_penalty);
  finished_.push_back(std::move(finished));
}

void BeamSearch::Extend(absl::Span<const float> log_probabilities, absl::Span<const int32_t> tokens) {
  if (done()) return;
  const size_t each = tokens.size() / live_.size(), beam = static_cast<size_t>(options_.beam);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double sum = live_[i / each].log_probability + static_cast<double>(log_probabilities[i]);
    const bool too_early = tokens[i] == options_.end && length_ < options_.min_length;
    if (!too_early && sum > -std::numeric_limits<double>::infinity()) candidates.push_back({sum, i / each, tokens[i]});
  }
  const size_t kept = std::min(2 * beam, candidates.size());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.log_probability > b.log_probability; });
  candidates.resize(kept);

  const bool last = ++length_ == max_tokens_;
  std::vector<Beam> next;
  const auto extend = [&](const Candidate& c) {
    Beam longer = live_[c.beam];
    longer.tokens.push_back(c.token);
    longer.path.push_back(static_cast<int32_t>(c.beam));
    longer.log_probability = c.log_probability;
    next.push_back(std::move(longer));
  };
  size_t spare = beam;
  for (size_t i = 0; i < std::min(beam, kept); ++i) {
    const bool ends = candidates[i].token == options_.end;
    if (!ends && !last) {
      extend(candidates[i]);
      continue;
    }
    if (i == 0) most_likely_ended_ = true;
    Finish(live_[candidates[i].beam], candidates[i].token, candidates[i].log_probability);
    while (spare < kept && candidates[spare].token == options_.end) ++spare;
    if (!last && spare < kept) extend(candidates[spare++]);
  }
  const size_t finished = finished_.size();
  const bool enough = options_.length_penalty == 0
                          ? most_likely_ended_ && finished >= static_cast<size_t>(options_.n_best)
                          : finished >= beam;
  if (enough) next.clear();
  live_ = std::move(next);
}

std::vector<Hypothesis> BeamSearch::Best() const {
  std::vector<Hypothesis> best = finished_;
  std::stable_sort(best.begin(), best.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  best.resize(std::min(best.size(), static_cast<size_t>(options_.n_best)));
  return best;
}

}  // namespace weft
