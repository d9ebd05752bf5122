// This header declares the ops. Each function records its nodes on the tape of its first argument.
//
// Unless noted, ops accept f32 and f64. Creation, data movement, comparison, masking and casts also accept i32, bool
// and bf16. Elementwise functions, Dropout, MatMul, Sum, Mean, attention, LayerNorm and RmsNorm also accept bf16. Their
// ops compute in f32 and round once.
//
// Shapes are written [..., n], where the leading axes are free. The tape keeps the first error (core/tape.h).
//
//   const Var scores = Scale(MatMul(query, key, {.transpose_b = true}), 0.125);  // [B, H, T, S]
//   const Var weights = Softmax(CausalMask(scores, -1e9));
#ifndef WEFT_OPS_OPS_H_
#define WEFT_OPS_OPS_H_

#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "weft/core/tape.h"

namespace weft {

// These functions create constants of any dtype; only Iota does not accept bool. Here and below, a double that is used
// with i32 values must be an integer in the range of i32.
Var Fill(Tape* tape, TensorType type, double value);  // every element is `value`
Var FillLike(Var x, double value);                    // the same, with x's type
Var Iota(Tape* tape, DType dtype, int64_t n);         // [n]: 0, 1, ..., n - 1

// These functions change shape, order or dtype, and accept any dtype. A negative axis counts from the end.
Var Reshape(Var x, const Shape& shape);  // the same elements in the same order; one size may be -1 and is inferred
// An AxisSpan is written {0, -1}. An empty one is written AxisSpan(), because Sum(x, {}) sums axis 0. Naming an axis
// twice is an error.
using AxisSpan = absl::Span<const int>;
Var Permute(Var x, AxisSpan axes);                                          // y.dim(i) = x.dim(axes[i])
Var Transpose(Var x, int axis_a, int axis_b);                               // swaps two axes
Var BroadcastTo(Var x, const Shape& shape);                                 // as NumPy's broadcast_to
Var Slice(Var x, int axis, int64_t begin, int64_t end);                     // x[..., begin:end, ...]
Var Pad(Var x, int axis, int64_t before, int64_t after, double value = 0);  // adds elements `value` along an axis
Var Concat(VarSpan parts, int axis);                                        // joins at least one part along an axis
VarList Split(Var x, int axis, int parts);  // equal parts along an axis; an axis of size 0 gives at most 1024 parts
Var Squeeze(Var x, AxisSpan axes);          // drops these axes, whose sizes must be 1
Var Unsqueeze(Var x, int axis);             // inserts an axis of size 1; `axis` is its index in the result
Var Stack(VarSpan parts, int axis);         // joins parts of one shape along a new axis; `axis` as in Unsqueeze
Var Flip(Var x, int axis);                  // reverses the order along an axis
Var Triu(Var x, int64_t diagonal = 0);      // [..., T, S]: 0 where column - row < diagonal, else x
Var Tril(Var x, int64_t diagonal = 0);      // [..., T, S]: 0 where column - row > diagonal, else x
Var Cast(Var x, DType dtype);               // to floats rounds to nearest even, to i32 truncates, to bool is x != 0

// Elementwise functions. Two inputs broadcast by NumPy's rule. Add to Clamp also accept i32: results that do not fit
// wrap around, quotients are truncated, and x / 0 is 0.
Var Add(Var a, Var b);
Var Sub(Var a, Var b);
Var Mul(Var a, Var b);
Var Div(Var a, Var b);
Var Minimum(Var a, Var b);  // NaN if an input is NaN; if both are equal, the gradient goes to a
Var Maximum(Var a, Var b);  // NaN if an input is NaN; if both are equal, the gradient goes to a
Var Neg(Var x);
Var Abs(Var x);                             // the gradient is 0 at 0
Var Clamp(Var x, double low, double high);  // min(max(x, low), high); the gradient is 1 where x equals a bound
// Comparisons return bool and have no gradients. Equal, NotEqual and IsNan accept any dtype, the others f32, f64, bf16
// and i32. If an input is NaN, NotEqual and IsNan are true and the others are false.
Var Equal(Var a, Var b);
Var NotEqual(Var a, Var b);
Var Less(Var a, Var b);
Var LessEqual(Var a, Var b);
Var Greater(Var a, Var b);
Var GreaterEqual(Var a, Var b);
Var IsNan(Var x);
// Logic of bools.
Var Not(Var x);
Var And(Var a, Var b);
Var Or(Var a, Var b);
Var Xor(Var a, Var b);
Var Pow(Var a, Var b);            // a^b, with special values as <cmath>'s pow; d/db is 0 at a = 0, b >= 0
Var Pow(Var x, double exponent);  // x^exponent; exponents 2, 3, 0.5 and -1 become products, a root and a quotient
Var Sign(Var x);                  // -1, 0 or 1
Var Square(Var x);
Var Scale(Var x, double factor);  // factor · x
Var Exp(Var x);                   // in f32 and bf16, 0 for x < -86.98
Var Log(Var x);
Var Sqrt(Var x);
Var Rsqrt(Var x);     // 1 / sqrt(x)
Var Softplus(Var x);  // log(1 + exp(x)), without overflow
Var Tanh(Var x);
Var Erf(Var x);      // 2/√π ∫ exp(-t²) dt from 0 to x
Var Relu(Var x);     // max(x, 0); the gradient is 0 at 0
Var Sigmoid(Var x);  // 1 / (1 + exp(-x))
Var Silu(Var x);     // x · sigmoid(x) (Elfwing et al., 2018)
enum class GeluForm : uint8_t { kErf, kTanh };
Var Gelu(Var x, GeluForm form = GeluForm::kErf);  // x·Φ(x) (Hendrycks and Gimpel, 2016), or its tanh approximation
Var MaskFill(Var x, Var mask, double value);  // value where the bool mask, broadcast to x, is true, else x; any dtype
// BandMask returns x [..., T, S] with `value` in all columns except p - left to p + right. A negative limit is no
// limit. p is the position of a row: row + S - T, or an element of `positions`, i32 [B, T], for x [B, ..., T, S].
// CausalMask(x, value) is BandMask(x, -1, 0, value). Both take any dtype.
Var BandMask(Var x, int64_t left, int64_t right, double value, Var positions = {});
Var CausalMask(Var x, double value);
Var Where(Var mask, Var a, Var b);  // a where the bool mask is true, else b; any dtype; all three broadcast
// Zeroes each element with probability `rate`, and multiplies the others by 1 / (1 - rate) (Srivastava et al., 2014).
// If `rate` is 0, and in mode kEval, returns x. Random numbers depend on the seed, the step, the number of this call's
// random stream, and the element's index.
Var Dropout(Var x, double rate);

// Reductions along one or more axes. Sums add blocks of 64 elements in a fixed order, whatever the number of threads.
// If `keep`, reduced axes stay, with size 1; otherwise they are dropped. Sums and means of bf16 are f32.
Var Sum(Var x);  // [], over all axes
Var Sum(Var x, int axis, bool keep = false);
Var Sum(Var x, AxisSpan axes, bool keep = false);
Var Mean(Var x);
Var Mean(Var x, int axis, bool keep = false);
Var Mean(Var x, AxisSpan axes, bool keep = false);
// Returns Σ (x - mean)² / (n - correction), where n is the number of elements and correction >= 0.
Var Variance(Var x, AxisSpan axes, double correction = 1, bool keep = false);
Var Max(Var x, int axis, bool keep = false);  // equal maxima share the gradient; an error if there are no elements
Var Max(Var x, AxisSpan axes, bool keep = false);
Var Min(Var x, AxisSpan axes, bool keep = false);
Var Prod(Var x, AxisSpan axes, bool keep = false);  // also i32; 1 if there are no elements
// Returns (Σ |x|^order)^(1/order) for order > 0, or max |x| for order infinity; 0 if there are no elements. Where the
// norm is 0, its gradient is 0.
Var Norm(Var x, AxisSpan axes, double order = 2, bool keep = false);
Var SumTo(Var x, const Shape& shape);  // sums x to `shape`, which must broadcast to x's shape; keeps x's dtype
Var LogSumExp(Var x, int axis, bool keep = false);  // log Σ exp(x), without overflow; -inf if there are no elements
Var LogSumExp(Var x, AxisSpan axes, bool keep = false);
// Returns y[..., i] = Σ_{j ≤ i} x[..., j], or Σ_{j ≥ i} if `reverse`. Accepts f32, f64 and i32.
Var CumulativeSum(Var x, bool reverse = false);
// Returns two results [..., k]: the k greatest elements of each row [n] along the last axis, in descending order, and
// their i32 indices. NaN counts as the greatest. Equal elements are in ascending order of their indices. 0 <= k <= n.
// Accepts f32, f64 and i32.
VarList TopK(Var x, int64_t k);
Var ArgMax(Var x);  // [..., n] → i32 [...]: the index of the greatest value of each row, the first among equals

// Products, normalisation, look-up.
struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;  // swaps the last two axes of an operand, without a copy
  bool f32_output = false;                        // bf16 inputs give f32; sums are f32 in any case
};
bool HasBF16Products();  // whether the CPU multiplies bf16; if not, MatMul of bf16 is slower than MatMul of f32
// Returns [..., M, K] × [..., K, N] = [..., M, N]. Leading axes broadcast.
Var MatMul(Var a, Var b, MatMulOptions options = {});
Var MatMulAdd(Var a, Var b, Var c, MatMulOptions options = {});  // a × b + c, in c's bytes if nothing else reads c
// ScaledDotProductAttention computes dropout(softmax(scale · query keyᵀ, masked)) · value for each head (Vaswani et
// al., 2017). The whole matrix of scores never exists. query is [B, T, heads · D], key [B, S, G · D], value
// [B, S, G · E]. Each may also be by head: [B, heads, T, D], [B, G, S, D], [B, G, S, E]. Up to four masks broadcast to
// [B, heads, T, S]. A bool mask hides a source from a target where it is true; a mask of numbers is added to the
// scores. The result is [B, T, heads · E], with zeros for a target that sees no source.
struct ScaledDotProductOptions {
  int64_t heads = 1;
  int64_t key_value_heads = 0;  // G, a divisor of heads; 0: as many as heads
  double scale = 0;             // 0: 1 / sqrt(D)
  double soft_cap = 0;          // c: scores become c · tanh(score / c) before masks (Gemma Team, 2024); 0: no cap
  double dropout = 0;           // rate at which attention weights are dropped
  bool causal = false;          // hides sources > t + S - T from target t, so that the last target sees all
  // A target at position p = t + S - T sees the sources p - window + 1 to p + window - 1; 0: no window.
  int64_t window = 0;
};
Var ScaledDotProductAttention(Var query, Var key, Var value, const ScaledDotProductOptions& options,
                              VarSpan masks = {});
