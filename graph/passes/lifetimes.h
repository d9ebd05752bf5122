// From where to where each value of a program is live, and how many bytes are at once.
//
// Times are places in the program's order; the end of the run comes after the last. Programs of very many nodes are
// looked at in buckets of several, so that what follows costs no more for them.
#ifndef WEFT_GRAPH_PASSES_LIFETIMES_H_
#define WEFT_GRAPH_PASSES_LIFETIMES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/graph/passes/passes.h"

namespace weft {

// Values are named by their storage roots (graph/storage.h).
struct Lifetimes {
  explicit Lifetimes(const Rewrite& rewrite);

  size_t root(ValueId id) const { return static_cast<size_t>(roots[static_cast<size_t>(id)]); }

  uint32_t end = 0;            // the end of the run
  std::vector<ValueId> roots;  // by value
  std::vector<int64_t> bytes;  // by root; 0 of what has a place outside the arena
  std::vector<uint32_t> last;  // by root: its last reader
  std::vector<uint32_t>
      until;  // by root: the last time at which its bytes are its own, which ends before an op in place
  std::vector<uint32_t> written;             // by root: the write that ends this version; kNever
  std::vector<std::vector<uint32_t>> reads;  // by node: the times at which its outputs are read, rising
};

// Bytes added to or taken from a stretch of time, in buckets.
struct Change {
  uint32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

// How many bytes are live when, against a limit.
class LiveBytes {
 public:
  explicit LiveBytes(const Lifetimes& lifetimes);

  Change Added(uint32_t first, uint32_t last, int64_t bytes) const {
    return {first / stride_, last / stride_ + 1, bytes};
  }
  // Strictly between two times.
  Change Freed(uint32_t after, uint32_t before, int64_t bytes) const {
    const uint32_t begin = (after + stride_) / stride_;
    return {begin, std::max(begin, before / stride_), -bytes};
  }

  int64_t most() const { return *std::max_element(live_.begin(), live_.end()); }
  void SetLimit(int64_t bytes);
  void Apply(const std::vector<Change>& changes);
  // The sum over time of the bytes above the limit, and how much less it were with the changes.
  int64_t excess() const { return excess_; }
  int64_t Gain(const std::vector<Change>& changes);
  // In how many buckets strictly between two times there is too much.
  uint32_t TimeAbove(uint32_t after, uint32_t before) const {
    const Change gap = Freed(after, before, 0);
    return above_[gap.end] - above_[gap.begin];
  }

 private:
  uint32_t stride_ = 1;
  std::vector<int64_t> live_;    // by bucket
  std::vector<uint32_t> above_;  // by bucket: how many before it are above the limit
  int64_t limit_ = 0, excess_ = 0;
  std::vector<std::pair<uint32_t, int64_t>> steps_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_LIFETIMES_H_
