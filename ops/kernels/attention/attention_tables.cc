// The forward kernel walks the blocks of targets and, for each of them, the blocks of sources. It skips hidden blocks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/core/dtype.h"
#include "weft/ops/kernels/attention/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/attention/attention_tables.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/attention/attention_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// x *= factor, in whole vectors.
template <class W>
HWY_INLINE void ScaleRow(W factor, int64_t n, W* x) {
  const D<W> d;
  const V<W> factors = hn::Set(d, factor);
  for (int64_t i = 0; i < n; i += hn::Lanes(d)) hn::Store(hn::Mul(hn::Load(d, x + i), factors), d, x + i);
}

// Returns the sum of the products of `n` numbers of a and b.
template <class T, class W, class A>
HWY_INLINE W Dot(const A* a, const T* b, int64_t n) {
  V<W> sums = hn::Zero(D<W>());
  ForEachVector<T>(
      n, [&](const auto& access, int64_t i) { sums = hn::MulAdd(access.Load(a + i), access.Load(b + i), sums); });
  return hn::GetLane(hn::SumOfLanes(D<W>(), sums));
}

// Adds the first `count` of `values`, which have `width` columns, each times its weight, to `sums`. Unless `add`,
// overwrites `sums`.
template <class T, class W>
void AddValues(const T* const* values, int64_t width, const W* weights, int64_t count, bool add, W* sums) {
  const D<W> d;
  ForEachVector<T>(width, [&](const auto& access, int64_t k) {
    V<W> even = add ? hn::LoadU(d, sums + k) : hn::Zero(d), odd = hn::Zero(d);
    int64_t j = 0;
    for (; j + 2 <= count; j += 2) {
      even = hn::MulAdd(hn::Set(d, weights[j]), access.Load(values[j] + k), even);
      odd = hn::MulAdd(hn::Set(d, weights[j + 1]), access.Load(values[j + 1] + k), odd);
    }
    if (j < count) even = hn::MulAdd(hn::Set(d, weights[j]), access.Load(values[j] + k), even);
    hn::StoreU(hn::Add(even, odd), d, sums + k);
  });
}

