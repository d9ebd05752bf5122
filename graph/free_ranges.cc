#include "weft/graph/free_ranges.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace weft {
namespace {

constexpr int kMaxLooks = 64;  // at ranges, for one that is done in time

}  // namespace

size_t FreeRanges::Take(size_t bytes, double by, bool exact, size_t limit) {
  struct Choice {
    size_t range, offset;
  };
  std::optional<Choice> first;  // that is done first
  double least = std::numeric_limits<double>::infinity();
  int looks = 0;
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end() && ++looks <= kMaxLooks; ++it) {
    const auto [size, range] = *it;
    if (exact && first && size > bytes) break;
    for (const size_t offset : {range, range + size - bytes}) {  // at either end
      const double done = Done(offset, bytes);
      if (done <= by) return Use(range, offset, bytes);
      if (done >= least) continue;
      least = done;
      first = {range, offset};
    }
  }
  const bool grow_for_time = first && end_ + bytes <= limit;
  return first && !grow_for_time ? Use(first->range, first->offset, bytes) : Grow(bytes, grow_for_time);
}

// From a free range at the end on, if there is one and nobody is to wait for it.
size_t FreeRanges::Grow(size_t bytes, bool for_time) {
  size_t begin = end_;
  if (!for_time && !by_offset_.empty()) {
    const auto last = std::prev(by_offset_.end());
    if (last->first + last->second == end_) {
      begin = last->first;
      Remove(last);
    }
  }
  end_ = begin + bytes;
  return begin;
}

size_t FreeRanges::Use(size_t range, size_t offset, size_t bytes) {
  const auto it = by_offset_.find(range);
  const size_t end = range + it->second;
  Remove(it);
  if (offset > range) Insert(range, offset - range);
  if (end > offset + bytes) Insert(offset + bytes, end - offset - bytes);
  return offset;
}

void FreeRanges::Give(size_t offset, size_t bytes, double done) {
  const size_t end = offset + bytes;
  const auto after = done_.upper_bound(end);
  const double beyond = after == done_.begin() ? 0 : std::prev(after)->second;
  done_.erase(done_.lower_bound(offset), after);
  done_[offset] = done;
  done_[end] = beyond;

  const auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first == end) {
    bytes += next->second;
    Remove(next);
  }
  const auto following = by_offset_.lower_bound(offset);
  if (following != by_offset_.begin()) {
    const auto previous = std::prev(following);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      Remove(previous);
    }
  }
  Insert(offset, bytes);
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
