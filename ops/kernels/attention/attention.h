// The attention kernels compute y = dropout(softmax(scores)) · v of one head, and its gradients, over blocks of keys.
//
// Scores are scale · q kᵀ, capped and masked. The matrix of scores never exists as a whole (Dao et al.,
// "FlashAttention", 2022). When the maximum of a row grows, its running sums are corrected (Milakov and Gimelshein,
// 2018). Positions are processed in blocks of kAttentionBlock. f64 is computed in double, f32 and bf16 in float. If all
// operands are finite, the bits of a row that `forward` computes depend only on the row's own operands and on
// AttentionHead::one_by_one. The kernels allocate nothing.
#ifndef WEFT_OPS_KERNELS_ATTENTION_ATTENTION_H_
#define WEFT_OPS_KERNELS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "weft/core/random.h"
#include "weft/core/tensor.h"
#include "weft/ops/kernels/space.h"

namespace weft {

inline constexpr int64_t kAttentionBlock = 64;  // a block of scores, 16 KB in float, stays in the L1 cache
inline constexpr int kMaxAttentionMasks = 4;

// A Band limits the sources that a target sees by their positions: a target at position p sees the sources
// p - left .. p + right. Unless positions are given, the last of T targets is at the position of the last of S
// sources, so target t is at position t + S - T.
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

// Describes a mask. Its element for target t and source s is data[t * target_stride + s * source_stride]. If `adds`, it
// is a number of the operands' dtype that is added to the score. Otherwise it is a bool; true hides s from t. The
// stride of sources is 1, or 0 if all sources share an element.
struct AttentionMask {
  const void* data = nullptr;
  bool adds = false;
  int64_t target_stride = 0, source_stride = 0;
};

struct AttentionDropout {  // dropout of the weights, as the op dropout computes it
  double rate = 0;
  RandomStream random;
  int64_t first = 0;  // index of the random number for target 0 and source 0
};

// A head with at most this many targets computes them one by one. With more, a vector holds several targets.
inline constexpr int64_t kFewTargets = 4;

template <class T>
struct AttentionHead {
  Matrix<const T> query, key, value;  // key_width, key_width and value_width columns
  // If `pages` is not null, `forward` reads keys and values in pages of `page_size` positions, at most kAttentionBlock.
  // Position p is in page pages[p / page_size], and page i begins i · key_page elements after key.data, and i ·
  // value_page after value.data.
  const int32_t* pages = nullptr;
  int64_t page_size = kAttentionBlock;
  int64_t key_page = 0, value_page = 0;
  // true: `forward` computes one target at a time, and a vector holds several features. false: a vector holds several
  // targets. Must be true with pages of less than kAttentionBlock positions.
  bool one_by_one = false;
  int64_t targets = 0, sources = 0, key_width = 0, value_width = 0;
  double scale = 1;
  double soft_cap = 0;  // c: scores become c · tanh(score / c) before masks; 0: no cap
  Band band = Band();   // hides the sources outside it
  std::array<AttentionMask, kMaxAttentionMasks> masks = {};
  int mask_count = 0;
  AttentionDropout dropout;
};

// Holds the arrays for the gradient of a head: y and lse as `forward` computed them, dy, dlse, and the output dquery.
template <class T>
struct AttentionGradient {
  Matrix<const T> y, dy;
  Matrix<const Computed<T>> lse, dlse;  // dlse may be null
  Matrix<T> dquery;
};

// Tells whether a query head is the first or the last of the heads that share one key and value.
struct HeadOrder {
  bool first = true, last = true;
};

template <class T>
struct AttentionKernels {
  // Computes rows `begin` .. `end` - 1 of `y` and of `lse` = log Σ exp(score), which has one column. Row t is target t.
  // A target that sees no source gets y = 0 and lse = -inf.
  void (*forward)(const AttentionHead<T>& head, int64_t begin, int64_t end, Matrix<T> y, Matrix<Computed<T>> lse,
                  std::byte* workspace);
  // Computes dquery of a head. Heads that share a key and value are passed one after the other, with the same
  // workspace, which sums their dkey and dvalue. The call for the last of these heads writes `dkey` and `dvalue`.
  void (*backward)(const AttentionHead<T>& head, const AttentionGradient<T>& gradient, HeadOrder order, Matrix<T> dkey,
                   Matrix<T> dvalue, std::byte* workspace);
};

using AttentionTables = std::tuple<AttentionKernels<float>, AttentionKernels<double>, AttentionKernels<BF16>>;
const AttentionTables& AllAttentionKernels();  // for this CPU
template <class T>
const AttentionKernels<T>& AttentionKernelsOf() {
  return std::get<AttentionKernels<T>>(AllAttentionKernels());
}

// Return the bytes of workspace that `forward` and `backward` need. A workspace must be aligned to kAlignment.
size_t AttentionWorkspace(DType dtype, int64_t key_width, int64_t value_width);
size_t AttentionGradientWorkspace(DType dtype, int64_t sources, int64_t key_width, int64_t value_width);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ATTENTION_ATTENTION_H_