// Replaces the first `count` numbers x of `row`, rounded up to whole vectors, by exp(x - shift). Returns their sum.
template <class W>
W ExpRow(W shift, int64_t count, W* row) {
  const D<W> d;
  V<W> sum = hn::Zero(d);
  for (int64_t j = 0; j < count; j += hn::Lanes(d)) {
    const V<W> e = Exp<W>(hn::Sub(hn::Load(d, row + j), hn::Set(d, shift)));
    hn::Store(e, d, row + j);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class W>
W MaxOfRow(const W* row, int64_t count) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> largest = hn::Load(d, row);
  for (int64_t j = lanes; j < count; j += lanes) largest = hn::Max(largest, hn::Load(d, row + j));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Computes target `t`, and reads keys and values where they are.
template <class T, class W>
void ForwardOne(const AttentionHead<T>& head, int64_t t, Matrix<T> y, Matrix<W> lse, const ForwardSpace<T>& at) {
  constexpr W kInfinity = std::numeric_limits<W>::infinity();
  W *const query = at.query_t, *const sums = at.sums_t, *const scores = at.scores;
  HWY_ALIGN W line[kBlock];
  CopyRows<T, W>(head.query, t, 1, head.key_width, {query, at.key_stride});
  W max = -kInfinity, total = 0;
  bool first = true;
  const Block target = {.t = t, .rows = 1};
  for (int64_t s = BeginOfSources(head, target); s < EndOfSources(head, target); s += kBlock) {
    const Block block = {t, 1, s, std::min(kBlock, head.sources - s)};
    if (IsHidden(head, block)) continue;
    const T *keys[kBlock], *values[kBlock];
    FindRows(head, head.key, head.key_page, block, keys);
    FindRows(head, head.value, head.value_page, block, values);
    const int64_t begin = FirstSource(head, block, 0), seen = EndSource(head, block, 0);
    const int64_t end = RoundUp(seen, hn::Lanes(D<W>()));
    for (int64_t j = begin; j < seen; ++j) scores[j] = Dot<T, W>(query, keys[j], head.key_width);
    ScaleRow(static_cast<W>(head.scale), end, scores);
    if (head.soft_cap > 0) CapRow<W>(head.soft_cap, 0, end, scores, nullptr);
    if (head.mask_count > 0) {
      MaskLine(head, t, s, block.cols, /*of_targets=*/false, line);
      AddMask(line, 0, end, scores);
    }
    std::fill(scores, scores + begin, -kInfinity);
    std::fill(scores + seen, scores + end, -kInfinity);
    const W larger = std::max(max, MaxOfRow(scores, end)), shift = larger == -kInfinity ? 0 : larger;
    const W sum = ExpRow(shift, end, scores);
    const W correction = first ? 0 : std::exp(max - shift);
    max = larger;
    total = total * correction + sum;
    if (!first && correction != 1) ScaleRow(correction, at.value_stride, sums);
    if (head.dropout.rate > 0) {
      KeepRow(head, block, 0, line);
      for (int64_t j = begin; j < seen; ++j) scores[j] *= line[j];
    }
    AddValues<T, W>(values + begin, head.value_width, scores + begin, seen - begin, !first, sums);
    first = false;
  }
  const bool any = !first && total != 0;
  *lse[t] = any ? max + std::log(total) : -kInfinity;
  if (!any) return static_cast<void>(std::fill_n(y[t], head.value_width, T{}));
  ScaleRow(1 / total, at.value_stride, sums);
  ConvertArray(sums, y[t], head.value_width);
}

// Holds the largest score and the sum of exponentials of each target of a block.
template <class W>
struct RunningSums {
  HWY_ALIGN W max[kBlock], total[kBlock], correction[kBlock];
};

// Replaces scores by exponentials, and updates the running sums. Returns whether a maximum has grown, so that earlier
// sums must be multiplied by `correction`.
template <class T, class W>
bool ExpOfBlock(const AttentionHead<T>& head, const Block& block, W* scores, RunningSums<W>* sums) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  const V<W> lowest = hn::Set(d, -std::numeric_limits<W>::infinity());
  bool grown = false;
  for (int64_t i = 0; i < block.rows; i += lanes) {
    const int64_t seen = SeenSources(head, block, i + lanes);
    const V<W> before = hn::Load(d, sums->max + i);
    V<W> even = before, odd = before;
    int64_t j = 0;
    for (; j + 2 <= seen; j += 2) {
      even = hn::Max(even, hn::Load(d, scores + j * kBlock + i));
      odd = hn::Max(odd, hn::Load(d, scores + (j + 1) * kBlock + i));
    }
    if (j < seen) even = hn::Max(even, hn::Load(d, scores + j * kBlock + i));
    const V<W> max = hn::Max(even, odd), shift = hn::IfThenElse(hn::Eq(max, lowest), hn::Zero(d), max);
    const V<W> correction = Exp<W>(hn::Sub(before, shift));
    const V<W> sum = ExpColumns<T, W>(head, block, i, shift, scores);
    hn::Store(max, d, sums->max + i);
    hn::Store(hn::MulAdd(hn::Load(d, sums->total + i), correction, sum), d, sums->total + i);
    hn::Store(correction, d, sums->correction + i);
    grown = grown || !hn::AllTrue(d, hn::Eq(correction, hn::Set(d, W{1})));
  }
  return grown;
}

// Computes targets block.t .. block.t + block.rows - 1.
template <class T, class W>
void ForwardBlock(const AttentionHead<T>& head, Block block, Matrix<T> y, Matrix<W> lse, const ForwardSpace<T>& at) {
  constexpr W kInfinity = std::numeric_limits<W>::infinity();
  const int64_t end = RoundUp(block.rows, hn::Lanes(D<W>()));
  RunningSums<W> sums = {};
  std::fill_n(sums.max, end, -kInfinity);
  CopyTransposed<T, W>(head.query, block.t, block.rows, head.key_width, static_cast<W>(head.scale),
                       {at.query_t, kBlock});
  bool first = true;
  for (block.s = BeginOfSources(head, block); block.s < EndOfSources(head, block); block.s += kBlock) {
    block.cols = std::min(kBlock, head.sources - block.s);
    if (IsHidden(head, block)) continue;
    const auto rows_of = [&](Matrix<const T> all, int64_t page, int64_t width, W* copy) {
      return Widened<T>({RowOf(head, all, page, block.s), all.stride}, block.cols, width, copy);
    };
    PrefetchRows(RowOf(head, head.value, head.value_page, block.s), head.value.stride, block.cols, head.value_width);
    Scores<T, W>(head, block, at.query_t, rows_of(head.key, head.key_page, head.key_width, at.key), at.scores);
    const bool grown = ExpOfBlock(head, block, at.scores, &sums);
    if (!first && grown) MultiplyBlock<W>(sums.correction, 0, head.value_width, end, at.sums_t);
    if (head.dropout.rate > 0) {
      KeepBlock(head, block, at.keep);
      MultiplyBlock(at.keep, kBlock, block.cols, end, at.scores);
    }
    if (const int64_t next = block.s + block.cols, left = EndOfSources(head, block) - next; left > 0) {
      const T* const key = RowOf(head, head.key, head.key_page, next);
      PrefetchRows(key, head.key.stride, std::min(kBlock, left), head.key_width);
    }
    SumOverSources<T, W>(head, block, rows_of(head.value, head.value_page, head.value_width, at.value), at.scores,
                         head.value_width, !first, at.sums_t);
    first = false;
  }
  HWY_ALIGN W inverse[kBlock] = {};
  const auto sees_none = [&](int64_t i) { return first || sums.total[i] == 0; };
  for (int64_t i = 0; i < block.rows; ++i) {
    *lse[block.t + i] = sees_none(i) ? -kInfinity : sums.max[i] + std::log(sums.total[i]);
    inverse[i] = 1 / sums.total[i];
  }
  if (!first) {
    MultiplyBlock<W>(inverse, 0, head.value_width, end, at.sums_t);
    StoreTransposed<T, W>(at.sums_t, block.rows, head.value_width, at.scores, {y[block.t], y.stride});
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    if (sees_none(i)) std::fill_n(y[block.t + i], head.value_width, T{});
  }
}

template <class T>
void Forward(const AttentionHead<T>& head, int64_t begin, int64_t end, Matrix<T> y, Matrix<Computed<T>> lse,
             std::byte* workspace) {
  SpaceTaker space = {workspace};
  const ForwardSpace<T> at(&space, head.key_width, head.value_width);
  const int64_t step = head.one_by_one ? 1 : kBlock;
  for (int64_t t = begin; t < end; t += step) {
    if (head.one_by_one) {
      ForwardOne(head, t, y, lse, at);
    } else {
      ForwardBlock(head, {.t = t, .rows = std::min(kBlock, end - t)}, y, lse, at);
    }
  }
}

// The functions from here on compute the gradient of one head.

// Numbers for each target of a block. `lse` is +inf, not -inf, if the target sees no source: all its weights are then
// exp(score - inf) = 0. `delta` is Σ dy · y - dlse.
template <class W>
struct TargetShifts {
  HWY_ALIGN W lse[kBlock], delta[kBlock];
};

// On entry, `dscores` holds dy vᵀ, the gradients by the weights after dropout. Replaces them by the gradients by q kᵀ,
// which include scale and soft cap.
template <class T, class W>
void ScoreGradients(const AttentionHead<T>& head, const Block& block, const W* delta, const W* slopes, const W* weights,
                    W* dscores) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d), end = RoundUp(block.rows, lanes);
  const V<W> scale = hn::Set(d, static_cast<W>(head.scale));
  for (int64_t j = 0; j < block.cols; ++j) {
    const int64_t row = j * kBlock, begin = FirstColumn(head, block, j);
    std::fill_n(dscores + row, begin, W{0});
    for (int64_t i = begin; i < end; i += lanes) {
      const V<W> weight = hn::Load(d, weights + row + i), shift = hn::Load(d, delta + i);
      // Where a weight is 0, the gradient is 0. If a value is infinite, the product would be 0 · inf, which is NaN.
      V<W> ds = hn::Mul(hn::Mul(weight, hn::Sub(hn::Load(d, dscores + row + i), shift)), scale);
      if (head.soft_cap > 0) ds = hn::Mul(ds, hn::Load(d, slopes + row + i));
      hn::Store(hn::IfThenElse(hn::Eq(weight, hn::Zero(d)), hn::Zero(d), ds), d, dscores + row + i);
    }
  }
}

