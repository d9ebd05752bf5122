// A heap has the pairs by their counts. An entry also has the words in which its pair was formed. A merge changes these
// words only, and pushes the pairs that it forms. Counts in the heap are corrected when they reach its top, so a pair
// that became rarer costs nothing until then.
//
// A pair is formed once: when a merge makes its left or its right token. No token is made twice, because equal texts
// that no token crosses are merged equally.
#include "weft/text/learn/learn_vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Pair = std::pair<int32_t, int32_t>;
using WordIndices = std::vector<uint32_t>;

struct Candidate {
  int64_t count;
  Pair pair;
  WordIndices words;  // all words in which the pair was formed, in order
};

// Reports whether `b` is merged before `a`.
bool IsAfter(const Candidate& a, const Candidate& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
}

class Learner {
 public:
  Learner(SymbolWords words, const VocabularyLimits& limits, Vocabulary* vocabulary)
      : limits_(limits), symbols_(std::move(words.symbols)), words_(std::move(words.words)), vocabulary_(*vocabulary) {
    for (uint32_t index = 0; index < words_.size(); ++index) {
      const SymbolWords::Word& word = words_[index];
      for (size_t i = word.begin; i + 1 < word.begin + word.size; ++i) Add({symbols_[i], symbols_[i + 1]}, index);
    }
    PushFormed();
  }

  std::vector<LearntMerge> Learn() {
    std::vector<LearntMerge> merges;
    while (vocabulary_.size() < limits_.vocabulary && !heap_.empty()) {
      Candidate best = Pop();
      if (const int64_t count = counts_[best.pair]; count != best.count) {
        best.count = count;
        Push(std::move(best));
        continue;
      }
      if (best.count < std::max<int64_t>(limits_.min_count, 1)) break;
      const auto [left, right] = best.pair;
      const int32_t merged =
          IdOf(absl::StrCat(vocabulary_.token(left), absl::StripPrefix(vocabulary_.token(right), limits_.prefix)));
      merges.push_back({left, right, merged});
      for (const uint32_t word : best.words) MergeIn(word, merges.back());
      PushFormed();
    }
    return merges;
  }

 private:
  int32_t IdOf(std::string token) {
    if (const auto known = vocabulary_.Find(token)) return *known;
    WEFT_CHECK(vocabulary_.Add(std::move(token)).ok());
    return vocabulary_.size() - 1;
  }

  Candidate Pop() {
    std::pop_heap(heap_.begin(), heap_.end(), IsAfter);
    Candidate best = std::move(heap_.back());
    heap_.pop_back();
    return best;
  }
  void Push(Candidate candidate) {
    heap_.push_back(std::move(candidate));
    std::push_heap(heap_.begin(), heap_.end(), IsAfter);
  }

  // Counts one more `pair` in a word.
  void Add(Pair pair, uint32_t word) {
    counts_[pair] += words_[word].count;
    WordIndices& words = formed_[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  void Remove(Pair pair, uint32_t word) { counts_[pair] -= words_[word].count; }

  void PushFormed() {
    for (auto& [pair, words] : formed_) {
      if (const int64_t count = counts_[pair]; count > 0) Push({count, pair, std::move(words)});
    }
    formed_.clear();
  }

  // Replaces the pairs of a word from its left, and moves the symbols behind them up.
  void MergeIn(uint32_t index, const LearntMerge& merge) {
    SymbolWords::Word& word = words_[index];
    int32_t* const symbols = symbols_.data() + word.begin;
    size_t written = 0;
    for (size_t read = 0; read < word.size; ++written) {
      if (read + 1 == word.size || symbols[read] != merge.left || symbols[read + 1] != merge.right) {
        symbols[written] = symbols[read++];
        continue;
      }
      if (written > 0) {
        Remove({symbols[written - 1], merge.left}, index);
        Add({symbols[written - 1], merge.merged}, index);
      }
      read += 2;
      if (read < word.size) {
        Remove({merge.right, symbols[read]}, index);
        Add({merge.merged, symbols[read]}, index);
      }
      symbols[written] = merge.merged;
    }
    word.size = written;
  }

  const VocabularyLimits& limits_;
  std::vector<int32_t> symbols_;
  std::vector<SymbolWords::Word> words_;
  Vocabulary& vocabulary_;
  absl::flat_hash_map<Pair, int64_t> counts_;
  absl::flat_hash_map<Pair, WordIndices> formed_;  // by the present merge
  std::vector<Candidate> heap_;
};

}  // namespace

std::vector<LearntMerge> LearnVocabulary(SymbolWords words, const VocabularyLimits& limits, Vocabulary* vocabulary) {
  return Learner(std::move(words), limits, vocabulary).Learn();
}

}  // namespace weft
