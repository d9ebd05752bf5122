// For each block of targets, the forward kernel walks the blocks of keys. For each block of keys, the backward kernel
// walks the blocks of targets, and computes the weights again. Both skip hidden blocks.
#include "weft/ops/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "weft/core/dtype.h"
#include "weft/ops/kernels/attention_block.h"
#include "weft/ops/kernels/attention_space.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/attention.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/block-inl.h"
#include "weft/ops/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

using Block = AttentionBlock;
constexpr int64_t kBlock = kAttentionBlock;

// Returns `n`, rounded up to a multiple of the elements in a vector.
template <class W>
int64_t WholeVectors(int64_t n) {
  const int64_t lanes = hn::Lanes(D<W>());
  return (n + lanes - 1) / lanes * lanes;
}

template <class T, class W>
W Dot(const T* a, const T* b, int64_t n) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sums = hn::MulAdd(LoadLanes<T>(a + i), LoadLanes<T>(b + i), sums);
  W sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += static_cast<W>(a[i]) * static_cast<W>(b[i]);
  return sum;
}

// row *= factor, in whole vectors.
template <class W>
HWY_INLINE void ScaleRow(W factor, int64_t n, W* row) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  const V<W> factors = hn::Set(d, factor);
  for (int64_t j = 0; j < n; j += lanes) hn::Store(hn::Mul(hn::Load(d, row + j), factors), d, row + j);
}

// Replaces each x of `row` by cap · tanh(x / cap), for `n` numbers rounded up to whole vectors. If `slopes` is not
// null, sets `slopes` to the derivatives 1 - tanh(x / cap)².
template <class W>
void CapRow(double cap, int64_t n, W* row, W* slopes) {
  const D<W> d;
  const V<W> caps = hn::Set(d, static_cast<W>(cap)), one = hn::Set(d, W{1});
  for (int64_t j = 0; j < n; j += hn::Lanes(d)) {
    const V<W> tanh = Tanh<W>(hn::Div(hn::Load(d, row + j), caps));
    hn::Store(hn::Mul(caps, tanh), d, row + j);
    if (slopes != nullptr) hn::Store(hn::NegMulAdd(tanh, tanh, one), d, slopes + j);
  }
}

// Computes the products of one query with the first `count` of `keys`, which have `width` columns.
template <class T, class W>
void ScoreOneTarget(const T* const* keys, int64_t width, const W* q, int64_t count, W* scores) {
  for (int64_t j = 0; j < count; ++j) {
    const T* const key = keys[j];
    V<W> sums = hn::Zero(D<W>());
    ForEachVector<T>(width, [&](const auto& access, int64_t k) {
      sums = hn::MulAdd(access.Load(q + k), access.Load(key + k), sums);
    });
    scores[j] = hn::GetLane(hn::SumOfLanes(D<W>(), sums));
  }
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

// Computes scores [rows, kBlock] = scale · q kᵀ, capped, plus masks. If `k_transposed` is null, reads the block's
// `keys` instead. Hidden scores, and columns beyond the block's sources, are -inf. If `slopes` is not null and there is
// a soft cap, sets `slopes` to the cap's derivatives.
template <class T, class W>
void Scores(const AttentionHead<T>& head, const Block& block, Matrix<const W> q, const W* k_transposed,
            const T* const* keys, W* scores, W* slopes = nullptr) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  const V<W> hidden = hn::Set(d, -std::numeric_limits<W>::infinity());
  HWY_ALIGN W added[kBlock];
  bool by_target = false;
  for (int m = 0; m < head.mask_count; ++m) by_target = by_target || head.masks[m].target_stride != 0;
  if (head.mask_count > 0 && !by_target) MaskRow(head, block, 0, added);
  for (int64_t strip = 0; strip < block.rows; strip += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, block.rows - strip);
    const int64_t cols = WholeVectors<W>(Visible(head, block, strip + rows - 1));
    if (k_transposed != nullptr) {
      Multiply<W>({q.data + strip * q.stride, q.stride, 1}, {k_transposed, kBlock}, {scores + strip * kBlock, kBlock},
                  rows, cols, head.key_width, false);
    } else {
      for (int64_t i = strip; i < strip + rows; ++i) {
        ScoreOneTarget<T, W>(keys, head.key_width, q.data + i * q.stride, Visible(head, block, i), scores + i * kBlock);
      }
    }
    for (int64_t i = strip; i < strip + rows; ++i) {
      W* const row = scores + i * kBlock;
      const int64_t visible = Visible(head, block, i);
      if (by_target) MaskRow(head, block, i, added);
      ScaleRow(static_cast<W>(head.scale), visible, row);
      if (head.soft_cap > 0) CapRow(head.soft_cap, visible, row, slopes == nullptr ? nullptr : slopes + i * kBlock);
      for (int64_t j = 0; head.mask_count > 0 && j < visible; j += lanes) {
        const V<W> mask = hn::Load(d, added + j);
        hn::Store(hn::IfThenElse(hn::Eq(mask, hidden), hidden, hn::Add(hn::Load(d, row + j), mask)), d, row + j);
      }
      std::fill(row + visible, row + kBlock, -std::numeric_limits<W>::infinity());
    }
  }
}