// Adds to sums [sources, features] the product weights · rows. `weights` has a row for each source, and `rows` a row
// of `width` features for each target.
template <class T, class W>
void SumOverTargets(const AttentionHead<T>& head, const Block& block, const W* weights, Matrix<const W> rows,
                    int64_t width, Matrix<W> sums) {
  const int64_t cols = RoundUp(width, hn::Lanes(D<W>()));
  const int64_t step = IsCutAfter(head, block) ? kRowsAtOnce : block.cols;
  for (int64_t j = 0; j < block.cols; j += step) {
    const int64_t first = FirstTarget(head, block, j);
    Multiply<W>({weights + j * kBlock + first, kBlock, 1}, {rows[first], rows.stride}, {sums[block.s + j], sums.stride},
                std::min(step, block.cols - j), cols, block.rows - first, true);
  }
}

// Adds the block's part to the gradients by keys and values, and by the block's queries. Unless `add`, overwrites the
// latter.
template <class T, class W>
void GradientOfBlock(const AttentionHead<T>& head, const Block& block, const TargetShifts<W>& shifts, bool add,
                     const BackwardSpace<T>& at) {
  const int64_t lanes = hn::Lanes(D<W>()), end = RoundUp(block.rows, lanes);
  const auto rows_of = [&](Matrix<const T> all, int64_t width, W* copy) {
    return Widened<T>({all[block.s], all.stride}, block.cols, width, copy);
  };
  PrefetchRows(head.value[block.s], head.value.stride, block.cols, head.value_width);
  const Matrix<const W> keys = rows_of(head.key, head.key_width, at.key);
  const Matrix<const W> values = rows_of(head.value, head.value_width, at.value);
  Scores<T, W>(head, block, at.query_t, keys, at.scores, at.slopes);
  W* const weights = at.scores;
  for (int64_t i = 0; i < end; i += lanes) {
    ExpColumns<T, W>(head, block, i, hn::Load(D<W>(), shifts.lse + i), weights);
  }
  MultiplySources(head, block, values, at.dy_t, head.value_width, at.dscores);
  if (head.dropout.rate > 0) {
    KeepBlock(head, block, at.keep);
    MultiplyBlock(at.keep, kBlock, block.cols, end, at.dscores);
  }
  ScoreGradients(head, block, shifts.delta, at.slopes, weights, at.dscores);
  if (head.dropout.rate > 0) MultiplyBlock(at.keep, kBlock, block.cols, end, weights);
  SumOverSources<T, W>(head, block, keys, at.dscores, head.key_width, add, at.dquery_t);
  const int64_t next = block.s + block.cols;
  PrefetchRows(head.key[next], head.key.stride, std::min(kBlock, EndOfSources(head, block) - next), head.key_width);
  SumOverTargets<T, W>(head, block, weights, {at.dy, at.value_stride}, head.value_width, {at.dvalue, at.value_stride});
  SumOverTargets<T, W>(head, block, at.dscores, {at.query, at.key_stride}, head.key_width, {at.dkey, at.key_stride});
}

