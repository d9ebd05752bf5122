// Each iteration of expectation maximisation distributes one count of each target token over the source tokens of its
// sentence, in proportion to p(target | source). The counts of a source token, divided by their sum, are its new
// probabilities.
#include "weft/text/lexicon/learn_lexicon.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// p(target | source) of two tokens that occur in one pair of sentences.
struct TranslationProbability {
  int32_t source, target;  // source 0 is the NULL word; token i is i + 1
  double probability = 1, count = 0;
};

class Model1 {
 public:
  explicit Model1(int64_t source_vocabulary) : sums_(static_cast<size_t>(source_vocabulary) + 1) {}

  void Iterate(absl::Span<const SentencePair> pairs) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (TranslationProbability& entry : entries_) entry.count = 0;
    std::vector<size_t> indices;  // in entries_, of a target token and each source token
    for (const SentencePair& pair : pairs) {
      for (const int32_t target : pair.target) {
        indices.assign(1, IndexOf(0, target));
        for (const int32_t source : pair.source) indices.push_back(IndexOf(source + 1, target));
        double sum = 0;
        for (const size_t i : indices) sum += entries_[i].probability;
        for (const size_t i : indices) {
          const double count = entries_[i].probability / sum;
          entries_[i].count += count;
          SumOf(entries_[i]) += count;
        }
      }
    }
    for (TranslationProbability& entry : entries_) entry.probability = entry.count / SumOf(entry);
  }

  Lexicon MostLikely(int64_t max_translations) const {
    Lexicon lexicon;
    lexicon.translations.resize(sums_.size() - 1);
    for (const TranslationProbability& entry : entries_) {
      std::vector<Translation>& translations =
          entry.source == 0 ? lexicon.null_translations : lexicon.translations[static_cast<size_t>(entry.source) - 1];
      translations.push_back({entry.target, static_cast<float>(entry.probability)});
    }
    SortAndCut(&lexicon.null_translations, max_translations);
    for (std::vector<Translation>& translations : lexicon.translations) SortAndCut(&translations, max_translations);
    return lexicon;
  }

 private:
  size_t IndexOf(int32_t source, int32_t target) {
    WEFT_CHECK(source >= 0 && static_cast<size_t>(source) < sums_.size());
    const uint64_t key = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(target);
    const auto [at, is_new] = by_tokens_.try_emplace(key, entries_.size());
    if (is_new) entries_.push_back({source, target});
    return at->second;
  }
  double& SumOf(const TranslationProbability& entry) { return sums_[static_cast<size_t>(entry.source)]; }

  absl::flat_hash_map<uint64_t, size_t> by_tokens_;  // indices in entries_
  std::vector<TranslationProbability> entries_;
  std::vector<double> sums_;  // by source token: the sum of its counts
};

}  // namespace

Lexicon LearnLexicon(absl::Span<const SentencePair> pairs, const LearnLexiconOptions& options) {
  Model1 model(options.source_vocabulary);
  for (int64_t i = 0; i < options.iterations; ++i) model.Iterate(pairs);
  return model.MostLikely(options.max_translations);
}

}  // namespace weft
