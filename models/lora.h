// A LoraScope adds low-rank adapters to the named products that layers record on a tape (Hu et al., "LoRA: low-rank
// adaptation of large language models", 2021). The published weights stay as they are; training changes the adapters.
//
//   Tape tape;
//   Var logits;
//   {
//     const LoraScope lora(&tape, {.rank = 8, .also_train = "classifier"});
//     logits = bert.Classify(bert.Pool(bert.Encode(tokens)), /*classes=*/2);
//   }
//
// A layer NAME with the weight W [out, in] then gives x·Wᵀ + bias + (alpha / rank)·(dropout(x)·Aᵀ)·Bᵀ. The adapter's
// weights are "NAME.lora_A.weight" A [rank, in] and "NAME.lora_B.weight" B [out, rank], as in the package PEFT. B
// starts at 0, so that the model starts as it was. The kind of all other weights is ParameterKind::kFrozen.
#ifndef WEFT_MODELS_LORA_H_
#define WEFT_MODELS_LORA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/tape.h"

namespace weft {

// The ends of the adapters' names, after the name of the layer.
inline constexpr char kLoraA[] = ".lora_A.weight", kLoraB[] = ".lora_B.weight";

// The value of `targets` for the layers that compute queries and values, which PEFT adapts by default.
inline constexpr char kQueriesAndValues[] = "queries-and-values";

struct LoraOptions {
  int64_t rank = 0;    // rows of A and columns of B; 0: no adapters, and all weights are trained
  double alpha = 16;   // the adapter's result is multiplied by alpha / rank
  double dropout = 0;  // probability for the adapter's input
  // Patterns of layers' names, separated by commas. * matches any text, and ? one character. A layer's name is that of
  // its weight without ".weight". `targets`: the layers that get adapters. `also_train`: layers whose own weights are
  // trained, such as a new classifier's.
  std::string targets = kQueriesAndValues, also_train;

  double scale() const { return alpha / static_cast<double>(rank); }
};

// Returns InvalidArgument if an option is out of its range, or if there is a rank but no target.
absl::Status Validate(const LoraOptions& options);

// While a LoraScope exists, each layer that is recorded on its tape and matches a pattern of `targets` gets an adapter.
// If a pattern matches no layer, the destructor fails the tape with InvalidArgument, which lists names that exist. If
// the rank is 0, the scope does nothing.
class LoraScope final : public Adaptation {
 public:
  LoraScope(Tape* tape, const LoraOptions& options);
  ~LoraScope() override;
  LoraScope(const LoraScope&) = delete;
  LoraScope& operator=(const LoraScope&) = delete;

  // Reports whether training changes the weight `full_name`: an adapter's, or one of `also_train`.
  bool Trains(absl::string_view full_name) const override;
  Var Adapt(Var x, Var weight, Var y) override;

 private:
  Tape* tape_;
  LoraOptions options_;
  Adaptation* outer_;
  std::vector<std::string> layers_;  // names of all layers so far
};

}  // namespace weft

#endif  // WEFT_MODELS_LORA_H_
