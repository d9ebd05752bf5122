// These functions tell where the keys and values of a block of scores are, which sources are visible, and how masks and
// dropout change the block. They compute the scores of a block, and the weights that follow from them. ForwardSpace and
// BackwardSpace lay out the kernels' workspaces, with rows of whole vectors.
//
// Scores have a row for each source and a column for each target, so a vector holds one source and several targets.
// Keys and values are then read number by number, where they are, and maxima and sums over sources need no sums within
// a vector.
#if defined(WEFT_OPS_KERNELS_ATTENTION_ATTENTION_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_ATTENTION_ATTENTION_SCORES_INL_H_
#undef WEFT_OPS_KERNELS_ATTENTION_ATTENTION_SCORES_INL_H_
#else
#define WEFT_OPS_KERNELS_ATTENTION_ATTENTION_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weft/ops/kernels/attention/attention.h"
#include "weft/ops/kernels/exp-inl.h"
#include "weft/ops/kernels/product-inl.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/kernels/space.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = kAttentionBlock;

// A block of scores, for targets t .. t + rows - 1 and sources s .. s + cols - 1.
struct Block {
  int64_t t, rows, s, cols;
};

// The next six functions consider the band only, not the masks. Target block.t + i sees the sources of the block from
// block.s + FirstSource(...) to block.s + EndSource(...) - 1.
template <class T>
int64_t FirstSource(const AttentionHead<T>& head, const Block& block, int64_t i) {
  return std::clamp<int64_t>(head.band.Begin(block.t + i, head.targets, head.sources) - block.s, 0, block.cols);
}
template <class T>
int64_t EndSource(const AttentionHead<T>& head, const Block& block, int64_t i) {
  return std::clamp<int64_t>(head.band.End(block.t + i, head.targets, head.sources) - block.s, 0, block.cols);
}
// Targets block.t + FirstTarget(...) to block.t + EndTarget(...) - 1 see source block.s + j.
template <class T>
int64_t FirstTarget(const AttentionHead<T>& head, const Block& block, int64_t j) {
  const int64_t target = block.s + j - (head.sources - head.targets);  // at the position of the source
  return std::clamp<int64_t>(target - head.band.right - block.t, 0, block.rows);
}
template <class T>
int64_t EndTarget(const AttentionHead<T>& head, const Block& block, int64_t j) {
  const int64_t target = block.s + j - (head.sources - head.targets);
  return std::clamp<int64_t>(target + head.band.left + 1 - block.t, 0, block.rows);
}
// The targets of `block` see no source before BeginOfSources(...), which begins a block, or from EndOfSources(...) on.
template <class T>
int64_t BeginOfSources(const AttentionHead<T>& head, const Block& block) {
  return head.band.Begin(block.t, head.targets, head.sources) / kBlock * kBlock;
}
template <class T>
int64_t EndOfSources(const AttentionHead<T>& head, const Block& block) {
  return head.band.End(block.t + block.rows - 1, head.targets, head.sources);
}

