// A SpaceTaker lays out a kernel's workspace. A Matrix describes memory whose row i begins at data + i * stride.
#ifndef WEFT_OPS_KERNELS_SPACE_H_
#define WEFT_OPS_KERNELS_SPACE_H_

#include <cstddef>
#include <cstdint>

namespace weft {

template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t stride = 0;  // elements between the rows

  T* operator[](int64_t row) const { return data + row * stride; }
};

constexpr int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
// Rounds a width up to a multiple of 16 elements: whole vectors of any instruction set, and whole cache lines.
constexpr int64_t PaddedWidth(int64_t width) { return RoundUp(width, 16); }

// Hands out pieces of the memory at `base`, one after the other. If `base` is null, only counts the bytes, in `used`.
struct SpaceTaker {
  std::byte* base = nullptr;
  size_t used = 0;

  template <class W>
  W* Take(int64_t elements) {
    constexpr size_t kLine = 64;
    W* const taken = base == nullptr ? nullptr : reinterpret_cast<W*>(base + used);
    used += (static_cast<size_t>(elements) * sizeof(W) + kLine - 1) / kLine * kLine;
    return taken;
  }
};

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_SPACE_H_
