// The ops: every function records one or more nodes on the tape of its first argument. Values are f32 or f64 where
// nothing else is said; i32 and bool can be made, moved, compared, masked and cast, not computed with. So can bf16, and
// it has elementwise functions, Dropout, MatMul, Sum, Mean, attention and norms, which compute in f32 and round once.
// Shapes are written [..., n] where leading axes are free. Errors are kept by the tape (core/tape.h).
#ifndef WEFT_OPS_OPS_H_
#define WEFT_OPS_OPS_H_

#include <cstdint>
#include <initializer_list>

#include "weft/core/tape.h"

namespace weft {

// Constants, of any dtype (Iota: not bool).
Var Fill(Tape* tape, TensorType type, double value);  // every element is `value`
Var FillLike(Var x, double value);                    // of x's type
Var Iota(Tape* tape, DType dtype, int64_t n);         // [n]: 0, 1, ..., n - 1

// Shapes, of any dtype. A negative axis counts from the end.
Var Reshape(Var x, const Shape& shape);                   // the same elements; one size may be -1
Var Permute(Var x, std::initializer_list<int> axes);      // y.dim(i) = x.dim(axes[i])
Var Transpose(Var x, int axis_a, int axis_b);             // swaps two axes
Var BroadcastTo(Var x, const Shape& shape);               // NumPy's broadcast_to
Var Slice(Var x, int axis, int64_t begin, int64_t end);   // x[..., begin:end, ...]
Var Pad(Var x, int axis, int64_t before, int64_t after);  // zeros before and after along an axis
Var Concat(VarSpan parts, int axis);                      // one after the other along an axis; at least one part
VarList Split(Var x, int axis, int parts);                // equal parts along an axis
Var Cast(Var x, DType dtype);  // floats rounded to nearest even, integers truncated, bool x != 0

// Elementwise, with NumPy's broadcasting where there are two inputs.
Var Add(Var a, Var b);
Var Sub(Var a, Var b);
Var Mul(Var a, Var b);
Var Div(Var a, Var b);
Var Minimum(Var a, Var b);        // at a tie the gradient goes to a; a NaN wins
Var Equal(Var a, Var b);          // bool, of any dtype; no gradient
Var Less(Var a, Var b);           // bool: a < b, of f32, f64 or i32; no gradient
Var Not(Var x);                   // of bools
Var IsNan(Var x);                 // bool
Var ResidualAdd(Var x, Var y);    // x + y, of equal shapes only
Var Scale(Var x, double factor);  // factor · x
Var Exp(Var x);
Var Log(Var x);
Var Sqrt(Var x);
Var Tanh(Var x);
Var Erf(Var x);
Var Relu(Var x);     // max(x, 0); gradient 0 at 0
Var Sigmoid(Var x);  // 1 / (1 + exp(-x))
Var Silu(Var x);     // x · sigmoid(x) (Elfwing et al., 2018)
enum class GeluForm : uint8_t { kErf, kTanh };
Var Gelu(Var x, GeluForm form = GeluForm::kErf);  // x·Φ(x) (Hendrycks and Gimpel, 2016), or its tanh approximation
Var MaskFill(Var x, Var mask, double value);  // value where the bool mask (broadcast to x) is true, else x of any dtype
Var CausalMask(Var x, double value);          // [..., T, S]: value where column > row + S - T, else x; also bf16, i32
Var Where(Var mask, Var a, Var b);            // a where the bool mask is true, else b; all three broadcast
// Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate) (Srivastava et al., 2014). The
// identity in mode kEval. Draws from (seed, stream of this call, step, element index).
Var Dropout(Var x, double rate);

// Reductions, in a fixed order of 64-element blocks. Without `keep` the axis is dropped. Sums of bf16 are f32.
Var Sum(Var x);  // [] of everything
Var Sum(Var x, int axis, bool keep = false);
Var Mean(Var x);
Var Mean(Var x, int axis, bool keep = false);
Var Max(Var x, int axis, bool keep = false);        // equal maxima share the gradient
Var SumTo(Var x, const Shape& shape);               // sums the axes along which `shape` was broadcast to x's; x's dtype
Var LogSumExp(Var x, int axis, bool keep = false);  // log Σ exp(x), without overflow
// y[..., i] = Σ_{j ≤ i} x[..., j], reversed Σ_{j ≥ i}; f32, f64, i32
Var CumulativeSum(Var x, bool reverse = false);
// Of each row along the last axis the k greatest values, greatest first, and their places, i32: two of [..., k]. Equal
// values stand in the order of their places. f32, f64, i32.
VarList TopK(Var x, int64_t k);
Var ArgMax(Var x);  // [..., n] → i32 [...]: where the greatest value of a row stands; the first of equals

// Products, normalisation, lookup.
struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;  // of the last two axes; nothing is copied
  bool f32_output = false;                        // of bf16 inputs: sums are f32 in any case, and stay so
};
bool HasBF16Products();  // whether the CPU multiplies bf16; MatMul of bf16 is slower than that of f32 where it doesn't
// [..., M, K] × [..., K, N] = [..., M, N]; leading axes broadcast.
Var MatMul(Var a, Var b, MatMulOptions options = {});
Var MatMulAdd(Var a, Var b, Var c, MatMulOptions options = {});  // the same + c; in c's bytes, if nobody else reads c
// softmax(scale · query keyᵀ, masked) · value for each head, dropped out before the last product (Vaswani et al.,
// 2017); the matrix of scores is never whole. query [B, T, heads · D], key [B, S, G · D], value [B, S, G · E], or each
// by head, [B, heads, T, D]; up to four masks that broadcast to [B, heads, T, S]: a bool hides a source where it is
// true, a number is added to the scores. → [B, T, heads · E]; zeros for a target that sees nothing.
struct ScaledDotProductOptions {
  int64_t heads = 1;
  int64_t key_value_heads = 0;  // G, a divisor of heads; 0: heads
  double scale = 0;             // 0: 1 / sqrt(D)
  double dropout = 0;           // of the weights
  bool causal = false;          // the last target meets the last source
};
Var ScaledDotProductAttention(Var query, Var key, Var value, const ScaledDotProductOptions& options,
                              VarSpan masks = {});
