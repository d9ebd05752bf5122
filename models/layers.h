// Layers of neural networks are functions that record a layer's parameters and its computation on a tape.
//
//   Var h = Activate(Linear("fc1", x, 4 * width), Activation::kGelu);   // [B, T, C] → [B, T, 4·C]
//   Var y = LayerNorm("norm", x + Linear("fc2", h, width));             // [B, T, C]
//
// Each layer opens a scope of its name, so its parameters are called "NAME.weight" and "NAME.bias" within the scopes
// around it. Axes: B batch, T target length, H heads, D head width, C model width, F feed-forward width, V vocabulary.
#ifndef WEFT_MODELS_LAYERS_H_
#define WEFT_MODELS_LAYERS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "weft/ops/ops.h"

namespace weft {

struct LinearOptions {
  bool bias = true;
  Initializer initializer = Gaussian(0.02f);  // of the weight; the bias starts at 0
};
// Returns x [..., in] · weightᵀ + bias: [..., width]. The weight is [width, in], as in PyTorch's nn.Linear. `rows`: i32
// [U], the rows of the weight, if only their outputs [..., U] are wanted. They exclude adapters.
Var Linear(absl::string_view name, Var x, int64_t width, const LinearOptions& options = {}, Var rows = {});

// Normalises over the last axis. The gain ("weight") starts at 1 and the bias at 0. Both are f32 if x is bf16.
Var LayerNorm(absl::string_view name, Var x, double epsilon = 1e-5);

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the batch's mean and unbiased variance in an update of the running statistics
};
// Normalises over all axes except the last. The gain ("weight") starts at 1 and the bias at 0. In mode kEval, the
// statistics "NAME.running_mean" and "NAME.running_var" replace those of the batch. Their next versions are appended to
// `updates`, for CompileOptions::update. If `updates` is null, training steps update them (kNextState).
// Padding counts like other rows, so it changes the results of other sentences. models/batch_norm_test.cc measures this
// effect, which is why Transformers use LayerNorm. Excludes adapters, which are saved without statistics.
Var BatchNorm(absl::string_view name, Var x, const BatchNormOptions& options, VarList* updates = nullptr);

struct EmbeddingTableOptions {
  Initializer initializer = Gaussian(0.02f);
  DType dtype = kF32;  // also of all layers after the table, because layers take over the dtype of x
  // The least precise dtype in which inference holds the table (Tape::Parameter). In Q4_0, errors of the token table
  // would weigh more than those of all other weights, because it is the input and, in a tied head, the output.
  DType least = kQ8_0;
};
// Records a parameter "NAME.weight" [V, C] and returns it, for Embedding(table, ids) and for a head tied to the table.
Var EmbeddingTable(absl::string_view name, Tape* tape, int64_t vocabulary, int64_t width,
                   const EmbeddingTableOptions& options = {});

// Returns a constant [rows, cols] with the entries value(row, column), in f32 or f64.
Var ConstantTable(Tape* tape, DType dtype, int64_t rows, int64_t cols,
                  absl::FunctionRef<double(int64_t, int64_t)> value);
// Sinusoids [length, C] in f32 or f64, for positions p from `first` on (Vaswani et al., 2017, section 3.5).
// kInterleaved, as published: features 2i and 2i + 1 are sine and cosine of p / 10000^(2i / C). kHalves, as in
// Tensor2Tensor: features i and C/2 + i are sine and cosine of p / 10000^(i / (C/2 - 1)).
enum class SinusoidLayout : uint8_t { kInterleaved, kHalves };
// Returns one number of SinusoidalPositions.
double Sinusoid(int64_t position, int64_t feature, int64_t width, SinusoidLayout layout);
Var SinusoidalPositions(Tape* tape, DType dtype, int64_t length, int64_t width,
                        SinusoidLayout layout = SinusoidLayout::kInterleaved, int64_t first = 0);

// Returns factor · x, or x itself if `factor` is 1.
inline Var Scaled(Var x, double factor) { return factor == 1 ? x : Scale(x, factor); }

