// These structs lay out the attention kernels' workspace: arrays of float or double, with rows of whole vectors.
#ifndef WEFT_OPS_KERNELS_ATTENTION_SPACE_H_
#define WEFT_OPS_KERNELS_ATTENTION_SPACE_H_

#include <cstdint>
#include <type_traits>

#include "weft/ops/kernels/attention.h"
#include "weft/ops/kernels/space.h"

namespace weft {

// Arrays for one block of targets or of scores. Arrays whose name ends in `_t` have a row for each feature and a column
// for each target. `scores` and `keep` have a row for each source.
template <class T, class W = Computed<T>>
struct ForwardSpace {
  static constexpr int64_t kScores = kAttentionBlock * kAttentionBlock;
  // Keys and values that are computed in their own dtype are read where they are.
  static constexpr int64_t kCopied = std::is_same_v<T, W> ? 0 : kAttentionBlock;

  int64_t key_stride, value_stride;
  W *query_t, *sums_t, *scores, *keep, *key, *value;

  ForwardSpace(SpaceTaker* space, int64_t key_width, int64_t value_width)
      : key_stride(PaddedWidth(key_width)),
        value_stride(PaddedWidth(value_width)),
        query_t(space->Take<W>(kAttentionBlock * key_stride)),
        sums_t(space->Take<W>(kAttentionBlock * value_stride)),
        scores(space->Take<W>(kScores)),
        keep(space->Take<W>(kScores)),
        key(space->Take<W>(kCopied * key_stride)),
        value(space->Take<W>(kCopied * value_stride)) {}
};

template <class T, class W = Computed<T>>
struct BackwardSpace : ForwardSpace<T> {
  W *query, *dy, *dy_t, *slopes, *dscores, *dquery_t;  // for one block
  W *dkey, *dvalue;                                    // for all sources

  BackwardSpace(SpaceTaker* space, int64_t sources, int64_t key_width, int64_t value_width)
      : ForwardSpace<T>(space, key_width, value_width),
        query(space->Take<W>(kAttentionBlock * this->key_stride)),
        dy(space->Take<W>(kAttentionBlock * this->value_stride)),
        dy_t(space->Take<W>(kAttentionBlock * this->value_stride)),
        slopes(space->Take<W>(this->kScores)),
        dscores(space->Take<W>(this->kScores)),
        dquery_t(space->Take<W>(kAttentionBlock * this->key_stride)),
        dkey(space->Take<W>(sources * this->key_stride)),
        dvalue(space->Take<W>(sources * this->value_stride)) {}
};

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ATTENTION_SPACE_H_