// Reports whether one bool mask alone hides all sources of the block from all its targets.
template <class T>
bool IsHidden(const AttentionHead<T>& head, const Block& block) {
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
// has kBlock numbers; those from `count` on become 0.
template <class T, class W>
void MaskLine(const AttentionHead<T>& head, int64_t t, int64_t s, int64_t count, bool of_targets, W* added) {
  std::fill_n(added, kBlock, W{0});
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
void KeepRow(const AttentionHead<T>& head, const Block& block, int64_t i, W* keep) {
  const AttentionDropout& dropout = head.dropout;
  const int64_t first = dropout.first + (block.t + i) * head.sources + block.s;
  std::fill_n(keep, block.cols, W{1});
  Selects<W>().drop(dropout.random, static_cast<uint64_t>(first), dropout.rate, keep, keep, block.cols);
}

// Returns row `s` of the keys or values `all`. `page`: elements between pages.
template <class T>
const T* RowOf(const AttentionHead<T>& head, Matrix<const T> all, int64_t page, int64_t s) {
  if (head.pages == nullptr) return all[s];
  return all[s % head.page_size] + head.pages[s / head.page_size] * page;
}

// Sets `rows` to the rows of a block of sources.
template <class T>
void FindRows(const AttentionHead<T>& head, Matrix<const T> all, int64_t page, const Block& block, const T** rows) {
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
  static constexpr int64_t kScores = kBlock * kBlock;
  // Keys and values that are computed in their own dtype are read where they are.
  static constexpr int64_t kCopied = std::is_same_v<T, W> ? 0 : kBlock;

  int64_t key_stride, value_stride;
  W *query_t, *sums_t, *scores, *keep, *key, *value;

  ForwardSpace(SpaceTaker* space, int64_t key_width, int64_t value_width)
      : key_stride(PaddedWidth(key_width)),
        value_stride(PaddedWidth(value_width)),
        query_t(space->Take<W>(kBlock * key_stride)),
        sums_t(space->Take<W>(kBlock * value_stride)),
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
        query(space->Take<W>(kBlock * this->key_stride)),
        dy(space->Take<W>(kBlock * this->value_stride)),
        dy_t(space->Take<W>(kBlock * this->value_stride)),
        slopes(space->Take<W>(this->kScores)),
        dscores(space->Take<W>(this->kScores)),
        dquery_t(space->Take<W>(kBlock * this->key_stride)),
        dkey(space->Take<W>(sources * this->key_stride)),
        dvalue(space->Take<W>(sources * this->value_stride)) {}
};

// Returns the column of the first vector whose targets see source block.s + j. Considers only the band.
template <class T>
int64_t FirstColumn(const AttentionHead<T>& head, const Block& block, int64_t j) {
  const int64_t lanes = hn::Lanes(D<T>());
  return FirstTarget(head, block, j) / lanes * lanes;
}
// Returns n if the targets before column `end` see at most the first n sources of the block.
template <class T>
int64_t SeenSources(const AttentionHead<T>& head, const Block& block, int64_t end) {
  return EndSource(head, block, std::min(end, block.rows) - 1);
}
// Reports whether the right limit of the band hides some sources of the block from some of its targets.
template <class T>
bool IsCutAfter(const AttentionHead<T>& head, const Block& block) {
  return FirstTarget(head, block, block.cols - 1) > 0;
}

// Returns `count` rows, in the dtype that they are computed in. Copies them to `copy` unless that is their own dtype.
template <class T>
Matrix<const Computed<T>> Widened(Matrix<const T> rows, int64_t count, int64_t width, Computed<T>* copy) {
  if constexpr (std::is_same_v<T, Computed<T>>) {
    return rows;
  } else {
    CopyRows<T, Computed<T>>(rows, 0, count, width, {copy, PaddedWidth(width)});
    return {copy, PaddedWidth(width)};
  }
}

// Prefetches `count` rows into the L2 cache. The rows of a head lie too far apart for the CPU to predict them.
template <class T>
void PrefetchRows(const T* row, int64_t stride, int64_t count, int64_t width) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (const T* const end = row + count * stride; row < end; row += stride) {
    for (int64_t c = 0; c < width; c += kLine) __builtin_prefetch(row + c, /*rw=*/0, /*locality=*/2);
  }
}

// Computes products [sources, targets] = rows · columns_t for the sources of the block, in columns from FirstColumn on.
// Those before are undefined. `rows` has a row for each source, and `columns_t` a column for each target.
template <class T, class W>
void MultiplySources(const AttentionHead<T>& head, const Block& block, Matrix<const W> rows, const W* columns_t,
                     int64_t width, W* products) {
  const int64_t end = RoundUp(block.rows, hn::Lanes(D<W>()));
  const int64_t step = IsCutAfter(head, block) ? kRowsAtOnce : block.cols;
  for (int64_t j = 0; j < block.cols; j += step) {
    const int64_t first = FirstColumn(head, block, j);
    Multiply<W>({rows[j], rows.stride, 1}, {columns_t + first, kBlock}, {products + j * kBlock + first, kBlock},
                std::min(step, block.cols - j), end - first, width, false);
  }
}

// Computes sums_t [features, targets] = rowsᵀ · weights or, if `add`, adds the product. `rows` and `weights` have a row
// for each source.
template <class T, class W>
void SumOverSources(const AttentionHead<T>& head, const Block& block, Matrix<const W> rows, const W* weights,
                    int64_t width, bool add, W* sums_t) {
  const int64_t lanes = hn::Lanes(D<W>()), end = RoundUp(block.rows, lanes);
  // Two vectors of targets share their sources, because a product of one vector is less efficient.
  const int64_t step = IsCutAfter(head, block) ? 2 * lanes : end;
  for (int64_t i = 0; i < end; i += step) {
    const int64_t next = std::min(i + step, end);
    Multiply<W>({rows.data, 1, rows.stride}, {weights + i, kBlock}, {sums_t + i, kBlock}, width, next - i,
                SeenSources(head, block, next), add);
  }
}

// Replaces each x of row[begin] .. row[end - 1], which are whole vectors, by cap · tanh(x / cap). If `slopes` is not
// null, sets `slopes` to the derivatives 1 - tanh(x / cap)².
template <class W>
void CapRow(double cap, int64_t begin, int64_t end, W* row, W* slopes) {
  const D<W> d;
  const V<W> caps = hn::Set(d, static_cast<W>(cap)), one = hn::Set(d, W{1});
  for (int64_t i = begin; i < end; i += hn::Lanes(d)) {
    const V<W> tanh = Tanh<W>(hn::Div(hn::Load(d, row + i), caps));
    hn::Store(hn::Mul(caps, tanh), d, row + i);
    if (slopes != nullptr) hn::Store(hn::NegMulAdd(tanh, tanh, one), d, slopes + i);
  }
}

// Adds `added` to row[begin] .. row[end - 1], which are whole vectors. Where `added` is -inf, the result is -inf.
template <class W>
void AddMask(const W* added, int64_t begin, int64_t end, W* row) {
  const D<W> d;
  const V<W> hidden = hn::Set(d, -std::numeric_limits<W>::infinity());
  for (int64_t i = begin; i < end; i += hn::Lanes(d)) {
    const V<W> mask = hn::Load(d, added + i);
    hn::Store(hn::IfThenElse(hn::Eq(mask, hidden), hidden, hn::Add(hn::Load(d, row + i), mask)), d, row + i);
  }
}

// Computes scores [block.cols, kBlock] = keys · query_t, capped, plus masks. `query_t` includes the scale. Hidden
// scores are -inf; columns before FirstColumn are undefined. If `slopes` is not null and there is a soft cap, sets
// `slopes` to the cap's derivatives.
template <class T, class W>
void Scores(const AttentionHead<T>& head, const Block& block, const W* query_t, Matrix<const W> keys, W* scores,
            W* slopes = nullptr) {
  constexpr W kHidden = -std::numeric_limits<W>::infinity();
  MultiplySources(head, block, keys, query_t, head.key_width, scores);
  const bool is_cut_before = EndTarget(head, block, 0) < block.rows;
  if (!is_cut_before && !IsCutAfter(head, block) && head.soft_cap == 0 && head.mask_count == 0) return;
  const int64_t end = RoundUp(block.rows, hn::Lanes(D<W>()));
  const bool by_target = std::any_of(head.masks.begin(), head.masks.begin() + head.mask_count,
                                     [](const AttentionMask& mask) { return mask.target_stride != 0; });
  HWY_ALIGN W added[kBlock], by_source[kBlock];
  if (head.mask_count > 0 && !by_target) {
    MaskLine(head, block.t, block.s, block.cols, /*of_targets=*/false, by_source);
  }
  for (int64_t j = 0; j < block.cols; ++j) {
    W* const row = scores + j * kBlock;
    const int64_t begin = FirstColumn(head, block, j);
    if (head.soft_cap > 0) CapRow(head.soft_cap, begin, end, row, slopes == nullptr ? nullptr : slopes + j * kBlock);
    if (head.mask_count > 0) {
      if (by_target) {
        MaskLine(head, block.t, block.s + j, block.rows, /*of_targets=*/true, added);
      } else {
        std::fill_n(added, kBlock, by_source[j]);
      }
      AddMask(added, begin, end, row);
    }
    std::fill(row + begin, row + FirstTarget(head, block, j), kHidden);
    std::fill(row + std::max(begin, EndTarget(head, block, j)), row + block.rows, kHidden);
  }
}

// Replaces the scores x of the vector of targets from column `i` on by exp(x - shift), and hidden ones by 0. Returns
// their sums over sources.
template <class T, class W>
V<W> ExpColumns(const AttentionHead<T>& head, const Block& block, int64_t i, V<W> shift, W* scores) {
  const D<W> d;
  const int64_t seen = SeenSources(head, block, i + static_cast<int64_t>(hn::Lanes(d)));
  V<W> sum = hn::Zero(d);
  for (int64_t j = 0; j < seen; ++j) {
    W* const score = scores + j * kBlock + i;
    const V<W> e = Exp<W>(hn::Sub(hn::Load(d, score), shift));
    hn::Store(e, d, score);
    sum = hn::Add(sum, e);
  }
  for (int64_t j = seen; j < block.cols; ++j) hn::Store(hn::Zero(d), d, scores + j * kBlock + i);
  return sum;
}

// Sets `keep` [block.cols, kBlock] to the factors of dropout.
template <class T, class W>
void KeepBlock(const AttentionHead<T>& head, const Block& block, W* keep) {
  HWY_ALIGN W row[kBlock];
  for (int64_t i = 0; i < block.rows; ++i) {
    KeepRow(head, block, i, row);
    for (int64_t j = 0; j < block.cols; ++j) keep[j * kBlock + i] = row[j];
  }
}

// Multiplies the first `end` columns, whole vectors, of x [rows, kBlock] by `factors`, whose rows are `stride` elements
// apart. If `stride` is 0, all rows have the same factors.
template <class W>
void MultiplyBlock(const W* factors, int64_t stride, int64_t rows, int64_t end, W* x) {
  const D<W> d;
  for (int64_t j = 0; j < rows; ++j, factors += stride, x += kBlock) {
    for (int64_t i = 0; i < end; i += hn::Lanes(d)) {
      hn::Store(hn::Mul(hn::Load(d, x + i), hn::Load(d, factors + i)), d, x + i);
    }
  }
}

// Copies x_t, which has a row for each of `width` features, to the `count` rows of `to`. `space`: kScores numbers.
template <class T, class W>
void StoreTransposed(const W* x_t, int64_t count, int64_t width, W* space, Matrix<T> to) {
  for (int64_t c = 0; c < width; c += kBlock) {
    const int64_t features = std::min(kBlock, width - c);
    CopyTransposed<W, W>({x_t, kBlock}, c, features, count, 1, {space, kBlock});
    for (int64_t i = 0; i < count; ++i) ConvertArray(space + i * kBlock, to[i] + c, features);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
