// Allocate searches the free ranges in ascending order of size, and Release merges free neighbours. `by_offset_` and
// `by_size_` hold the same free ranges. `done_` covers free and used bytes alike. It stays empty until Release gets a
// time above 0.
#include "weft/graph/compile/free_ranges.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace weft {

size_t FreeRanges::Allocate(size_t bytes, double deadline, bool exact, size_t limit) {
  // An allocation examines at most 64 free ranges. These are enough to find one whose users finish by the deadline, and
  // few enough that planning time stays about linear.
  constexpr int kMaxExamined = 64;
  struct Choice {
    size_t range, offset;
  };
  std::optional<Choice> earliest;
  double earliest_done = std::numeric_limits<double>::infinity();
  int examined = 0;
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end() && ++examined <= kMaxExamined; ++it) {
    const auto [size, range] = *it;
    if (exact && earliest && size > bytes) break;
    for (const size_t offset : {range, range + size - bytes}) {  // at either end of the range
      const double done = Done(offset, bytes);
      if (done <= deadline) return Carve(range, offset, bytes);
      if (done >= earliest_done) continue;
      earliest_done = done;
      earliest = {range, offset};
    }
  }
  const bool grow_to_avoid_waiting = earliest && end_ + bytes <= limit;
  if (earliest && !grow_to_avoid_waiting) return Carve(earliest->range, earliest->offset, bytes);
  // The arena grows. If the bytes may wait, they begin in the free range at its end, if there is one.
  const size_t begin = grow_to_avoid_waiting ? end_ : RemoveBefore(end_);
  end_ = begin + bytes;
  return begin;
}

size_t FreeRanges::Carve(size_t range, size_t offset, size_t bytes) {
  const auto it = by_offset_.find(range);
  const size_t end = range + it->second;
  Remove(it);
  if (offset > range) Insert(range, offset - range);
  if (end > offset + bytes) Insert(offset + bytes, end - offset - bytes);
  return offset;
}

void FreeRanges::Release(size_t offset, size_t bytes, double done) {
  const size_t end = offset + bytes;
  if (done > 0 || !done_.empty()) {
    const auto after = done_.upper_bound(end);
    const double beyond = after == done_.begin() ? 0 : std::prev(after)->second;
    done_.erase(done_.lower_bound(offset), after);
    done_[offset] = done;
    done_[end] = beyond;
  }

  size_t free_end = end;
  if (const auto next = by_offset_.find(end); next != by_offset_.end()) {
    free_end += next->second;
    Remove(next);
  }
  const size_t free_begin = RemoveBefore(offset);
  Insert(free_begin, free_end - free_begin);
}

size_t FreeRanges::RemoveBefore(size_t end) {
  const auto after = by_offset_.lower_bound(end);
  if (after == by_offset_.begin()) return end;
  const auto [begin, bytes] = *std::prev(after);
  if (begin + bytes != end) return end;
  Remove(std::prev(after));
  return begin;
}

double FreeRanges::Done(size_t offset, size_t bytes) const {
  auto it = done_.upper_bound(offset);
  if (it != done_.begin()) --it;
  double latest = 0;
  for (; it != done_.end() && it->first < offset + bytes; ++it) latest = std::max(latest, it->second);
  return latest;
}

void FreeRanges::Insert(size_t offset, size_t bytes) {
  by_offset_[offset] = bytes;
  by_size_.insert({bytes, offset});
}

void FreeRanges::Remove(Ranges::iterator it) {
  by_size_.erase({it->second, it->first});
  by_offset_.erase(it);
}

}  // namespace weft
