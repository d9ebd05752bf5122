// The ops: every function records one or more nodes on the tape of its first argument. Values are f32 or f64 where
// nothing else is said; i32 and bool can be made, moved, compared, masked and cast. So can bf16, and it has elementwise
// functions, Dropout, MatMul, Sum, Mean, attention and norms, which compute in f32 and round once.
// Shapes are written [..., n] where leading axes are free. Errors are kept by the tape (core/tape.h).
#ifndef WEFT_OPS_OPS_H_
#define WEFT_OPS_OPS_H_

#include <cstdint>
#include <initializer_list>

#include "weft/core/tape.h"

namespace weft {

// Constants, of any dtype (Iota: not bool). A number beside i32, here and below, must be one.
Var Fill(Tape* tape, TensorType type, double value);  // every element is `value`
Var FillLike(Var x, double value);                    // of x's type
Var Iota(Tape* tape, DType dtype, int64_t n);         // [n]: 0, 1, ..., n - 1

// Shapes, of any dtype. A negative axis counts from the end.
Var Reshape(Var x, const Shape& shape);  // the same elements; one size may be -1
// Written {0, -1}, and AxisSpan() if there are none, as {} is axis 0. An axis twice is an error.
using AxisSpan = absl::Span<const int>;
Var Permute(Var x, AxisSpan axes);                                          // y.dim(i) = x.dim(axes[i])
Var Transpose(Var x, int axis_a, int axis_b);                               // swaps two axes
Var BroadcastTo(Var x, const Shape& shape);                                 // NumPy's broadcast_to
Var Slice(Var x, int axis, int64_t begin, int64_t end);                     // x[..., begin:end, ...]
Var Pad(Var x, int axis, int64_t before, int64_t after, double value = 0);  // `value` before and after along an axis
Var Concat(VarSpan parts, int axis);        // one after the other along an axis; at least one part
VarList Split(Var x, int axis, int parts);  // equal parts along an axis; of size 0, up to 1024
Var Squeeze(Var x, AxisSpan axes);          // without these axes of size 1
Var Unsqueeze(Var x, int axis);             // with an axis of size 1 there, counted in the result
Var Stack(VarSpan parts, int axis);         // equal shapes side by side along a new axis, counted in the result
Var Flip(Var x, int axis);                  // back to front along an axis
Var Triu(Var x, int64_t diagonal = 0);      // [..., T, S]: 0 where column - row < diagonal
Var Tril(Var x, int64_t diagonal = 0);      // 0 where column - row > diagonal
Var Cast(Var x, DType dtype);               // floats rounded to nearest even, integers truncated, bool x != 0

// Elementwise, with NumPy's broadcasting where there are two inputs.
// Of i32, too: what does not fit wraps around, quotients are truncated, and 0 where b is 0.
Var Add(Var a, Var b);
Var Sub(Var a, Var b);
Var Mul(Var a, Var b);
Var Div(Var a, Var b);
Var Minimum(Var a, Var b);  // at a tie the gradient goes to a; a NaN wins
Var Maximum(Var a, Var b);
Var Neg(Var x);
Var Abs(Var x);                             // gradient 0 at 0
Var Clamp(Var x, double low, double high);  // min(max(x, low), high); where x is a bound, the gradient is x's
// bool, without gradients; Equal and NotEqual of any dtype, the others of f32, f64 or i32. False where one is NaN, but
// for NotEqual.
Var Equal(Var a, Var b);
Var NotEqual(Var a, Var b);
Var Less(Var a, Var b);
Var LessEqual(Var a, Var b);
Var Greater(Var a, Var b);
Var GreaterEqual(Var a, Var b);
Var IsNan(Var x);
// Of bools.
Var Not(Var x);
Var And(Var a, Var b);
Var Or(Var a, Var b);
Var Xor(Var a, Var b);
Var Pow(Var a, Var b);            // a^b; the special values of <cmath>'s pow. d/db is 0 at a = 0, b >= 0
Var Pow(Var x, double exponent);  // in products and roots where the exponent is 2, 3, 0.5 or -1
Var Sign(Var x);                  // -1, 0 or 1
Var Square(Var x);
Var Scale(Var x, double factor);  // factor · x
Var Exp(Var x);
Var Log(Var x);
Var Sqrt(Var x);
Var Rsqrt(Var x);     // 1 / sqrt(x)
Var Softplus(Var x);  // log(1 + exp(x)), without overflow
Var Tanh(Var x);
Var Erf(Var x);
Var Relu(Var x);     // max(x, 0); gradient 0 at 0
Var Sigmoid(Var x);  // 1 / (1 + exp(-x))
Var Silu(Var x);     // x · sigmoid(x) (Elfwing et al., 2018)
enum class GeluForm : uint8_t { kErf, kTanh };
Var Gelu(Var x, GeluForm form = GeluForm::kErf);  // x·Φ(x) (Hendrycks and Gimpel, 2016), or its tanh approximation
Var MaskFill(Var x, Var mask, double value);  // value where the bool mask (broadcast to x) is true, else x of any dtype
Var CausalMask(Var x, double value);          // [..., T, S]: value where column > row + S - T, else x; also bf16, i32
Var Where(Var mask, Var a, Var b);            // a where the bool mask is true, else b, of any dtype; all broadcast
// Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate) (Srivastava et al., 2014). The
// identity in mode kEval. Draws from (seed, stream of this call, step, element index).
Var Dropout(Var x, double rate);

// Reductions along one or more axes, in a fixed order of 64-element blocks. Without `keep` the axes are dropped. Sums
// of bf16 are f32.
Var Sum(Var x);  // [] of everything
Var Sum(Var x, int axis, bool keep = false);
Var Sum(Var x, AxisSpan axes, bool keep = false);
Var Mean(Var x);
Var Mean(Var x, int axis, bool keep = false);
Var Mean(Var x, AxisSpan axes, bool keep = false);
// Σ (x - mean)² / (n - correction), for a correction >= 0.
Var Variance(Var x, AxisSpan axes, double correction = 1, bool keep = false);
Var Max(Var x, int axis, bool keep = false);  // equal maxima share the gradient; an error of nothing
Var Max(Var x, AxisSpan axes, bool keep = false);
Var Min(Var x, AxisSpan axes, bool keep = false);
Var Prod(Var x, AxisSpan axes, bool keep = false);  // also of i32; 1 of nothing
// (Σ |x|^order)^(1/order) for an order > 0, or max |x| for infinity; 0 of nothing. The gradient of an order but 1 and
// infinity is 0 at 0.
Var Norm(Var x, AxisSpan axes, double order = 2, bool keep = false);
Var SumTo(Var x, const Shape& shape);               // sums the axes along which `shape` was broadcast to x's; x's dtype
Var LogSumExp(Var x, int axis, bool keep = false);  // log Σ exp(x), without overflow; -inf of nothing
Var LogSumExp(Var x, AxisSpan axes, bool keep = false);
// y[..., i] = Σ_{j ≤ i} x[..., j], reversed Σ_{j ≥ i}; f32, f64, i32
Var CumulativeSum(Var x, bool reverse = false);
// Of each row [n] along the last axis the k greatest values, 0 <= k <= n, greatest first, and their places, i32: two of
// [..., k]. Equal values stand in the order of their places. f32, f64, i32.
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
  double soft_cap = 0;          // c: scores become c · tanh(score / c) before masks (Gemma Team, 2024); 0: as they are
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
// gain · (x - mean) / sqrt(variance + epsilon) + bias, of each feature over all rows of x [..., C]; gain and bias [C]
// (Ioffe and Szegedy, 2015). In mode kEval by the running mean and variance [C], which `mean` and `variance` (divided
// by n) of the batch can be mixed into. f32 and f64.
struct BatchNormResult {
  Var y, mean, variance;
};
BatchNormResult BatchNorm(Var x, Var gain, Var bias, Var running_mean, Var running_variance, double epsilon = 1e-5);
// table [V, C], ids i32 [...]: table[ids], [..., C]. An id outside 0 .. V-1 gives zeros and no gradient; where ids is
// an Input, its bounds must exclude that, but for padding: 0 < below <= V, and ignored, where declared, is -1.
Var Embedding(Var table, Var ids);
Var Gather(Var x, Var ids, int axis);  // NumPy's take: slices of x along the axis, at ids i32 of any shape
// One element at a time, as PyTorch's gather: y[i, j] = x[i, ids[i, j]] along axis 1. ids i32, of x's rank, no larger
// than x along other axes. An id outside the axis gives 0, and adds nothing.
Var TakeAlong(Var x, Var ids, int axis);
Var ScatterAdd(Var x, Var ids, Var updates, int axis);  // x with each update added to the element that its id names
Var OneHot(Var ids, int64_t n, DType dtype);            // ids i32 [...] → [..., n]: 1 at the id, else 0
// Position-dependent turns of pairs of features (Su et al., 2021). x [..., T, D]; cosine, sine [T, D/2] or whatever
// broadcasts so: feature pairs (i, i + D/2) for kHalves, as Hugging Face stores them, (2i, 2i + 1) for kPairs.
enum class RotaryLayout : uint8_t { kHalves, kPairs };
Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout);

