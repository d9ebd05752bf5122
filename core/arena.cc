#include "weft/core/arena.h"

#include <algorithm>
#include <cstring>

namespace weft {

std::byte* Arena::Allocate(size_t bytes) {
  constexpr size_t kBlock = size_t{1} << 20;
  bytes = AlignUp(std::max<size_t>(bytes, 1));
  if (bytes > left_) {
    const bool alone = bytes > kBlock / 4;  // the rest of the block before is still good for small ones
    const size_t size = alone ? bytes : kBlock;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    if (block == nullptr) return nullptr;
    std::memset(block, 0, size);
    blocks_.emplace_back(block);
    if (alone) return block;
    next_ = block;
    left_ = size;
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

}  // namespace weft
