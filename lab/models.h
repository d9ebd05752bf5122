// BenchModels are the models that benchmarks train or run. bench/peers/ has the same models for PyTorch.
//
//   const BenchModel* model = FindBenchModel("gpt2");
//   Tape tape;
//   const BenchStep step = RecordStep(&tape, *model, model->batch, model->length);
//   absl::StatusOr<Graph> graph = Compile(tape, OptionsFor(step));
#ifndef WEFT_LAB_MODELS_H_
#define WEFT_LAB_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {

struct BenchModel {
  const char* name;
  int64_t vocabulary, context, layers, heads, width;
  int64_t batch, length;  // as in docs/performance.md
  bool causal = true;
  bool trains = true;  // false: a step is only the forward pass of a BERT-style encoder
  int64_t window = 0;  // a position sees the positions at a distance below `window`; 0: all
};

// The models gpt2, bert, babygpt and charcpu have pre-norm blocks, GELU's tanh form, a tied head and no dropout. One
// product computes queries, keys and values. All but bert are causal. minilm-forward has six post-norm layers of
// MiniLM's sizes with GELU's erf form, and no head.
absl::Span<const BenchModel> BenchModels();
std::vector<std::string> BenchModelNames();
const BenchModel* FindBenchModel(absl::string_view name);  // null if there is no such model

struct BenchStep {
  Var tokens;         // i32 [B, T]
  Var targets, rate;  // i32 [B, T], f32 []; null if the model is not trained
  Var result;         // the loss [], or the encoder's last layer [B, T, C]
  Var update;         // by AdamW with gradients clipped at norm 1; null if the model is not trained
  double flops = 0;   // tokens times weights times 6; times 2 in a forward pass, without embeddings
};

// Returns `count` random tokens in 0 .. below - 1, drawn from `stream`. Equal arguments give equal tokens in every
// program.
std::vector<int32_t> RandomTokens(int64_t count, int64_t below, uint32_t stream);

// Records the loss of a model for training on `tape`. The result has no rate, no update and no FLOPs. If `length`
// exceeds the model's context, the context grows to `length`.
BenchStep RecordLoss(Tape* tape, const BenchModel& model, int64_t batch, int64_t length);
// Returns the optimizer of a training step: AdamW with gradients clipped at norm 1.
Optimizer BenchOptimizer();
// Records on `tape` a training step or, if the model is not trained, a forward pass. If `length` exceeds the model's
// context, the context grows to `length`.
BenchStep RecordStep(Tape* tape, const BenchModel& model, int64_t batch, int64_t length);
CompileOptions OptionsFor(const BenchStep& step);

}  // namespace weft

#endif  // WEFT_LAB_MODELS_H_
