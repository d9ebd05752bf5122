// MergeTable applies byte-pair encoding to one word: it replaces neighbouring tokens by their merge, lowest rank first.
//
//   MergeTable merges;
//   merges.Add(l, o, {.rank = 0, .id = lo});
//   merges.Add(lo, w, {.rank = 1, .id = low});
//   std::vector<int32_t> ids = {l, o, w};
//   merges.Apply(&ids);                       // {low}
#ifndef WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_
#define WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace weft {

struct Merge {
  int32_t rank;  // the lowest rank is applied first; of equal ranks, the leftmost pair
  int32_t id;    // the token that replaces the two
};

class MergeTable {
 public:
  // Adds the merge of a pair. Returns false, and changes nothing, if the pair has a merge already.
  bool Add(int32_t left, int32_t right, Merge merge) { return merges_.emplace(Key(left, right), merge).second; }
  const Merge* Find(int32_t left, int32_t right) const {
    const auto found = merges_.find(Key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }
  // Merges neighbouring `ids` of a word, lowest rank first, until no pair has a merge. Takes O(n log n) for n ids.
  void Apply(std::vector<int32_t>* ids) const;

 private:
  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  void ApplyToLong(std::vector<int32_t>* ids) const;

  absl::flat_hash_map<uint64_t, Merge> merges_;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_
