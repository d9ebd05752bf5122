// These functions tell where the keys and values of a block of scores are, which sources are visible, and how masks and
// dropout change the block. ForwardSpace and BackwardSpace lay out the kernels' workspaces, with rows of whole vectors.
#ifndef WEFT_OPS_KERNELS_ATTENTION_BLOCK_H_
#define WEFT_OPS_KERNELS_ATTENTION_BLOCK_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weft/ops/kernels/attention.h"
#include "weft/ops/kernels/drop.h"
#include "weft/ops/kernels/space.h"

namespace weft {

// A block of scores, for targets t .. t + rows - 1 and sources s .. s + cols - 1.
struct AttentionBlock {
  int64_t t, rows, s, cols;
};

// The next six functions consider the band only, not the masks. Target block.t + i sees the sources of the block from
// block.s + FirstSource(...) to block.s + EndSource(...) - 1.
template <class T>
int64_t FirstSource(const AttentionHead<T>& head, const AttentionBlock& block, int64_t i) {
  return std::clamp<int64_t>(head.band.Begin(block.t + i, head.targets, head.sources) - block.s, 0, block.cols);
}
template <class T>
int64_t EndSource(const AttentionHead<T>& head, const AttentionBlock& block, int64_t i) {
  return std::clamp<int64_t>(head.band.End(block.t + i, head.targets, head.sources) - block.s, 0, block.cols);
}
// Targets block.t + FirstTarget(...) to block.t + EndTarget(...) - 1 see source block.s + j.
template <class T>
int64_t FirstTarget(const AttentionHead<T>& head, const AttentionBlock& block, int64_t j) {
  const int64_t target = block.s + j - (head.sources - head.targets);  // at the position of the source
  return std::clamp<int64_t>(target - head.band.right - block.t, 0, block.rows);
}
template <class T>
int64_t EndTarget(const AttentionHead<T>& head, const AttentionBlock& block, int64_t j) {
  const int64_t target = block.s + j - (head.sources - head.targets);
  return std::clamp<int64_t>(target + head.band.left + 1 - block.t, 0, block.rows);
}
// The targets of `block` see no source before BeginOfSources(...), which begins a block, or from EndOfSources(...) on.
template <class T>
int64_t BeginOfSources(const AttentionHead<T>& head, const AttentionBlock& block) {
  return head.band.Begin(block.t, head.targets, head.sources) / kAttentionBlock * kAttentionBlock;
}
template <class T>
int64_t EndOfSources(const AttentionHead<T>& head, const AttentionBlock& block) {
  return head.band.End(block.t + block.rows - 1, head.targets, head.sources);
}

// Reports whether one bool mask alone hides all sources of the block from all its targets.
template <class T>
bool IsHidden(const AttentionHead<T>& head, const AttentionBlock& block) {
  const auto hides_all = [&](const AttentionMask& mask) {
    if (mask.adds) return false;
    const int64_t rows = mask.target_stride == 0 ? 1 : block.rows, cols = mask.source_stride == 0 ? 1 : block.cols;
    const bool* row = static_cast<const bool*>(mask.data) + block.t * mask.target_stride + block.s * mask.source_stride;
    for (int64_t i = 0; i < rows; ++i, row += mask.target_stride) {
      if (std::memchr(row, 0, static_cast<size_t>(cols)) != nullptr) return false;
    }
    return true;
  };
  return std::any_of(head.masks.begin(), head.masks.begin() + head.mask_count, hides_all);
}

// Sets `added` to numbers to add to the scores of one source `s` and `count` targets from `t` on or, if not
// `of_targets`, of one target and `count` sources. Where a bool mask hides the source, the number is -inf. The array
// has kAttentionBlock numbers; those from `count` on become 0.
template <class T, class W>
void MaskLine(const AttentionHead<T>& head, int64_t t, int64_t s, int64_t count, bool of_targets, W* added) {
  std::fill_n(added, kAttentionBlock, W{0});
  for (const bool adds : {true, false}) {  // masks that hide come last, so that hidden sources stay hidden
    for (int m = 0; m < head.mask_count; ++m) {
      const AttentionMask& mask = head.masks[m];
      if (mask.adds != adds) continue;
      const int64_t first = t * mask.target_stride + s * mask.source_stride;
      const int64_t step = of_targets ? mask.target_stride : mask.source_stride;
      for (int64_t i = 0; i < count; ++i) {
        if (adds) {
          added[i] += static_cast<W>(static_cast<const T*>(mask.data)[first + i * step]);
        } else if (static_cast<const bool*>(mask.data)[first + i * step]) {
          added[i] = -std::numeric_limits<W>::infinity();
        }
      }
    }
  }
}

// Sets `keep` to factors for the weights of target block.t + i, one for each source of the block. The factor is 0 for a
// dropped weight, otherwise 1 / (1 - rate).
template <class T, class W>
void KeepRow(const AttentionHead<T>& head, const AttentionBlock& block, int64_t i, W* keep) {
  const AttentionDropout& dropout = head.dropout;
  const int64_t first = dropout.first + (block.t + i) * head.sources + block.s;
  std::fill_n(keep, block.cols, W{1});
  Drop(dropout.random, static_cast<uint64_t>(first), dropout.rate, keep, keep, block.cols);
}

// Returns row `s` of the keys or values `all`. `page`: elements between pages.
template <class T>
const T* RowOf(const AttentionHead<T>& head, Matrix<const T> all, int64_t page, int64_t s) {
  if (head.pages == nullptr) return all[s];
  return all[s % head.page_size] + head.pages[s / head.page_size] * page;
}

// Sets `rows` to the rows of a block of sources.
template <class T>
void FindRows(const AttentionHead<T>& head, Matrix<const T> all, int64_t page, const AttentionBlock& block,
              const T** rows) {
  const T* row = nullptr;
  for (int64_t j = 0; j < block.cols; ++j) {
    const bool begins = j == 0 || (head.pages != nullptr && (block.s + j) % head.page_size == 0);
    row = begins ? RowOf(head, all, page, block.s + j) : row + all.stride;
    rows[j] = row;
  }
}

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

#endif  // WEFT_OPS_KERNELS_ATTENTION_BLOCK_H_
