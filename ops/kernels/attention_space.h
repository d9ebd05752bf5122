// These structs lay out the attention kernels' workspace: arrays of float or double, with rows of whole vectors.
#ifndef WEFT_OPS_KERNELS_ATTENTION_SPACE_H_
#define WEFT_OPS_KERNELS_ATTENTION_SPACE_H_

#include <cstddef>
#include <cstdint>

#include "weft/ops/kernels/attention.h"

namespace weft {

// Rounds a width up to a multiple of 16 elements: whole vectors of any instruction set, and whole cache lines.
constexpr int64_t PaddedWidth(int64_t width) { return (width + 15) / 16 * 16; }

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

template <class W>
struct ForwardSpace {
  int64_t key_stride, value_stride;
  W *query, *key, *value, *sums, *scores;  // for one block; the key is transposed

  ForwardSpace(SpaceTaker* space, int64_t key_width, int64_t value_width)
      : key_stride(PaddedWidth(key_width)),
        value_stride(PaddedWidth(value_width)),
        query(space->Take<W>(kAttentionBlock * key_stride)),
        key(space->Take<W>(kAttentionBlock * key_stride)),
        value(space->Take<W>(kAttentionBlock * value_stride)),
        sums(space->Take<W>(kAttentionBlock * value_stride)),
        scores(space->Take<W>(kAttentionBlock * kAttentionBlock)) {}
};

template <class W>
struct BackwardSpace {
  int64_t key_stride, value_stride;
  W *query, *dy, *key, *key_transposed, *value_transposed, *weights, *slopes, *dscores;  // for one block
  W *delta, *dquery, *dkey, *dvalue;                                                     // for all positions

  BackwardSpace(SpaceTaker* space, int64_t targets, int64_t sources, int64_t key_width, int64_t value_width)
      : key_stride(PaddedWidth(key_width)),
        value_stride(PaddedWidth(value_width)),
        query(space->Take<W>(kAttentionBlock * key_stride)),
        dy(space->Take<W>(kAttentionBlock * value_stride)),
        key(space->Take<W>(kAttentionBlock * key_stride)),
        key_transposed(space->Take<W>(kAttentionBlock * key_stride)),
        value_transposed(space->Take<W>(kAttentionBlock * value_stride)),
        weights(space->Take<W>(kAttentionBlock * kAttentionBlock)),
        slopes(space->Take<W>(kAttentionBlock * kAttentionBlock)),
        dscores(space->Take<W>(kAttentionBlock * kAttentionBlock)),
        delta(space->Take<W>(targets)),
        dquery(space->Take<W>(targets * key_stride)),
        dkey(space->Take<W>(sources * key_stride)),
        dvalue(space->Take<W>(sources * value_stride)) {}
};

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ATTENTION_SPACE_H_