// Replaces the first `visible` numbers x of `row` by exp(x - shift), and the others, all -inf, by 0. Returns the sum.
template <class W>
W ExpRow(W shift, int64_t visible, W* row) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  const V<W> shifts = hn::Set(d, shift);
  V<W> sum = hn::Zero(d);
  int64_t j = 0;
  for (; j < visible; j += lanes) {
    const V<W> e = Exp<W>(hn::Sub(hn::Load(d, row + j), shifts));
    hn::Store(e, d, row + j);
    sum = hn::Add(sum, e);
  }
  for (; j < kBlock; j += lanes) hn::Store(hn::Zero(d), d, row + j);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class W>
W MaxOfRow(const W* row) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> largest = hn::Load(d, row);
  for (int64_t j = lanes; j < kBlock; j += lanes) largest = hn::Max(largest, hn::Load(d, row + j));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class W>
HWY_INLINE void MultiplyRow(const W* factor, W* row) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < kBlock; j += lanes) {
    hn::Store(hn::Mul(hn::Load(d, row + j), hn::Load(d, factor + j)), d, row + j);
  }
}

template <class T>
void Forward(const AttentionHead<T>& head, int64_t begin, int64_t end, Positions<T> y, Positions<Computed<T>> lse,
             std::byte* workspace) {
  using W = Computed<T>;
  constexpr W kInfinity = std::numeric_limits<W>::infinity();
  SpaceTaker space = {workspace};
  const ForwardSpace<W> at(&space, head.key_width, head.value_width);
  const auto [key_stride, value_stride, query, key, value, sums, scores] = at;
  HWY_ALIGN W max[kBlock], total[kBlock], keep[kBlock];
  for (int64_t t = begin; t < end; t += kBlock) {
    const int64_t rows = std::min(kBlock, end - t);
    CopyRows<T, W>(head.query, t, rows, head.key_width, {query, key_stride});
    std::fill_n(max, rows, -kInfinity);
    std::fill_n(total, rows, W{0});
    bool first = true;
    for (int64_t s = 0; s < head.sources; s += kBlock) {
      const Block block = {t, rows, s, std::min(kBlock, head.sources - s)};
      if (IsHidden(head, block)) continue;
      const T *keys[kBlock], *values[kBlock];
      if (head.in_place) {
        FindRows(head, head.key, head.key_page, block, keys);
        FindRows(head, head.value, head.value_page, block, values);
      } else {
        const Positions<const T> key_rows = {RowOf(head, head.key, head.key_page, s), head.key.stride};
        const Positions<const T> value_rows = {RowOf(head, head.value, head.value_page, s), head.value.stride};
        CopyTransposed(key_rows, 0, block.cols, head.key_width, key);
        CopyRows<T, W>(value_rows, 0, block.cols, head.value_width, {value, value_stride});
      }
      Scores<T, W>(head, block, {query, key_stride}, head.in_place ? nullptr : key, keys, scores);
      for (int64_t i = 0; i < rows; ++i) {
        W* const row = scores + i * kBlock;
        const W larger = std::max(max[i], MaxOfRow(row)), shift = larger == -kInfinity ? 0 : larger;
        const W sum = ExpRow(shift, Visible(head, block, i), row);
        const W correction = first ? 0 : std::exp(max[i] - shift);
        max[i] = larger;
        total[i] = total[i] * correction + sum;
        if (!first && correction != 1) {
          ScaleRow(correction, WholeVectors<W>(head.value_width), sums + i * value_stride);
        }
        if (head.dropout.rate > 0) {
          KeepRow(head, block, i, keep);
          MultiplyRow(keep, row);
        }
      }
      for (int64_t i = 0; head.in_place && i < rows; ++i) {
        AddValues<T, W>(values, head.value_width, scores + i * kBlock, Visible(head, block, i), !first,
                        sums + i * value_stride);
      }
      for (int64_t strip = 0; !head.in_place && strip < rows; strip += kRowsAtOnce) {
        const int64_t strip_rows = std::min(kRowsAtOnce, rows - strip);
        Multiply<W>({scores + strip * kBlock, kBlock, 1}, {value, value_stride},
                    {sums + strip * value_stride, value_stride}, strip_rows, WholeVectors<W>(head.value_width),
                    Visible(head, block, strip + strip_rows - 1), !first);
      }
      first = false;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const bool any = !first && total[i] != 0;
      *lse[t + i] = any ? max[i] + std::log(total[i]) : -kInfinity;
      if (any) {
        ScaleRow(1 / total[i], WholeVectors<W>(head.value_width), sums + i * value_stride);
        Convert(sums + i * value_stride, head.value_width, y[t + i]);
      } else {
        std::fill_n(y[t + i], head.value_width, T{});
      }
    }
  }
}

