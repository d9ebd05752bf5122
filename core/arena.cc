#include "weft/core/arena.h"

#include <algorithm>
#include <cstring>

#include "weft/core/status.h"

namespace weft {

std::byte* Arena::Allocate(size_t bytes) {
  constexpr size_t kBlock = size_t{1} << 20;
  bytes = AlignUp(std::max<size_t>(bytes, 1));
  if (bytes > left_) {
    left_ = std::max(bytes, kBlock);
    next_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, left_));
    WEFT_CHECK(next_ != nullptr);
    std::memset(next_, 0, left_);
    blocks_.emplace_back(next_);
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  allocated_ += bytes;
  return result;
}

}  // namespace weft
