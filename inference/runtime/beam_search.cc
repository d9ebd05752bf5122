// For each of its tokens, a hypothesis also keeps the index of the beam that the token extended. This path tells which
// pages of a cache hold the hypothesis's keys and values.
#include "weft/inference/runtime/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"

namespace weft {
namespace {

struct Candidate {
  double log_probability;
  size_t beam;  // index in live_ of the hypothesis that this candidate extends
  int32_t token;
};

// Returns how many continuations Extend ranks: enough for `beam` of them without an end token.
int64_t Ranked(const BeamSearchOptions& options) {
  return std::max<int64_t>(2, 1 + static_cast<int64_t>(options.end.size())) * options.beam;
}

}  // namespace

BeamSearch::BeamSearch(const BeamSearchOptions& options, int64_t max_tokens)
    : options_(options), max_tokens_(max_tokens) {
  if (max_tokens > 0) live_.emplace_back();
}

bool BeamSearchOptions::IsEnd(int32_t token) const { return absl::c_linear_search(end, token); }

// Each hypothesis also gives the tokens that Extend drops: excluded ones, and end tokens before `min_length`.
int64_t BeamSearch::Candidates(const BeamSearchOptions& options) {
  return Ranked(options) + static_cast<int64_t>(options.end.size() + options.excluded.size());
}

void BeamSearch::Finish(const Beam& from, int32_t token, double log_probability) {
  Hypothesis finished = {.tokens = from.tokens, .log_probability = log_probability, .ended = options_.IsEnd(token)};
  if (!finished.ended) finished.tokens.push_back(token);
  const double length = static_cast<double>(finished.tokens.size() + (finished.ended ? 1 : 0));
  finished.score = log_probability / std::pow(length, options_.length_penalty);
  finished_.push_back(std::move(finished));
}

void BeamSearch::Extend(absl::Span<const float> log_probabilities, absl::Span<const int32_t> tokens) {
  if (done()) return;
  const size_t each = tokens.size() / live_.size(), beam = static_cast<size_t>(options_.beam);
  const bool last = length_ + 1 == max_tokens_;
  const bool ends = last && options_.forced_end.has_value();
  const bool forced = ends || (length_ == 0 && options_.forced_begin.has_value());
  const int32_t only = (ends ? options_.forced_end : options_.forced_begin).value_or(0);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double before = live_[i / each].log_probability, sum = before + static_cast<double>(log_probabilities[i]);
    if (!(sum > -std::numeric_limits<double>::infinity())) continue;
    if (forced) {
      if (i % each == 0) candidates.push_back({before, i / each, only});
      continue;
    }
    const bool too_early = options_.IsEnd(tokens[i]) && length_ < options_.min_length;
    if (too_early || absl::c_linear_search(options_.excluded, tokens[i])) continue;
    candidates.push_back({sum, i / each, tokens[i]});
  }
  const size_t kept = std::min(static_cast<size_t>(Ranked(options_)), candidates.size());
  absl::c_stable_sort(candidates, [](auto& a, auto& b) { return a.log_probability > b.log_probability; });
  candidates.resize(kept);

  ++length_;
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
    const bool ends = options_.IsEnd(candidates[i].token);
    if (!ends && !last) {
      extend(candidates[i]);
      continue;
    }
    if (i == 0) most_likely_ended_ = true;
    Finish(live_[candidates[i].beam], candidates[i].token, candidates[i].log_probability);
    while (spare < kept && options_.IsEnd(candidates[spare].token)) ++spare;
    if (!last && spare < kept) extend(candidates[spare++]);
  }
  if (Enough(next)) next.clear();
  live_ = std::move(next);
}

void BeamSearch::AppendPages(size_t k, int64_t begin, absl::Span<const int32_t> of_search,
                             std::vector<int32_t>* pages) const {
  // The token at position t was read as part of hypothesis path[t], which token t extended.
  for (int64_t t = begin; t <= length_; ++t) {
    const size_t at = t < length_ ? static_cast<size_t>(live_[k].path[static_cast<size_t>(t)]) : k;
    pages->push_back(of_search[static_cast<size_t>((t - begin) * options_.beam) + at]);
  }
}

bool BeamSearch::Enough(absl::Span<const Beam> next) {
  const size_t beam = static_cast<size_t>(options_.beam);
  if (options_.stop == BeamStop::kFull || beam == 1) {
    if (options_.length_penalty != 0) return finished_.size() >= beam;
    return most_likely_ended_ && finished_.size() >= static_cast<size_t>(options_.n_best);
  }
  if (finished_.size() < beam || next.empty()) return next.empty();
  absl::c_stable_sort(finished_, [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  finished_.resize(beam);
  const bool at_most = options_.stop == BeamStop::kNever && options_.length_penalty > 0;
  const double length = static_cast<double>(at_most ? max_tokens_ : length_);
  double best = -std::numeric_limits<double>::infinity();
  for (const Beam& live : next) best = std::max(best, live.log_probability);
  return best / std::pow(length, options_.length_penalty) <= finished_.back().score;
}

std::vector<Hypothesis> BeamSearch::Best() const {
  std::vector<Hypothesis> best = finished_;
  absl::c_stable_sort(best, [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  best.resize(std::min(best.size(), static_cast<size_t>(options_.n_best)));
  return best;
}

}  // namespace weft