// On entry, `dscores` holds dy vᵀ, the gradients by the weights after dropout. Replaces them by the gradients by q kᵀ,
// which include scale and soft cap. Applies dropout to `weights`. `delta`: Σ dy · y - dlse of each target.
template <class T, class W>
void ScoreGradients(const AttentionHead<T>& head, const Block& block, const W* delta, const W* slopes, W* weights,
                    W* dscores) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  const V<W> scale = hn::Set(d, static_cast<W>(head.scale));
  HWY_ALIGN W keep[kBlock];
  for (int64_t i = 0; i < block.rows; ++i) {
    W *const p = weights + i * kBlock, *const ds = dscores + i * kBlock;
    const int64_t visible = Visible(head, block, i);
    if (head.dropout.rate > 0) {
      KeepRow(head, block, i, keep);
      MultiplyRow(keep, ds);
    }
    const V<W> shift = hn::Set(d, delta[block.t + i]);
    int64_t j = 0;
    for (; j < visible; j += lanes) {
      const V<W> weight = hn::Load(d, p + j);
      // Where a weight is 0, the gradient is 0. If a value is infinite, the product would be 0 · inf, which is NaN.
      V<W> ds_j = hn::Mul(hn::Mul(weight, hn::Sub(hn::Load(d, ds + j), shift)), scale);
      if (head.soft_cap > 0) ds_j = hn::Mul(ds_j, hn::Load(d, slopes + i * kBlock + j));
      hn::Store(hn::IfThenElse(hn::Eq(weight, hn::Zero(d)), hn::Zero(d), ds_j), d, ds + j);
    }
    for (; j < kBlock; j += lanes) hn::Store(hn::Zero(d), d, ds + j);
    if (head.dropout.rate > 0) MultiplyRow(keep, p);
  }
}

template <class T, class W>
void GradientOfBlock(const AttentionHead<T>& head, const AttentionGradient<T>& gradient, const Block& block,
                     const BackwardSpace<W>& at) {
  const int64_t key_stride = at.key_stride, value_stride = at.value_stride;
  const int64_t key_cols = WholeVectors<W>(head.key_width), value_cols = WholeVectors<W>(head.value_width);
  CopyRows<T, W>(head.query, block.t, block.rows, head.key_width, {at.query, key_stride});
  CopyRows<T, W>(gradient.dy, block.t, block.rows, head.value_width, {at.dy, value_stride});
  Scores<T, W>(head, block, {at.query, key_stride}, at.key_transposed, nullptr, at.weights, at.slopes);
  for (int64_t i = 0; i < block.rows; ++i) {
    // If a target sees no source, its lse is -inf. The shift is then +inf: exp(score - inf) = 0, so all weights are 0.
    constexpr W kInfinity = std::numeric_limits<W>::infinity();
    const W lse = *gradient.lse[block.t + i];
    ExpRow(lse == -kInfinity ? kInfinity : lse, Visible(head, block, i), at.weights + i * kBlock);
  }
  for (int64_t strip = 0; strip < block.rows; strip += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, block.rows - strip);
    Multiply<W>({at.dy + strip * value_stride, value_stride, 1}, {at.value_transposed, kBlock},
                {at.dscores + strip * kBlock, kBlock}, rows, WholeVectors<W>(Visible(head, block, strip + rows - 1)),
                head.value_width, false);
  }
  ScoreGradients<T, W>(head, block, at.delta, at.slopes, at.weights, at.dscores);
  for (int64_t strip = 0; strip < block.rows; strip += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, block.rows - strip);
    Multiply<W>({at.dscores + strip * kBlock, kBlock, 1}, {at.key, key_stride},
                {at.dquery + (block.t + strip) * key_stride, key_stride}, rows, key_cols,
                Visible(head, block, strip + rows - 1), true);
  }
  for (int64_t strip = 0; strip < block.cols; strip += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, block.cols - strip), first = FirstTarget(head, block, strip);
    const auto transposed = [&](const W* scores) { return Factor<W>{scores + first * kBlock + strip, 1, kBlock}; };
    Multiply<W>(transposed(at.weights), {at.dy + first * value_stride, value_stride},
                {at.dvalue + (block.s + strip) * value_stride, value_stride}, rows, value_cols, block.rows - first,
                true);
    Multiply<W>(transposed(at.dscores), {at.query + first * key_stride, key_stride},
                {at.dkey + (block.s + strip) * key_stride, key_stride}, rows, key_cols, block.rows - first, true);
  }
}