template <class T>
void Backward(const AttentionHead<T>& head, const AttentionGradient<T>& gradient, HeadOrder order, Matrix<T> dkey,
              Matrix<T> dvalue, std::byte* workspace) {
  using W = Computed<T>;
  constexpr W kInfinity = std::numeric_limits<W>::infinity();
  SpaceTaker space = {workspace};
  const int64_t targets = head.targets, sources = head.sources;
  const BackwardSpace<T> at(&space, sources, head.key_width, head.value_width);
  if (order.first) {
    std::fill_n(at.dkey, sources * at.key_stride, W{0});
    std::fill_n(at.dvalue, sources * at.value_stride, W{0});
  }
  for (int64_t t = 0; t < targets; t += kBlock) {
    Block block = {.t = t, .rows = std::min(kBlock, targets - t)};
    TargetShifts<W> shifts = {};
    for (int64_t i = 0; i < block.rows; ++i) {
      shifts.lse[i] = *gradient.lse[t + i] == -kInfinity ? kInfinity : *gradient.lse[t + i];
      shifts.delta[i] = Dot<T, W>(gradient.dy[t + i], gradient.y[t + i], head.value_width);
      if (gradient.dlse.data != nullptr) shifts.delta[i] -= *gradient.dlse[t + i];
    }
    CopyRows<T, W>(head.query, t, block.rows, head.key_width, {at.query, at.key_stride});
    CopyRows<T, W>(gradient.dy, t, block.rows, head.value_width, {at.dy, at.value_stride});
    CopyTransposed<T, W>(head.query, t, block.rows, head.key_width, static_cast<W>(head.scale), {at.query_t, kBlock});
    CopyTransposed<T, W>(gradient.dy, t, block.rows, head.value_width, 1, {at.dy_t, kBlock});
    bool add = false;
    for (block.s = BeginOfSources(head, block); block.s < EndOfSources(head, block); block.s += kBlock) {
      block.cols = std::min(kBlock, sources - block.s);
      if (IsHidden(head, block)) continue;
      GradientOfBlock(head, block, shifts, add, at);
      add = true;
    }
    if (!add) std::fill_n(at.dquery_t, head.key_width * kBlock, W{0});
    StoreTransposed<T, W>(at.dquery_t, block.rows, head.key_width, at.scores,
                          {gradient.dquery[t], gradient.dquery.stride});
  }
  if (!order.last) return;
  for (int64_t s = 0; s < sources; ++s) {
    ConvertArray(at.dkey + s * at.key_stride, dkey[s], head.key_width);
    ConvertArray(at.dvalue + s * at.value_stride, dvalue[s], head.value_width);
  }
}

template <class T>
constexpr AttentionKernels<T> kTable = {Forward<T>, Backward<T>};

const AttentionTables* Tables() {
  static constexpr AttentionTables kTables = {kTable<float>, kTable<double>, kTable<BF16>};
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

const AttentionTables& AllAttentionKernels() { return *HWY_DYNAMIC_DISPATCH(Tables)(); }

size_t AttentionWorkspace(DType dtype, int64_t key_width, int64_t value_width) {
  SpaceTaker space;
  Dispatch(dtype, [&](auto zero) { HWY_NAMESPACE::ForwardSpace<decltype(zero)>(&space, key_width, value_width); });
  return space.used;
}

size_t AttentionGradientWorkspace(DType dtype, int64_t sources, int64_t key_width, int64_t value_width) {
  SpaceTaker space;
  Dispatch(dtype,
           [&](auto zero) { HWY_NAMESPACE::BackwardSpace<decltype(zero)>(&space, sources, key_width, value_width); });
  return space.used;
}

}  // namespace weft
#endif  // HWY_ONCE
