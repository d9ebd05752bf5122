// Learns merges with a heap of pairs by frequency. A merge changes only the words that contain its pair, so the learner
// keeps a list of these words for each pair. After a merge, the learner pushes each changed pair with its new count. A
// heap entry whose count is out of date is skipped.
#include "weft/text/learn_bpe.h"

#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/text/gpt2_words.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Pair = std::pair<int32_t, int32_t>;

class Learner {
 public:
  explicit Learner(const std::vector<CountedWord>& words) {
    for (const CountedWord& word : words) {
      Word& mine = words_.emplace_back();
      mine.count = word.count;
      for (const std::string& symbol : word.symbols) mine.symbols.push_back(IdOf(symbol));
    }
    for (size_t index = 0; index < words_.size(); ++index) {
      const Word& word = words_[index];
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) Change(index, {word.symbols[i], word.symbols[i + 1]}, 1);
    }
    PushChanged();
  }

  std::vector<TokenPair> Learn(const LearnLimits& limits) {
    std::vector<TokenPair> merges;
    while (static_cast<int64_t>(merges.size()) < limits.merges &&
           static_cast<int64_t>(symbols_.size()) < limits.symbols && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      if (pairs_[best.pair].count != best.count) continue;  // outdated: another entry has the current count
      if (best.count < limits.min_count) break;
      merges.emplace_back(*best.left, *best.right);
      Merge(best.pair, IdOf(*best.left + *best.right));
    }
    return merges;
  }

 private:
  struct Word {
    std::vector<int32_t> symbols;
    int64_t count = 0;
  };
  struct Occurrences {
    int64_t count = 0;          // in the text
    std::vector<size_t> words;  // all words that contain the pair, and some that no longer do
    bool changed = false;
  };
  struct Candidate {
    int64_t count;
    const std::string *left, *right;
    Pair pair;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return std::tie(a.count, *a.left, *a.right) < std::tie(b.count, *b.left, *b.right);
    }
  };

  int32_t IdOf(const std::string& symbol) {
    const auto [entry, added] = ids_.emplace(symbol, static_cast<int32_t>(symbols_.size()));
    if (added) symbols_.push_back(std::make_unique<std::string>(symbol));
    return entry->second;
  }

  // Counts `times` more occurrences of `pair` in a word; -1 removes one.
  void Change(size_t word, Pair pair, int64_t times) {
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += times * words_[word].count;
    if (times > 0 && (occurrences.words.empty() || occurrences.words.back() != word)) {
      occurrences.words.push_back(word);
    }
    if (!occurrences.changed) changed_.push_back(pair);
    occurrences.changed = true;
  }

  // For each pair whose count has changed, pushes a heap entry with the current count, unless that count is 0.
  void PushChanged() {
    for (const Pair& pair : changed_) {
      Occurrences& occurrences = pairs_[pair];
      occurrences.changed = false;
      if (occurrences.count > 0) {
        heap_.push({occurrences.count, symbols_[pair.first].get(), symbols_[pair.second].get(), pair});
      }
    }
    changed_.clear();
  }

  void Merge(Pair pair, int32_t merged) {
    const std::vector<size_t> affected = std::exchange(pairs_[pair].words, {});
    for (const size_t index : affected) {
      std::vector<int32_t>& symbols = words_[index].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != pair.first || symbols[i + 1] != pair.second) continue;
        const int32_t before = i > 0 ? symbols[i - 1] : -1, after = i + 2 < symbols.size() ? symbols[i + 2] : -1;
        Change(index, pair, -1);
        if (before >= 0) {
          Change(index, {before, pair.first}, -1);
          Change(index, {before, merged}, 1);
        }
        if (after >= 0) {
          Change(index, {pair.second, after}, -1);
          Change(index, {merged, after}, 1);
        }
        symbols[i] = merged;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    PushChanged();
  }

  std::vector<std::unique_ptr<std::string>> symbols_;  // by id; pointers, because heap entries refer to the strings
  absl::flat_hash_map<std::string, int32_t> ids_;
  std::vector<Word> words_;
  absl::flat_hash_map<Pair, Occurrences> pairs_;
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::vector<TokenPair> LearnMerges(const std::vector<CountedWord>& words, const LearnLimits& limits) {
  return Learner(words).Learn(limits);
}

absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const LearnByteLevelOptions& options) {
  const int64_t special = static_cast<int64_t>(options.special.size());
  if (options.vocabulary < 256 + special) {
    return InvalidArgument("a vocabulary of ", options.vocabulary, " has no room for 256 bytes and ", special,
                           " special tokens");
  }
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  absl::flat_hash_map<absl::string_view, int64_t> counts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = Gpt2WordEnd(text, begin);
    ++counts[text.substr(begin, end - begin)];
    begin = end;
  }
  BpeModel model;
  std::vector<CountedWord> words(1);  // the first word has all 256 bytes and count 0: bytes get ids 0 to 255
  for (int byte = 0; byte < 256; ++byte) {
    const std::string symbol(1, static_cast<char>(byte));
    words[0].symbols.push_back(symbol);
    WEFT_RETURN_IF_ERROR(model.vocabulary.Add(symbol));
  }
  for (const auto& [word, count] : counts) {
    words.push_back({.count = count});
    for (const char byte : word) words.back().symbols.emplace_back(1, byte);
  }
  model.merges = LearnMerges(words, {.symbols = options.vocabulary - special});
  for (const auto& [left, right] : model.merges) {
    // Different merges can give the same token.
    if (!model.vocabulary.Find(left + right)) WEFT_RETURN_IF_ERROR(model.vocabulary.Add(left + right));
  }
  for (const std::string& token : options.special) {
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(token), absl::StrCat("special token ", model.special.size())));
    model.special.push_back({token, model.vocabulary.size()});
    WEFT_RETURN_IF_ERROR(model.vocabulary.Add(token));
  }
  return model;
}

}  // namespace weft
