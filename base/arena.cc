#include "weft/base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace weft {

void Arena::Unmap::operator()(std::byte* block) const { munmap(block, bytes); }

// Blocks come from mmap, not from malloc. So freed blocks return to the system at once, and the advice to use huge
// pages never affects the heap.
std::byte* Arena::NewBlock(size_t bytes) {
  constexpr size_t kHugePage = size_t{1} << 21, kPage = size_t{1} << 16;  // kPage: a multiple of any page size
  if (bytes > SIZE_MAX - 2 * kHugePage) return nullptr;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  const size_t spare = bytes >= kHugePage ? kHugePage : 0;  // so that the block can begin at a huge page
  void* const all = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* block = static_cast<std::byte*>(all);
  if (spare > 0) {
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
    if (before > 0) munmap(block, before);
    block += before;
    munmap(block + bytes, spare - before);
    madvise(block, bytes, pages_ == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // failure is harmless
  }
  blocks_.emplace_back(block, Unmap{bytes});
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
    if (bytes > kBlock / 4) return NewBlock(bytes);  // so that small allocations continue in the current block
    if (!Reserve(kBlock)) return nullptr;
  }
  std::byte* result = next_;
  next_ += bytes;
  left_ -= bytes;
  return result;
}

int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace weft
