// A BeamGenerator searches likely continuations of prompts with a GPT, by beam search (inference/beam_search.h).
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, BeamGenerator::Create(config, &parameters, {.beam = 5, .length = 40}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<Hypothesis> best, generator->Generate(prompt));
//
// The cache has pages of one position. The prompt is read once, and hypotheses share the pages of their common tokens,
// so no keys and values are copied.
#ifndef WEFT_INFERENCE_BEAM_GENERATION_H_
#define WEFT_INFERENCE_BEAM_GENERATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/beam_search.h"
#include "weft/inference/cached_gpt.h"
#include "weft/inference/runtime.h"
#include "weft/models/gpt.h"

namespace weft {

struct BeamGeneratorOptions {
  RuntimeOptions runtime = {};  // without the batch: one prompt is continued at a time
  int64_t beam = 4;             // maximum number of live hypotheses, at most CachedGpt::kStepRows
  int64_t n_best = 1;           // maximum number of continuations to return, at most `beam`
  int64_t length = 100;         // maximum number of tokens to add; fewer if the context ends
  int64_t max_length = 0;       // maximum number of tokens of a text with its prompt; 0: no limit
  int64_t vocabulary = 0;       // above 0: only tokens below this number are added, as in GenerateOptions
  double length_penalty = 1;    // as in BeamSearchOptions
  std::vector<int32_t> stop;    // tokens that end a continuation, which does not include them
};

class BeamGenerator {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the generator.
  static absl::StatusOr<std::unique_ptr<BeamGenerator>> Create(const GptConfig& config, Parameters* parameters,
                                                               const BeamGeneratorOptions& options);

  // Returns the continuations of `prompt` with the highest scores, highest first. Returns InvalidArgument if the prompt
  // has no tokens, a token outside the vocabulary, or more tokens than the context.
  absl::StatusOr<std::vector<Hypothesis>> Generate(absl::Span<const int32_t> prompt);

 private:
  BeamGenerator(const GptConfig& config, const BeamGeneratorOptions& options);
  absl::StatusOr<const float*> ReadPrompt(absl::Span<const int32_t> prompt);
  absl::StatusOr<const float*> ReadNewest(size_t prompt, const BeamSearch& search);
  void Extend(const float* logits, BeamSearch* search) const;

  const GptConfig config_;
  const BeamGeneratorOptions options_;
  const int32_t end_;  // the search's end token, which stands for all stop tokens
  std::unique_ptr<CachedGpt> gpt_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_BEAM_GENERATION_H_