enum class NormKind : uint8_t { kLayerNorm, kRmsNorm, kBatchNorm };
struct NormOptions {
  NormKind kind = NormKind::kLayerNorm;
  double epsilon = 1e-5;
  bool bias = true;       // of kLayerNorm
  bool plus_one = false;  // true: the gain is 1 + weight, and the weight starts at 0 (Gemma Team, 2024)
};
Var Norm(absl::string_view name, Var x, const NormOptions& options);

// The parts of a Transformer that a model leaves out. It is for study only: it shows what each part is for, and no
// published model or file format has such a model. By default nothing is left out.
//
//   GptConfig config = {.layers = 4, .ablation = {.residual = true}};
struct Ablation {
  bool residual = false;      // a block's layer replaces x; its result is not added to x
  bool norm = false;          // the model has no norm anywhere
  bool feed_forward = false;  // blocks have no feed-forward layer, and no norm and residual connection of it
  bool value = false;         // a head's values are its part of the features of the keys' input, without a layer
  bool query_is_key = false;  // one layer computes both queries and keys

  friend bool operator==(const Ablation&, const Ablation&) = default;
};
// Returns Norm(name, x, options) or, if norms are left out, x.
Var Norm(absl::string_view name, Var x, const NormOptions& options, const Ablation& ablation);

enum class Activation : uint8_t { kRelu, kReluSquared, kGelu, kGeluTanh, kSilu };
Var Activate(Var x, Activation activation);

struct FeedForwardOptions {
  int64_t width = 0;  // F; 0: 4·C
  Activation activation = Activation::kGeluTanh;
  double dropout = 0;         // probability for the result
  double hidden_dropout = 0;  // probability for the activation's result
  bool bias = true;
  Initializer initializer = Gaussian(0.02f), output_initializer = Gaussian(0.02f);
  // Names of the layers. If `gate` is not null, the hidden layer is activation(gate) · up: SwiGLU and its variants
  // (Shazeer, 2020).
  const char *up = "c_fc", *gate = nullptr, *down = "c_proj";
};
// Returns x [..., C] → up [..., F] → activation → hidden_dropout → down [..., C] → dropout (Vaswani et al., 2017).
Var FeedForward(absl::string_view name, Var x, const FeedForwardOptions& options);

// A mixture of experts in place of one feed-forward layer.
struct MixtureOptions {
  int64_t experts = 0;    // E; 0: there is no mixture, and MixtureOfExperts records FeedForward(name, x)
  int64_t per_token = 2;  // k, the number of experts that a token uses
};
// Returns Σ w_e · FeedForward("experts.e", x) over the k experts with the greatest p_e for a row of x [..., C]. p is
// the softmax of the layer "gate" [E, C], and w_e is p_e divided by the sum of these k (Jiang et al., "Mixtral of
// experts", 2024). All experts are computed for all rows, and the weights of the others are 0. Records two probes [E]:
// how often a row uses an expert, in the mean, and the mean of p.
Var MixtureOfExperts(absl::string_view name, Var x, const FeedForwardOptions& options, const MixtureOptions& mixture);
// Returns E · Σ_e f_e · p_e for the means f and p over all mixtures on the tape, which is least if all experts are used
// equally often (Fedus et al., "Switch Transformers", 2021); null if the tape has none.
Var BalanceLoss(const Tape& tape);

// Returns, as f32 [], the mean of KL(p, q) + KL(q, p) over all targets except kIgnoredTarget. p and q are the
// softmax of `a` and `b`, [..., V]; `targets` is i32 [...]. The result is NaN if all targets are ignored.
Var SymmetricDivergence(Var a, Var b, Var targets);

// Returns, as f32 [], the number of rows of `logits` [..., V] whose greatest entry is at the row's target. `targets` is
// i32 [...]; a target of kIgnoredTarget never counts.
Var CountCorrect(Var logits, Var targets);

}  // namespace weft

#endif  // WEFT_MODELS_LAYERS_H_
