// Layers: functions that record their parameters and their mathematics. Each opens a scope of its name, so that its
// parameters are called "NAME.weight" and "NAME.bias" within the scopes around it.
//
// Axes: B batch, T target length, H heads, D head width, C model width, F feed-forward width, V vocabulary.
#ifndef WEFT_MODELS_LAYERS_H_
#define WEFT_MODELS_LAYERS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "weft/ops/ops.h"

namespace weft {

struct LinearOptions {
  bool bias = true;
  Initializer initializer = Gaussian(0.02f);  // of the weight; the bias starts at 0
};
// x [..., in] · weightᵀ + bias = [..., width]; weight [width, in] as in PyTorch's nn.Linear.
Var Linear(absl::string_view name, Var x, int64_t width, const LinearOptions& options = {});

// LayerNorm over the last axis, with gain ("weight") 1 and bias 0 at the start.
Var LayerNorm(absl::string_view name, Var x, double epsilon = 1e-5);

// A table [V, C] of its own scope, for Embedding(table, ids) and for a tied head.
Var EmbeddingTable(absl::string_view name, Tape* tape, int64_t vocabulary, int64_t width,
                   Initializer initializer = Gaussian(0.02f));

enum class Activation : uint8_t { kRelu, kGelu, kGeluTanh };
Var Activate(Var x, Activation activation);

struct FeedForwardOptions {
  int64_t width = 0;  // F; 0: 4·C
  Activation activation = Activation::kGeluTanh;
  double dropout = 0;
  bool bias = true;
  Initializer output_initializer = Gaussian(0.02f);
};
// x [..., C] → "c_fc" [..., F] → activation → "c_proj" [..., C] → dropout (Vaswani et al., 2017, 3.3).
Var FeedForward(absl::string_view name, Var x, const FeedForwardOptions& options);

}  // namespace weft

#endif  // WEFT_MODELS_LAYERS_H_
