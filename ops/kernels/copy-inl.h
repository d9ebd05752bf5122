// These functions copy blocks of positions into attention's workspace, converted to float or double. The header is
// included once for each instruction set, like lanes-inl.h.
#if defined(WEFT_OPS_KERNELS_COPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_COPY_INL_H_
#undef WEFT_OPS_KERNELS_COPY_INL_H_
#else
#define WEFT_OPS_KERNELS_COPY_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "weft/ops/kernels/attention.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Copies and converts n elements.
template <class From, class To>
void Convert(const From* from, int64_t n, To* to) {
  const int64_t lanes = hn::Lanes(D<From>());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreLanes<To>(LoadLanes<From>(from + i), to + i);
  for (; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Copies positions begin .. begin + count - 1 into one row each.
template <class T, class W>
void CopyRows(Positions<const T> from, int64_t begin, int64_t count, int64_t width, Matrix<W> to) {
  for (int64_t i = 0; i < count; ++i) {
    W* const out = to.data + i * to.stride;
    Convert(from[begin + i], width, out);
    std::fill(out + width, out + to.stride, W{0});
  }
}
// Copies the positions transposed, so that each feature has a row. Four positions at a time become neighbours in a row.
template <class T, class W>
void CopyTransposed(Positions<const T> from, int64_t begin, int64_t count, int64_t width, W* to) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  HWY_ALIGN W together[4 * hn::MaxLanes(D<W>())];
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const T *const row0 = from[begin + i], *const row1 = from[begin + i + 1];
    const T *const row2 = from[begin + i + 2], *const row3 = from[begin + i + 3];
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) {
      hn::StoreInterleaved4(LoadLanes<T>(row0 + c), LoadLanes<T>(row1 + c), LoadLanes<T>(row2 + c),
                            LoadLanes<T>(row3 + c), d, together);
      for (int64_t k = 0; k < lanes; ++k)
        std::memcpy(to + (c + k) * kAttentionBlock + i, together + 4 * k, 4 * sizeof(W));
    }
    for (; c < width; ++c) {
      W* const out = to + c * kAttentionBlock + i;
      out[0] = static_cast<W>(row0[c]);
      out[1] = static_cast<W>(row1[c]);
      out[2] = static_cast<W>(row2[c]);
      out[3] = static_cast<W>(row3[c]);
    }
  }
  for (; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) to[c * kAttentionBlock + i] = static_cast<W>(from[begin + i][c]);
  }
  if (count == kAttentionBlock) return;
  for (int64_t c = 0; c < width; ++c) std::fill(to + c * kAttentionBlock + count, to + (c + 1) * kAttentionBlock, W{0});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