// Softmax returns exp(x_i) / Σ_j exp(x_j) along the last axis, and LogSoftmax its logarithm. If all elements of a row
// are -inf, Softmax gives zeros and LogSoftmax -inf. A row with a NaN or +inf gives NaNs.
Var Softmax(Var x);
Var LogSoftmax(Var x);
// Returns gain · (x - mean) / sqrt(variance + epsilon) + bias along the last axis (Ba et al., 2016). gain and bias [C]
// have x's dtype, or f32 if x is bf16.
Var LayerNorm(Var x, Var gain, Var bias, double epsilon = 1e-5);
// Returns gain · x / sqrt(mean(x²) + epsilon) along the last axis (Zhang and Sennrich, 2019). gain [C] has x's dtype,
// or f32 if x is bf16.
Var RmsNorm(Var x, Var gain, double epsilon = 1e-5);
// Computes y = gain · (x - mean) / sqrt(variance + epsilon) + bias for each feature of x [..., C] (Ioffe and Szegedy,
// 2015). Mean and variance are over all n rows, with the variance divided by n. In mode kEval, running_mean and
// running_variance take their place. All vectors are [C]. The results `mean` and `variance` are those that y uses.
struct BatchNormResult {
  Var y, mean, variance;
};
BatchNormResult BatchNorm(Var x, Var gain, Var bias, Var running_mean, Var running_variance, double epsilon = 1e-5);
// Returns table[ids] [..., C], for table [V, C] and ids i32 [...]. An id outside 0 .. V-1 gives zeros and no gradient.
// If ids is an Input, its InputBounds (core/program.h) must have 0 < below <= V, and may have ignored = -1, for
// padding.
Var Embedding(Var table, Var ids);
Var Gather(Var x, Var ids, int axis);  // slices of x along the axis, at ids i32 of any shape, as NumPy's take
// For axis 1, returns y[i, j] = x[i, ids[i, j]], as PyTorch's gather. ids are i32 and have x's rank. Along axes other
// than `axis`, ids have at most as many elements as x. An id outside the axis gives 0 and no gradient.
Var TakeAlong(Var x, Var ids, int axis);
// For axis 1, returns x with updates[i, j] added to element [i, ids[i, j]]. ids are as in TakeAlong, and updates have
// the shape of ids. An id outside the axis adds nothing.
Var ScatterAdd(Var x, Var ids, Var updates, int axis);
Var OneHot(Var ids, int64_t n, DType dtype);  // ids i32 [...] → [..., n]: 1 at the id, else 0
// Rotates pairs of features (a, b) to (a · cosine - b · sine, b · cosine + a · sine) (Su et al., 2021). x is
// [..., T, D]. cosine and sine are [T, D/2], or any shape that broadcasts to [..., T, D/2]. kHalves pairs features i
// and i + D/2, as Hugging Face does; kPairs pairs 2i and 2i + 1.
enum class RotaryLayout : uint8_t { kHalves, kPairs };
Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout);

