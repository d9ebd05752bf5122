// The free ranges of an arena that grows, and when those that used them last are done.
#ifndef WEFT_GRAPH_FREE_RANGES_H_
#define WEFT_GRAPH_FREE_RANGES_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace weft {

class FreeRanges {
 public:
  // The offset of so many bytes: in the smallest free range whose last users are done by then; if there is none, where
  // the arena grows, as long as it stays within `limit`; else where the last users are done first. `exact`: larger
  // ranges only if none has this very size.
  size_t Take(size_t bytes, double by, bool exact, size_t limit);
  // Whoever used the range is done by `done`.
  void Give(size_t offset, size_t bytes, double done);
  // When all that ever used the range are done.
  double Done(size_t offset, size_t bytes) const;

  size_t end() const { return end_; }  // of the arena

 private:
  using Ranges = std::map<size_t, size_t>;  // by offset: bytes

  void Insert(size_t offset, size_t bytes);
  void Remove(Ranges::iterator it);
  size_t Use(size_t free_offset, size_t offset, size_t bytes);
  size_t Grow(size_t bytes, bool for_time);

  Ranges by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;
  std::map<size_t, double> done_;  // from an offset to the next one
  size_t end_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_FREE_RANGES_H_
