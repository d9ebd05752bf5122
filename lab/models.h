// The models that benchmarks train or run; bench/peers/ has the same ones for PyTorch.
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
#include "weft/graph/compile.h"

namespace weft {

struct BenchModel {
  const char* name;
  int64_t vocabulary, context, layers, heads, width;
  int64_t batch, length;  // that docs/performance.md has
  bool causal = true;
  bool trains = true;  // false: a step is a forward pass, of a BERT-style encoder
};

// gpt2, bert, babygpt, charcpu: pre-norm blocks with packed queries, keys and values, GELU's tanh form, a tied head, no
// dropout; bert is not causal. minilm-forward: six post-norm layers of MiniLM's sizes, GELU, no head.
absl::Span<const BenchModel> BenchModels();
std::vector<std::string> BenchModelNames();
const BenchModel* FindBenchModel(absl::string_view name);  // null if there is none

struct BenchStep {
  Var tokens;         // i32 [B, T]
  Var targets, rate;  // i32 [B, T], f32 []; null where nothing is trained
  Var result;         // the loss [], or the encoder's last layer [B, T, C]
  Var update;         // by AdamW with gradients clipped at norm 1; null where nothing is trained
  double flops = 0;   // 6 for each weight and token; of a forward pass 2 for each weight outside the embeddings
};

// The same ones in every program: 0 .. below - 1, of one of many streams.
std::vector<int32_t> RandomTokens(int64_t count, int64_t below, uint32_t stream);

// length may be above the model's context, which then grows.
BenchStep RecordStep(Tape* tape, const BenchModel& model, int64_t batch, int64_t length);
CompileOptions OptionsFor(const BenchStep& step);

}  // namespace weft

#endif  // WEFT_LAB_MODELS_H_