// Along the last axis: exp(x_i) / Σ_j exp(x_j), and its logarithm. A row of only -inf gives zeros, and their
// logarithms; one with a NaN or +inf, NaNs.
Var Softmax(Var x);
Var LogSoftmax(Var x);
// gain · (x - mean) / sqrt(variance + epsilon) + bias along the last axis; gain, bias: [C] (Ba et al., 2016), f32 where
// x is bf16.
Var LayerNorm(Var x, Var gain, Var bias, double epsilon = 1e-5);
// gain · x / sqrt(mean(x²) + epsilon) along the last axis; gain: [C] (Zhang and Sennrich, 2019), f32 where x is
// bf16.
Var RmsNorm(Var x, Var gain, double epsilon = 1e-5);
// table [V, C], ids i32 [...]: table[ids], [..., C]. An id outside 0 .. V-1 gives zeros and no gradient; where ids is
// an Input, its bounds must exclude that, but for padding: 0 < below <= V, and ignored, where declared, is -1.
Var Embedding(Var table, Var ids);
Var Gather(Var x, Var ids, int axis);         // NumPy's take: slices of x along the axis, at ids i32 of any shape
Var OneHot(Var ids, int64_t n, DType dtype);  // ids i32 [...] → [..., n]: 1 at the id, else 0
// Position-dependent turns of pairs of features (Su et al., 2021). x [..., T, D]; cosine, sine [T, D/2] or whatever
// broadcasts so: feature pairs (i, i + D/2) for kHalves, as Hugging Face stores them, (2i, 2i + 1) for kPairs.
enum class RotaryLayout : uint8_t { kHalves, kPairs };
Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout);

// Losses.
struct CrossEntropyOptions {
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
};
// logits [..., V], targets i32 [...]: the mean over targets other than ignore_index of -Σ_v q_v · log
// softmax(logits)_v, where q is 1 - s + s / V at the target and s / V elsewhere for smoothing s. NaN if all are
// ignored. As PyTorch's, but that a target outside 0 .. V-1 is ignored, too; where targets is an Input, its bounds must
// exclude that: 0 < below <= V, and ignored, where declared, is ignore_index.
Var CrossEntropy(Var logits, Var targets, CrossEntropyOptions options = {});

// Gradients (core/tape.h says more).
inline VarList Gradient(Var loss, VarSpan wrt) { return loss.tape->Gradient(loss, wrt); }
Var SquareSum(Var x);             // [] Σ x²
Var GlobalNorm(VarSpan tensors);  // [] root of the sum of all elements' squares, gradient 0 at 0; at least one
// [] what gradients of this norm are multiplied by: min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_;
// 1 if max_norm is 0; NaN if the norm is not finite, which makes the updates below leave everything as it is.
Var ClipScale(Var norm, double max_norm);

// The next version of a cache [B, H, S, D], with rows [B, H, T, D] at positions i32 [B, T] of S; rows whose position is
// outside it (padding: -1) are left out. Where positions is an Input, its bounds are 0 < below <= S, and ignored, where
// declared, is -1.
Var CacheAppend(Var cache, Var rows, Var positions);

// Updates. Each overwrites state and returns its next version, which later ops may read.
Var Assign(Var state, Var value);  // value has the state's type, of any dtype
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
};
// One step of AdamW (Loshchilov and Hutter, 2019) in one pass, with g = grad · grad_scale:
//   m ← β1·m + (1-β1)·g;  v ← β2·v + (1-β2)·g²
//   w ← w - rate·decay·w - rate · (m / (1-β1^step)) / (sqrt(v / (1-β2^step)) + ε)
// w, m, v, grad: one shape; rate, grad_scale: f32 []; step: i32 [], 1 in the first step. A grad_scale that is not
// finite changes nothing. Returns the next w, m, v.
VarList AdamWUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options);
struct SgdOptions {
  double momentum = 0, weight_decay = 0;
};
// One step of SGD with momentum, as PyTorch's (dampening 0): g = grad · grad_scale + decay·w; m ← momentum·m + g;
// w ← w - rate·m. Returns the next w, m.
VarList SgdUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const SgdOptions& options);

// Operators; a number stands for a constant of the other side's dtype.
inline Var operator+(Var a, Var b) { return Add(a, b); }
inline Var operator-(Var a, Var b) { return Sub(a, b); }
inline Var operator*(Var a, Var b) { return Mul(a, b); }
inline Var operator/(Var a, Var b) { return Div(a, b); }
inline Var Number(Var like, double value) { return Fill(like.tape, {like.dtype(), {}}, value); }
inline Var operator+(Var a, double b) { return Add(a, Number(a, b)); }
inline Var operator+(double a, Var b) { return Add(Number(b, a), b); }
inline Var operator-(Var a, double b) { return Sub(a, Number(a, b)); }
inline Var operator-(double a, Var b) { return Sub(Number(b, a), b); }
inline Var operator*(Var a, double b) { return Scale(a, b); }
inline Var operator*(double a, Var b) { return Scale(b, a); }
inline Var operator/(Var a, double b) { return Div(a, Number(a, b)); }
inline Var operator/(double a, Var b) { return Div(Number(b, a), b); }
inline Var operator-(Var a) { return Scale(a, -1); }

}  // namespace weft

#endif  // WEFT_OPS_OPS_H_