// Losses.
enum class Reduction : uint8_t { kMean, kSum, kNone };
struct CrossEntropyOptions {
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
  Var weights = {};  // weight of each class, [V], in the logits' dtype; empty: 1
  Reduction reduction = Reduction::kMean;
};
// Returns -Σ_v w_v · q_v · log softmax(logits)_v for logits [..., V] and targets i32 [...]. w is `weights`; q is
// 1 - s + s / V at the target and s / V elsewhere, with s = label_smoothing. Targets equal to ignore_index, or outside
// 0 .. V-1, give 0. kMean divides by the sum of the targets' weights; the result is NaN if all targets are ignored.
// The formula is PyTorch's, which refuses targets outside 0 .. V-1. If targets is an Input, its InputBounds
// (core/program.h) must have 0 < below <= V, and may have ignored = ignore_index. Targets may also be probabilities p
// [..., V] in the logits' dtype. Then q is (1 - s) · p + s / V, and kMean divides by the number of rows.
Var CrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options = {});
// Returns -w_v · log_p_v at the target v, for log_p [..., V] and targets i32 [...]. Options are as in CrossEntropy, but
// label_smoothing must be 0.
Var NegativeLogLikelihood(Var log_p, Var targets, const CrossEntropyOptions& options = {});
// Returns softplus(logits) - logits · targets for each element, then reduced. Targets in [0, 1] have the logits' type.
Var BinaryCrossEntropy(Var logits, Var targets, Reduction reduction = Reduction::kMean);
Var MeanSquaredError(Var x, Var y, Reduction reduction = Reduction::kMean);  // (x - y)², elementwise
// Returns Σ_v p_v · (log p_v - log_q_v) for each row along the last axis, then reduced. Terms with p_v = 0 are 0.
Var KlDivergence(Var log_q, Var p, Reduction reduction = Reduction::kMean);

