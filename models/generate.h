// Generation of tokens by a GPT, one after the other.
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, Generator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, generator->Generate(prompt, {.length = 200, .top_k = 10}));
#ifndef WEFT_MODELS_GENERATE_H_
#define WEFT_MODELS_GENERATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/graph/runner.h"
#include "weft/models/gpt.h"

namespace weft {

struct GenerateOptions {
  int64_t length = 100;    // tokens to add
  double temperature = 1;  // divides the logits; 0: always the likeliest token
  int64_t top_k = 0;       // draw among the k likeliest; 0: among all
  uint64_t seed = 0;       // one seed gives one text
};

// Draws from softmax(logits / temperature) over the top k with `uniform` of [0, 1). Equal logits rank by their index.
int32_t SampleToken(absl::Span<const float> logits, const GenerateOptions& options, double uniform);

class Generator {
 public:
  // Compiles a graph over a window of config.context tokens. `parameters` gets the weights it doesn't have yet.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const GptConfig& config, Parameters* parameters,
                                                           int threads = 0);
  // The tokens that follow `prompt`, which has at least one; each is drawn from the last config.context tokens before
  // it, and given to `sink` at once.
  absl::StatusOr<std::vector<int32_t>> Generate(
      absl::Span<const int32_t> prompt, const GenerateOptions& options,
      absl::FunctionRef<void(int32_t)> sink = [](int32_t) {});

 private:
  Generator() = default;

  Tape tape_;
  Var tokens_, logits_;  // [1, T], [1, T, V]
  std::unique_ptr<Runner> runner_;
};

}  // namespace weft

#endif  // WEFT_MODELS_GENERATE_H_
