// An Arena allocates aligned memory piece by piece. All of it is freed when the arena is destroyed. ResidentBytes
// measures the memory of this process.
//
//   Arena arena;
//   std::byte* bytes = arena.Allocate(4096);  // zeroed, at a 64-byte boundary, valid as long as the arena
#ifndef WEFT_BASE_ARENA_H_
#define WEFT_BASE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

inline constexpr size_t kAlignment = 64;  // bytes: the size of a cache line and of the widest vectors
// Returns `bytes` rounded up to a multiple of kAlignment.
constexpr size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Arena {
 public:
  // For blocks of 2 MB or more, kHuge asks the system for huge pages, and kSmall forbids them. Small pages save memory
  // if a block is only partly used: the system then provides the used parts alone.
  enum class Pages { kHuge, kSmall };
  explicit Arena(Pages pages = Pages::kHuge) : pages_(pages) {}

  // Returns `bytes` zeroed bytes at a multiple of kAlignment, or null if the system gives no more memory.
  std::byte* Allocate(size_t bytes);
  // Makes the next allocations contiguous, up to `bytes` bytes in total, where each size is rounded up to kAlignment.
  // Returns false if the system gives no more memory.
  bool Reserve(size_t bytes);

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* block) const;
  };

  // Returns a new zeroed block, or null.
  std::byte* NewBlock(size_t bytes);

  Pages pages_;
  std::vector<std::unique_ptr<std::byte[], Unmap>> blocks_;
  std::byte* next_ = nullptr;  // the first free byte of the current block
  size_t left_ = 0;            // free bytes from there on
};

// Returns the number of bytes of this process that are in physical memory, or 0 if the system does not tell.
int64_t ResidentBytes();

}  // namespace weft

#endif  // WEFT_BASE_ARENA_H_
