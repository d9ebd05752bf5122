// This header computes the gradient of one head of attention.
#if defined(WEFT_OPS_KERNELS_ATTENTION_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_ATTENTION_ATTENTION_BACKWARD_INL_H_
#undef WEFT_OPS_KERNELS_ATTENTION_ATTENTION_BACKWARD_INL_H_
#else
#define WEFT_OPS_KERNELS_ATTENTION_ATTENTION_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "weft/ops/kernels/attention/attention_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Returns the sum of the products of `n` numbers of a and b.
template <class T, class W>
W Dot(const T* a, const T* b, int64_t n) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sums = hn::MulAdd(Full().Load(a + i), Full().Load(b + i), sums);
  W sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += static_cast<W>(a[i]) * static_cast<W>(b[i]);
  return sum;
}

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
