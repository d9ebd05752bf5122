#include "weft/core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace weft {

std::byte* Arena::NewBlock(size_t bytes) {
  constexpr size_t kHugePage = size_t{1} << 21;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (block == nullptr) return nullptr;
  if (bytes >= kHugePage) madvise(block, size, MADV_HUGEPAGE);  // a wish: where the system grants none, all is well
  std::memset(block, 0, bytes);
  blocks_.emplace_back(block);
  return block;
}

bool Arena::Reserve(size_t bytes) {
  if (bytes <= left_) return true;
  std::byte* block = NewBlock(bytes);
  if (block == nullptr) return false;
  next_ = block;
  left_ = bytes;
  return true;
}

std::byte* Arena::Allocate(size_t bytes) {
  constexpr size_t kBlock = size_t{1} << 20;
  bytes = AlignUp(std::max<size_t>(bytes, 1));
  if (bytes > left_) {
    if (bytes > kBlock / 4) return NewBlock(bytes);  // the rest of the block before is still good for small ones
    if (!Reserve(kBlock)) return nullptr;
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

}  // namespace weft
