// MergeTable applies byte-pair encoding to one word: it replaces neighbouring tokens by their merge, lowest rank first.
//
//   MergeTable merges;
//   merges.Add(l, o, {.rank = 0, .id = lo});
//   merges.Add(lo, w, {.rank = 1, .id = low});
//   std::vector<int32_t> ids = {l, o, w};
//   merges.Apply(&ids);                       // {low}
#ifndef WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_
#define WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/vocabulary.h"

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

using TokenPair = std::pair<std::string, std::string>;

// Returns the table of `merges`, lowest rank first. Of the right token of a pair, the first `prefix` bytes are not in
// the merged token. Returns InvalidArgument if a merge occurs twice, or if the vocabulary lacks its left, right or
// merged token: "merge 12, 'a' 'b': 'ab' is not in the vocabulary".
absl::StatusOr<MergeTable> MergesOf(const Vocabulary& vocabulary, absl::Span<const TokenPair> merges,
                                    size_t prefix = 0);
// Returns the merges of pieces with scores: each way to cut a piece into two other pieces, the highest score first.
// `is_cut`: whether the piece with an id is ordinary text, of which there are merges.
MergeTable MergesByScore(const Vocabulary& vocabulary, absl::Span<const float> scores,
                         absl::FunctionRef<bool(int32_t id)> is_cut);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BPE_MERGES_H_
