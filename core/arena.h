// Aligned memory that is handed out in order and freed all at once.
//
//   Arena arena;
//   std::byte* bytes = arena.Allocate(4096);  // zeroed, at a 64-byte boundary, valid as long as the arena
#ifndef WEFT_CORE_ARENA_H_
#define WEFT_CORE_ARENA_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace weft {

inline constexpr size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Arena {
 public:
  std::byte* Allocate(size_t bytes);  // null if the system has no more
  // Makes room for so many bytes in one block, so that what is allocated next stands together. False if there is none.
  bool Reserve(size_t bytes);

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* block) const;
  };

  std::byte* NewBlock(size_t bytes);  // zeroed; of huge pages, if it is large and the system has them

  std::vector<std::unique_ptr<std::byte[], Unmap>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace weft

#endif  // WEFT_CORE_ARENA_H_
