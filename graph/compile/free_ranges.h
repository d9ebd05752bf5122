// FreeRanges allocates byte ranges in an arena that grows. It also records when the last users of each byte finish, so
// that an allocation can prefer bytes that are free without waiting.
//
//   FreeRanges free;
//   const size_t offset = free.Allocate(4096, /*deadline=*/2e-3, /*exact=*/false, /*limit=*/0);
//   free.Release(offset, 4096, /*done=*/3e-3);
//   free.end();  // bytes of the arena
#ifndef WEFT_GRAPH_COMPILE_FREE_RANGES_H_
#define WEFT_GRAPH_COMPILE_FREE_RANGES_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace weft {

class FreeRanges {
 public:
  // Allocates `bytes` at either end of a free range and returns their offset. The first choice is the smallest range
  // where the users of these bytes finish by `deadline` (seconds). Second, the arena grows, if it then has at most
  // `limit` bytes. The third choice is the range where the users of these bytes finish first. If no free range is large
  // enough, the arena grows, even beyond `limit`. `exact`: considers only free ranges of exactly `bytes` or, if there
  // are none, only the smallest larger one.
  size_t Allocate(size_t bytes, double deadline, bool exact, size_t limit);
  // Frees a range whose users finish at `done` (seconds).
  void Release(size_t offset, size_t bytes, double done);
  // Returns the time at which all earlier users of the range have finished.
  double Done(size_t offset, size_t bytes) const;

  size_t end() const { return end_; }  // bytes of the arena

 private:
  using Ranges = std::map<size_t, size_t>;  // by offset: bytes

  void Insert(size_t offset, size_t bytes);
  void Remove(Ranges::iterator it);
  // Removes the free range that ends at `end`, and returns its offset. If there is none, returns `end`.
  size_t RemoveBefore(size_t end);
  // Takes [offset, offset + bytes) out of the free range that begins at `range`, and returns `offset`.
  size_t Carve(size_t range, size_t offset, size_t bytes);

  Ranges by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;  // (bytes, offset)
  std::map<size_t, double> done_;                // by offset: when all users of the bytes up to the next key finish
  size_t end_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_FREE_RANGES_H_
