// Layers: functions that record their parameters and their mathematics. Each opens a scope of its name, so that its
// parameters are called "NAME.weight" and "NAME.bias" within the scopes around it.
//
// Axes: B batch, T target length, H heads, D head width, C model width, F feed-forward width, V vocabulary.
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
// x [..., in] · weightᵀ + bias = [..., width]; weight [width, in] as in PyTorch's nn.Linear.
Var Linear(absl::string_view name, Var x, int64_t width, const LinearOptions& options = {});

// LayerNorm over the last axis, with gain ("weight") 1 and bias 0 at the start, f32 where x is bf16.
Var LayerNorm(absl::string_view name, Var x, double epsilon = 1e-5);

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // of a batch's mean and variance (that divided by n - 1) in the running ones
};
// BatchNorm over all axes but the last, with gain ("weight") 1 and bias 0 at the start. The running statistics, which
// stand in for the batch's in mode kEval, are states "NAME.running_mean" and "NAME.running_var"; their next versions
// are added to `updates`, for CompileOptions::update. Padding counts as any row does: models/batch_norm_test.cc
// measures what that does to the sentences of a batch, which is why Transformers have LayerNorm.
Var BatchNorm(absl::string_view name, Var x, const BatchNormOptions& options, VarList* updates);

struct EmbeddingTableOptions {
  Initializer initializer = Gaussian(0.02f);
  DType dtype = kF32;  // and so of what is computed from it: other layers have that of their x
};
// A table [V, C] of its own scope, for Embedding(table, ids) and for a tied head.
Var EmbeddingTable(absl::string_view name, Tape* tape, int64_t vocabulary, int64_t width,
                   const EmbeddingTableOptions& options = {});

// A constant [rows, cols] of value(row, column), f32 or f64.
Var ConstantTable(Tape* tape, DType dtype, int64_t rows, int64_t cols,
                  absl::FunctionRef<double(int64_t, int64_t)> value);
// [length, C] of sin and cos(position / base^(2i / C)), f32 or f64, as published (Vaswani et al., 2017, 3.5): sines at
// even features and cosines at odd ones. kHalves has all sines first, and base^(i / (C/2 - 1)), as Tensor2Tensor
// computed them.
enum class SinusoidLayout : uint8_t { kInterleaved, kHalves };
Var SinusoidalPositions(Tape* tape, DType dtype, int64_t length, int64_t width,
                        SinusoidLayout layout = SinusoidLayout::kInterleaved, int64_t first = 0);

enum class NormKind : uint8_t { kLayerNorm, kRmsNorm };
struct NormOptions {
  NormKind kind = NormKind::kLayerNorm;
  double epsilon = 1e-5;
};
Var Norm(absl::string_view name, Var x, const NormOptions& options);

enum class Activation : uint8_t { kRelu, kGelu, kGeluTanh, kSilu };
Var Activate(Var x, Activation activation);

struct FeedForwardOptions {
  int64_t width = 0;  // F; 0: 4·C
  Activation activation = Activation::kGeluTanh;
  double dropout = 0, hidden_dropout = 0;  // of the result; of what the activation gives
  bool bias = true;
  Initializer initializer = Gaussian(0.02f), output_initializer = Gaussian(0.02f);
  // Names of the layers; with a gate, SwiGLU and its like (Shazeer, 2020): activation(gate) · up in between.
  const char *up = "c_fc", *gate = nullptr, *down = "c_proj";
};
// x [..., C] → up [..., F] → activation → down [..., C] → dropout (Vaswani et al., 2017, 3.3).
Var FeedForward(absl::string_view name, Var x, const FeedForwardOptions& options);

// Returns, as f32 [], the number of rows of `logits` [..., V] whose greatest entry is at the row's target. `targets`
// are i32 [...]; an ignored target (kIgnoredTarget) never counts.
Var CountCorrect(Var logits, Var targets);

}  // namespace weft

#endif  // WEFT_MODELS_LAYERS_H_