template <class T, class W>
void StoreRows(Matrix<const W> from, int64_t count, int64_t width, Positions<T> to) {
  for (int64_t i = 0; i < count; ++i) Convert(from.data + i * from.stride, width, to[i]);
}

template <class T>
void Backward(const AttentionHead<T>& head, const AttentionGradient<T>& gradient, HeadOrder order, Positions<T> dkey,
              Positions<T> dvalue, std::byte* workspace) {
  using W = Computed<T>;
  SpaceTaker space = {workspace};
  const int64_t targets = head.targets, sources = head.sources;
  const BackwardSpace<W> at(&space, targets, sources, head.key_width, head.value_width);
  if (order.first) {
    std::fill_n(at.dkey, sources * at.key_stride, W{0});
    std::fill_n(at.dvalue, sources * at.value_stride, W{0});
  }
  std::fill_n(at.dquery, targets * at.key_stride, W{0});
  for (int64_t t = 0; t < targets; ++t) {
    at.delta[t] = Dot<T, W>(gradient.dy[t], gradient.y[t], head.value_width);
    if (gradient.dlse.data != nullptr) at.delta[t] -= *gradient.dlse[t];
  }
  for (int64_t s = 0; s < sources; s += kBlock) {
    Block block = {.s = s, .cols = std::min(kBlock, sources - s)};
    CopyRows<T, W>(head.key, s, block.cols, head.key_width, {at.key, at.key_stride});
    CopyTransposed(head.key, s, block.cols, head.key_width, at.key_transposed);
    CopyTransposed(head.value, s, block.cols, head.value_width, at.value_transposed);
    for (block.t = 0; block.t < targets; block.t += kBlock) {
      block.rows = std::min(kBlock, targets - block.t);
      if (!IsHidden(head, block)) GradientOfBlock(head, gradient, block, at);
    }
  }
  StoreRows<T, W>({at.dquery, at.key_stride}, targets, head.key_width, gradient.dquery);
  if (!order.last) return;
  StoreRows<T, W>({at.dkey, at.key_stride}, sources, head.key_width, dkey);
  StoreRows<T, W>({at.dvalue, at.value_stride}, sources, head.value_width, dvalue);
}

template <class T>
constexpr AttentionKernels<T> kTable = {Forward<T>, Backward<T>};

const auto* Tables() {
  static constexpr auto kTables = std::make_tuple(kTable<float>, kTable<double>, kTable<BF16>);
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

template <class T>
const AttentionKernels<T>& AttentionKernelsOf() {
  static const auto* const tables = HWY_DYNAMIC_DISPATCH(Tables)();
  return std::get<AttentionKernels<T>>(*tables);
}
template const AttentionKernels<float>& AttentionKernelsOf<float>();
template const AttentionKernels<double>& AttentionKernelsOf<double>();
template const AttentionKernels<BF16>& AttentionKernelsOf<BF16>();

size_t AttentionWorkspace(DType dtype, int64_t key_width, int64_t value_width) {
  SpaceTaker space;
  Dispatch(ComputedIn(dtype), [&](auto zero) { ForwardSpace<decltype(zero)>(&space, key_width, value_width); });
  return space.used;
}

size_t AttentionGradientWorkspace(DType dtype, int64_t targets, int64_t sources, int64_t key_width,
                                  int64_t value_width) {
  SpaceTaker space;
  Dispatch(ComputedIn(dtype),
           [&](auto zero) { BackwardSpace<decltype(zero)>(&space, targets, sources, key_width, value_width); });
  return space.used;
}

}  // namespace weft
#endif  // HWY_ONCE
