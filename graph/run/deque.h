// A Deque is a lock-free work-stealing deque. Its owner thread pushes and pops at one end; others steal at the other.
//
// It follows Chase and Lev ("Dynamic circular work-stealing deque", SPAA 2005), but without fences, which
// ThreadSanitizer does not model. Accesses to the two ends are sequentially consistent where their order matters.
#ifndef WEFT_GRAPH_RUN_DEQUE_H_
#define WEFT_GRAPH_RUN_DEQUE_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

class Deque {
 public:
  // `capacity`: initial capacity in entries, rounded up to a power of two. A full deque doubles its capacity.
  explicit Deque(size_t capacity) { Grow(static_cast<int64_t>(std::bit_ceil(capacity)), 0, 0); }

  // Only the owner may call Push and Pop. Pop takes the latest entry. It returns false if there is no entry, or if
  // another thread steals the last one first.
  void Push(uint64_t entry) {
    const int64_t end = end_.load(std::memory_order_relaxed), begin = begin_.load(std::memory_order_acquire);
    Ring* ring = ring_.load(std::memory_order_relaxed);
    if (end - begin >= ring->size) ring = Grow(2 * ring->size, begin, end);
    ring->at(end).store(entry, std::memory_order_relaxed);
    end_.store(end + 1, std::memory_order_release);
  }
  bool Pop(uint64_t* entry) {
    const int64_t end = end_.load(std::memory_order_relaxed) - 1;
    if (begin_.load(std::memory_order_relaxed) > end) return false;  // empty: thieves only increase begin_
    end_.store(end, std::memory_order_seq_cst);
    int64_t begin = begin_.load(std::memory_order_seq_cst);
    if (begin <= end) *entry = ring_.load(std::memory_order_relaxed)->at(end).load(std::memory_order_relaxed);
    if (begin < end) return true;
    // A thief may compete for the last entry.
    const bool won = begin == end && begin_.compare_exchange_strong(begin, begin + 1, std::memory_order_seq_cst);
    end_.store(end + 1, std::memory_order_relaxed);
    return won;
  }

  // Takes the oldest entry. Any thread may call Steal. It returns false if there is no entry, or if another thread
  // takes this entry first.
  bool Steal(uint64_t* entry) {
    int64_t begin = begin_.load(std::memory_order_seq_cst);
    if (begin >= end_.load(std::memory_order_seq_cst)) return false;
    *entry = ring_.load(std::memory_order_acquire)->at(begin).load(std::memory_order_relaxed);
    return begin_.compare_exchange_strong(begin, begin + 1, std::memory_order_seq_cst);
  }

 private:
  struct Ring {
    int64_t size;  // a power of two
    std::unique_ptr<std::atomic<uint64_t>[]> entries;

    std::atomic<uint64_t>& at(int64_t i) { return entries[static_cast<size_t>(i & (size - 1))]; }
  };

  // Makes a ring of `size` entries the current one, and copies the entries [begin, end) to it.
  Ring* Grow(int64_t size, int64_t begin, int64_t end) {
    rings_.push_back(
        std::make_unique<Ring>(Ring{size, std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(size))}));
    Ring* ring = rings_.back().get();
    for (int64_t i = begin; i < end; ++i) {
      ring->at(i).store(rings_[rings_.size() - 2]->at(i).load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    ring_.store(ring, std::memory_order_release);
    return ring;
  }

  alignas(64) std::atomic<int64_t> begin_{0};
  alignas(64) std::atomic<int64_t> end_{0};
  std::atomic<Ring*> ring_{nullptr};
  std::vector<std::unique_ptr<Ring>> rings_;  // old rings stay, because a thief may still read them
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_DEQUE_H_
