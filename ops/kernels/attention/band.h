// A Band tells which sources a target may see, by their positions alone. Unless positions are given, the last of T
// targets is at the position of the last of S sources, so target t is at position t + S - T.
#ifndef WEFT_OPS_KERNELS_ATTENTION_BAND_H_
#define WEFT_OPS_KERNELS_ATTENTION_BAND_H_

#include <algorithm>
#include <cstdint>

namespace weft {

// A target at position p sees the sources p - left .. p + right.
struct Band {
  int64_t left, right;

  // A negative number sets no limit on its side. So Band(-1, 0) is the causal mask, and Band() hides nothing.
  constexpr explicit Band(int64_t before = -1, int64_t after = -1) : left(Limited(before)), right(Limited(after)) {}

  // A target at position p sees sources BeginAt(...) .. EndAt(...) - 1, and target t sees Begin(...) .. End(...) - 1.
  constexpr int64_t BeginAt(int64_t p, int64_t sources) const { return std::clamp<int64_t>(p - left, 0, sources); }
  constexpr int64_t EndAt(int64_t p, int64_t sources) const { return std::clamp<int64_t>(p + right + 1, 0, sources); }
  constexpr int64_t Begin(int64_t t, int64_t targets, int64_t sources) const {
    return BeginAt(t + sources - targets, sources);
  }
  constexpr int64_t End(int64_t t, int64_t targets, int64_t sources) const {
    return EndAt(t + sources - targets, sources);
  }

 private:
  static constexpr int64_t Limited(int64_t limit) {
    constexpr int64_t kFar = int64_t{1} << 60;  // farther than any position, and sums with positions don't overflow
    return limit < 0 ? kFar : std::min(limit, kFar);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ATTENTION_BAND_H_
