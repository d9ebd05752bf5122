// A cell holds p(target | source) of two tokens that occur in one pair of sentences. Each round of expectation
// maximisation counts how often source tokens have which translations, by the probabilities of the round before. The
// counts of each source token, divided by their sum, are its new probabilities.
#include "weft/text/lexicon/learn_lexicon.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace weft {
namespace {

struct Cell {
  int32_t source, target;  // source 0 is no token; token i is i + 1
  double probability = 1, count = 0;
};

class Model1 {
 public:
  explicit Model1(int64_t source_vocabulary) : sums_(static_cast<size_t>(source_vocabulary) + 1) {}

  void Learn(absl::Span<const SentencePair> pairs) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (Cell& cell : cells_) cell.count = 0;
    std::vector<size_t> indices;  // in cells_, of a target token and each source token
    for (const SentencePair& pair : pairs) {
      for (const int32_t target : pair.target) {
        indices.assign(1, IndexOf(0, target));
        for (const int32_t source : pair.source) indices.push_back(IndexOf(source + 1, target));
        double sum = 0;
        for (const size_t i : indices) sum += cells_[i].probability;
        for (const size_t i : indices) {
          const double count = cells_[i].probability / sum;
          cells_[i].count += count;
          sums_[static_cast<size_t>(cells_[i].source)] += count;
        }
      }
    }
    for (Cell& cell : cells_) cell.probability = cell.count / sums_[static_cast<size_t>(cell.source)];
  }

  Lexicon Best(int64_t best) const {
    Lexicon lexicon;
    lexicon.translations.resize(sums_.size() - 1);
    for (const Cell& cell : cells_) {
      std::vector<LexiconEntry>& entries =
          cell.source == 0 ? lexicon.of_none : lexicon.translations[static_cast<size_t>(cell.source) - 1];
      entries.push_back({cell.target, static_cast<float>(cell.probability)});
    }
    Keep(best, &lexicon.of_none);
    for (std::vector<LexiconEntry>& entries : lexicon.translations) Keep(best, &entries);
    return lexicon;
  }

 private:
  size_t IndexOf(int32_t source, int32_t target) {
    const uint64_t key = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(target);
    const auto [at, is_new] = by_tokens_.try_emplace(key, cells_.size());
    if (is_new) cells_.push_back({source, target});
    return at->second;
  }

  static void Keep(int64_t best, std::vector<LexiconEntry>* entries) {
    std::sort(entries->begin(), entries->end(), [](const LexiconEntry& a, const LexiconEntry& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
    });
    entries->resize(std::min(entries->size(), static_cast<size_t>(best)));
  }

  absl::flat_hash_map<uint64_t, size_t> by_tokens_;  // indices in cells_
  std::vector<Cell> cells_;
  std::vector<double> sums_;  // by source token: the sum of its counts
};

}  // namespace

Lexicon LearnLexicon(absl::Span<const SentencePair> pairs, const LearnLexiconOptions& options) {
  Model1 model(options.source_vocabulary);
  for (int64_t round = 0; round < options.rounds; ++round) model.Learn(pairs);
  return model.Best(options.best);
}

}  // namespace weft