// Gradients (see Tape::Gradient).
inline VarList Gradient(Var loss, VarSpan wrt) { return loss.tape->Gradient(loss, wrt); }
// Returns y [R, C] with y[r, :] = x[r, :] + Σ dy[i, :] over all i with ids[i] = rows[r]: these rows of an embedding's
// gradient, added to rows x of another gradient of the table. rows are i32 [R], dy is [..., C], and ids are i32 [...].
Var EmbeddingGradientAt(Var x, Var rows, Var dy, Var ids);
Var SquareSum(Var x);             // [] Σ x²
Var GlobalNorm(VarSpan tensors);  // [] sqrt(Σ x²) over all elements of at least one tensor; the gradient is 0 at 0
// SquareSum(x) is Sum(SquareSumBlocks(x)), and GlobalNorm is RootOfSum of all square sums. So a norm has the same bits
// if the blocks of x are on several ranks. Each block has SquareSumBlockRows rows of x seen as [rows, cols]. The last
// block may have fewer rows.
Var SquareSumBlocks(Var x);  // [blocks] Σ x² of each block
int64_t SquareSumBlockRows(const Shape& x);
Var RootOfSum(VarSpan squares);  // [] sqrt(Σ s) over scalars [] s >= 0
// Returns the factor f32 [] that clips gradients of norm `norm`: min(1, max_norm / (norm + 1e-6)), as PyTorch's
// clip_grad_norm_. If `max_norm` is 0, the factor is 1. If `norm` is not finite, the factor is always NaN, and the
// updates below then change nothing.
Var ClipScale(Var norm, double max_norm);