// Losses.
enum class Reduction : uint8_t { kMean, kSum, kNone };
struct CrossEntropyOptions {
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
  Var weights = {};  // [V] of the classes, of the logits' dtype; null: 1
  Reduction reduction = Reduction::kMean;
};
// logits [..., V], targets i32 [...]: of each target other than ignore_index -Σ_v w_v · q_v · log softmax(logits)_v,
// where q is 1 - s + s / V at the target and s / V elsewhere for smoothing s. kMean divides by the sum of the targets'
// weights, and is NaN if all are ignored. As PyTorch's, but that a target outside 0 .. V-1 is ignored, too; where
// targets is an Input, its bounds must exclude that: 0 < below <= V, and ignored, where declared, is ignore_index.
// Targets may be probabilities [..., V] of the logits' dtype: then kMean divides by the number of rows.
Var CrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options = {});
// log_p [..., V]: -w · log_p at the target; label_smoothing must be 0.
Var NegativeLogLikelihood(Var log_p, Var targets, const CrossEntropyOptions& options = {});
// Of equal shapes: softplus(x) - x · target for logits x and targets in [0, 1]; and (x - y)².
Var BinaryCrossEntropy(Var logits, Var targets, Reduction reduction = Reduction::kMean);
Var MeanSquaredError(Var x, Var y, Reduction reduction = Reduction::kMean);
// Σ_v p · (log p - log_q) of each row along the last axis, 0 where p is 0; reduced over the rows.
Var KlDivergence(Var log_q, Var p, Reduction reduction = Reduction::kMean);

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
// The same with the decay in the gradient, g = grad · grad_scale + decay·w: Adam (Kingma and Ba, 2015).
VarList AdamUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options);
struct SgdOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// One step of SGD with momentum, as PyTorch's (dampening 0): g = grad · grad_scale + decay·w; m ← momentum·m + g;
// w ← w - rate·m, or Nesterov's w - rate·(g + momentum·m). Returns the next w, m.
VarList SgdUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const SgdOptions& options);
struct AdagradOptions {
  double epsilon = 1e-10, weight_decay = 0, rate_decay = 0;
};
// One step of Adagrad (Duchi et al., 2011): g = grad · grad_scale + decay·w; sum ← sum + g²;
// w ← w - rate / (1 + (step - 1)·rate_decay) · g / (sqrt(sum) + ε). Types as AdamWUpdate's. Returns the next w, sum.
VarList AdagradUpdate(Var w, Var sum, Var grad, Var rate, Var grad_scale, Var step, const AdagradOptions& options);
struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
// One step of Lion (Chen et al., 2023) with g = grad · grad_scale: w ← w - rate·(sign(β1·m + (1-β1)·g) + decay·w);
// m ← β2·m + (1-β2)·g. Returns the next w, m.
VarList LionUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const LionOptions& options);

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
inline Var operator*(Var a, double b) { return a.dtype() == kI32 ? Mul(a, Number(a, b)) : Scale(a, b); }
inline Var operator*(double a, Var b) { return b * a; }
inline Var operator/(Var a, double b) { return Div(a, Number(a, b)); }
inline Var operator/(double a, Var b) { return Div(Number(b, a), b); }
inline Var operator-(Var a) { return Neg(a); }

}  // namespace weft

#endif  // WEFT_OPS_OPS_H_
