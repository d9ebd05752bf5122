// Attention of one head, streamed over blocks of keys: y = softmax(scale · q kᵀ, masked) · v, without the matrix of
// scores (Dao et al., "FlashAttention", 2022; the sums of a row are corrected as Milakov and Gimelshein, 2018, do).
//
// Positions are read and written in blocks of kAttentionBlock, in float or double, whatever the operands' dtype. A
// row's bits depend on its own operands only, if calls begin at multiples of kAttentionBlock. Nothing allocates.
#ifndef WEFT_OPS_KERNELS_ATTENTION_H_
#define WEFT_OPS_KERNELS_ATTENTION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/core/random.h"
#include "weft/core/tensor.h"

namespace weft {

inline constexpr int64_t kAttentionBlock = 64;
inline constexpr int kMaxAttentionMasks = 4;

// A matrix of which one row belongs to one position.
template <class T>
struct Positions {
  T* data = nullptr;
  int64_t stride = 0;  // elements between the rows

  T* operator[](int64_t position) const { return data + position * stride; }
};

// For target t and source s, at data[t * target_step + s * source_step]: a bool that hides s from t, or a number of the
// operands' dtype that is added to the score.
struct AttentionMask {
  const void* data = nullptr;
  bool adds = false;
  int64_t target_step = 0, source_step = 0;
};

struct AttentionDropout {  // of the weights, as the op dropout has it
  double rate = 0;
  RandomStream random;
  int64_t first = 0;  // the index of the weight of target 0 and source 0
};

template <class T>
struct AttentionHead {
  Positions<const T> query, key, value;  // key_width, key_width and value_width columns
  int64_t targets = 0, sources = 0, key_width = 0, value_width = 0;
  double scale = 1;
  double soft_cap = 0;  // c: scores are c · tanh(score / c) before they are masked; 0: as they are
  bool causal = false;  // the last target meets the last source
  std::array<AttentionMask, kMaxAttentionMasks> masks = {};
  int mask_count = 0;
  AttentionDropout dropout;
};

// What flows back into a head from dy and dlse, with y and lse as `forward` gave them.
template <class T>
struct AttentionGradient {
  Positions<const T> y, dy;
  Positions<const Computed<T>> lse, dlse;  // dlse may be null
  Positions<T> dquery;
};

struct GroupPart {
  bool first = true, last = true;
};

template <class T>
struct AttentionKernels {
  // For targets begin .. end - 1, where begin is a multiple of kAttentionBlock: y, and log Σ exp(score) in lse, one
  // column. A row that sees nothing gives y = 0 and lse = -inf.
  void (*forward)(const AttentionHead<T>& head, int64_t begin, int64_t end, Positions<T> y, Positions<Computed<T>> lse,
                  std::byte* workspace);
  // dquery of a head; and, once the last of the heads that share a key and a value is done, the sums of their dkey and
  // dvalue, which stay in the workspace from the first of them on.
  void (*backward)(const AttentionHead<T>& head, const AttentionGradient<T>& gradient, GroupPart part,
                   Positions<T> dkey, Positions<T> dvalue, std::byte* workspace);
};

template <class T>
const AttentionKernels<T>& AttentionKernelsOf();
template <>
const AttentionKernels<float>& AttentionKernelsOf<float>();
template <>
const AttentionKernels<double>& AttentionKernelsOf<double>();
template <>
const AttentionKernels<BF16>& AttentionKernelsOf<BF16>();

// Bytes of working memory that the kernels need, at a boundary of kAlignment.
size_t AttentionWorkspace(DType dtype, int64_t key_width, int64_t value_width);
size_t AttentionGradientWorkspace(DType dtype, int64_t targets, int64_t sources, int64_t key_width,
                                  int64_t value_width);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ATTENTION_H_