// The updates below overwrite state. Each returns the next version of the state, which later ops may read.
//
// Writes rows [B, H, T, D] into a cache [B, H, S, D] at positions i32 [B, T] along S. A row whose position is outside
// 0 .. S-1 is not written. If positions is an Input, its InputBounds (core/program.h) must have 0 < below <= S, and may
// have ignored = -1, for padding. With `pages`, i32 [B, P], texts share a cache [N, H, S, D] of N pages: position p of
// text b is at p % S in page pages[b, p / S], so there are P·S positions.
Var CacheAppend(Var cache, Var rows, Var positions, Var pages = {});
// Returns the rows of each text, [B, G, P·S, D], that are in `pages`, i32 [B, P], of a cache [N, G, S, D]. If single
// tokens attend to the result, the compiler copies nothing, provided that a page has at most kCachePage rows.
Var ReadPages(Var cache, Var pages);
inline constexpr int64_t kCachePage = 64;
Var Assign(Var state, Var value);  // any dtype; the value has the state's type
// s ← 0 + x if `first`, i32 [], is not 0; otherwise s ← s + x. x: the type of the state s, or f32 if s is bf16.
Var Accumulate(Var s, Var x, Var first);
// Replaces rows of a state [V, C]: state[rows[r] - begin, :] ← values[r, :], for rows i32 [R] and values [R, C]. A row
// outside begin .. begin + V - 1 is not written. If several r name one row, the last of them is written.
Var WriteRows(Var state, Var rows, Var values, int64_t begin = 0);
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  auto Fields() const {  // as the op's attributes, here and below
    return std::tuple{AttrField{"beta1", beta1}, AttrField{"beta2", beta2}, AttrField{"epsilon", epsilon},
                      AttrField{"weight_decay", weight_decay}};
  }
};
// One update of AdamW (Loshchilov and Hutter, 2019) in one pass over memory, with g = grad · grad_scale:
//   m ← β1·m + (1-β1)·g;  v ← β2·v + (1-β2)·g²
//   w ← w - rate·decay·w - rate · (m / (1-β1^step)) / (sqrt(v / (1-β2^step)) + ε)
// w, m, v and grad have one type; rate and grad_scale are f32 []; step is i32 [], and 1 in the first step. If
// grad_scale is not finite, nothing changes. Returns the next w, m, v.
VarList AdamWUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options);
// One update of Adam (Kingma and Ba, 2015): as AdamWUpdate, except that the decay is part of the gradient,
// g = grad · grad_scale + decay·w.
VarList AdamUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options);
struct SgdOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  auto Fields() const {
    return std::tuple{AttrField{"momentum", momentum}, AttrField{"weight_decay", weight_decay},
                      AttrField{"nesterov", nesterov}};
  }
};
// One update of SGD with momentum, as PyTorch's with dampening 0: g = grad · grad_scale + decay·w; m ← momentum·m + g;
// w ← w - rate·m, or w - rate·(g + momentum·m) if `nesterov`. Returns the next w, m.
VarList SgdUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const SgdOptions& options);
struct AdagradOptions {
  double epsilon = 1e-10, weight_decay = 0, rate_decay = 0;
};
// One update of Adagrad (Duchi et al., 2011): g = grad · grad_scale + decay·w; sum ← sum + g²;
// w ← w - rate / (1 + (step - 1)·rate_decay) · g / (sqrt(sum) + ε). Types are as in AdamWUpdate. Returns the next w,
// sum.
VarList AdagradUpdate(Var w, Var sum, Var grad, Var rate, Var grad_scale, Var step, const AdagradOptions& options);
struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
// One update of Lion (Chen et al., 2023) with g = grad · grad_scale: w ← w - rate·(sign(β1·m + (1-β1)·g) + decay·w);
// m ← β2·m + (1-β2)·g. Returns the next w, m.
VarList LionUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const LionOptions& options);
struct MuonOptions {
  double momentum = 0.95, weight_decay = 0;
  bool nesterov = true;
  bool bf16 = false;  // whether O(u) is computed in bf16, as PyTorch does; false: in w's dtype
};
// One update of Muon (Jordan et al., 2024) for a matrix w, as PyTorch's, with g = grad · grad_scale:
//   m ← momentum·m + (1-momentum)·g;  u = nesterov ? (1-momentum)·g + momentum·m : m
//   w ← w - rate·(sqrt(max(1, rows / columns)) · O(u) + decay·w)
// O(u) is nearly the orthogonal matrix next to u, by five steps of Newton and Schulz. Returns the next w, m.
VarList MuonUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const MuonOptions& options);
struct AdafactorOptions {
  double beta2_decay = 0.8, weight_decay = 0;
};
// One update of Adafactor (Shazeer and Stern, 2018) without momentum, as PyTorch's, with g = grad · grad_scale:
//   v ← v + (g² - v) · step^-beta2_decay;  u = g / sqrt(v);  a = min(rate, 1 / sqrt(step)) · max(1e-3, RMS(w))
//   w ← w - a · u / max(1, RMS(u)) - rate·decay·w
// `squares` is v for a vector or a scalar. For other weights it is the mean of v along rows and along columns, and v is
// their product divided by the mean of the first. Returns the next w and squares.
VarList AdafactorUpdate(Var w, VarSpan squares, Var grad, Var rate, Var grad_scale, Var step,
                        const AdafactorOptions& options);
// Returns the types of `squares`: [..., R, 1] and [..., 1, C] for a weight [..., R, C], else the weight's type.
std::vector<TensorType> AdafactorStates(const TensorType& weight);

// Operators. A number becomes a constant with the dtype of the other operand.
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
