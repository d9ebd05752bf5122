// A short word is scanned again after each merge. For a long word, a heap holds the possible merges.
#include "weft/text/tokenizers/bpe_merges.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>

#include "absl/strings/string_view.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr size_t kMaxScannedLength =
    16;  // tokens; up to this length, rescanning after each merge is faster than a heap

struct Candidate {  // a merge of the token at `position` and the token after it
  int32_t rank, position, left, right, id;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return std::tie(a.rank, a.position) > std::tie(b.rank, b.position);
  }
};

}  // namespace

void MergeTable::Apply(std::vector<int32_t>* ids) const {
  if (ids->size() > kMaxScannedLength) return ApplyToLong(ids);
  while (true) {
    const Merge* best = nullptr;
    size_t position = 0;
    for (size_t i = 0; i + 1 < ids->size(); ++i) {
      const Merge* merge = Find((*ids)[i], (*ids)[i + 1]);
      if (merge == nullptr || (best != nullptr && merge->rank >= best->rank)) continue;
      best = merge;
      position = i;
    }
    if (best == nullptr) return;
    (*ids)[position] = best->id;
    ids->erase(ids->begin() + static_cast<std::ptrdiff_t>(position) + 1);
  }
}

// Keeps the ids in a linked list and the possible merges in a heap. If one of the two ids of a merge has changed since
// the merge was pushed, the merge is skipped.
void MergeTable::ApplyToLong(std::vector<int32_t>* ids) const {
  constexpr int32_t kNone = -1;
  const int32_t size = static_cast<int32_t>(ids->size());
  std::vector<int32_t> next(ids->size()), previous(ids->size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](int32_t position) {
    if (position == kNone || next[position] == kNone) return;
    const int32_t left = (*ids)[position], right = (*ids)[next[position]];
    if (const Merge* merge = Find(left, right)) heap.push({merge->rank, position, left, right, merge->id});
  };
  for (int32_t i = 0; i < size; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1 < size ? i + 1 : kNone;
  }
  for (int32_t i = 0; i < size; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    const int32_t right = next[best.position];
    if (right == kNone || (*ids)[best.position] != best.left || (*ids)[right] != best.right) continue;
    (*ids)[best.position] = best.id;
    (*ids)[right] = kNone;
    next[best.position] = next[right];
    if (next[right] != kNone) previous[next[right]] = best.position;
    consider(previous[best.position]);
    consider(best.position);
  }
  std::erase(*ids, kNone);
}

absl::StatusOr<MergeTable> MergesOf(const Vocabulary& vocabulary, absl::Span<const TokenPair> merges, size_t prefix) {
  MergeTable table;
  int32_t rank = 0;
  for (const auto& [left, right] : merges) {
    const auto error = [&, &left = left, &right = right](const std::string& problem) {
      return InvalidArgument("merge ", rank, ", ", Quoted(left), " ", Quoted(right), ": ", problem);
    };
    int32_t ids[3];
    int count = 0;
    for (const std::string& token : {left, right, left + right.substr(std::min(prefix, right.size()))}) {
      const std::optional<int32_t> id = vocabulary.Find(token);
      if (!id.has_value()) return error(Quoted(token) + " is not in the vocabulary");
      ids[count++] = *id;
    }
    if (!table.Add(ids[0], ids[1], {.rank = rank, .id = ids[2]})) return error("it occurs twice");
    ++rank;
  }
  return table;
}

MergeTable MergesByScore(const Vocabulary& vocabulary, absl::Span<const float> scores,
                         absl::FunctionRef<bool(int32_t id)> is_cut) {
  std::vector<float> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  MergeTable table;
  for (int32_t id = 0; id < static_cast<int32_t>(scores.size()); ++id) {
    if (!is_cut(id)) continue;
    const absl::string_view text = vocabulary.token(id);
    const auto rank = std::lower_bound(sorted.begin(), sorted.end(), scores[static_cast<size_t>(id)], std::greater<>());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::optional<int32_t> left = vocabulary.Find(text.substr(0, cut)),
                                   right = vocabulary.Find(text.substr(cut));
      if (left.has_value() && right.has_value()) {
        table.Add(*left, *right, {.rank = static_cast<int32_t>(rank - sorted.begin()), .id = id});
      }
    }
  }
  return table;
}

}  // namespace weft
