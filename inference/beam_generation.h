// A BeamGenerator searches likely continuations of prompts with a GPT, by beam search (inference/beam_search.h).
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, BeamGenerator::Create(config, &parameters, {.beam = 5}, {.length = 40}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<Hypothesis> best, generator->Generate(prompt));
//
// The cache has pages of one position. The prompt is read once, and hypotheses share the pages of their common tokens,
// so no keys and values are copied.
#ifndef WEFT_INFERENCE_BEAM_GENERATION_H_
#define WEFT_INFERENCE_BEAM_GENERATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/beam_search.h"
#include "weft/inference/cached_gpt.h"
#include "weft/inference/generate.h"
#include "weft/inference/page_pool.h"
#include "weft/inference/runtime.h"
#include "weft/models/gpt.h"

namespace weft {

class BeamGenerator {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the generator. Of `search`, uses `beam`, at
  // most CachedGpt::kStepRows, `n_best` and `length_penalty`. Of `options`, uses `length`, `max_length`, `vocabulary`
  // and `stop`. A continuation also ends with the context. `runtime.batch` is not used: one prompt is continued at a
  // time.
  static absl::StatusOr<std::unique_ptr<BeamGenerator>> Create(const GptConfig& config, Parameters* parameters,
                                                               const BeamSearchOptions& search,
                                                               const GenerateOptions& options,
                                                               const RuntimeOptions& runtime = {});

  // Returns the continuations of `prompt` with the highest scores, highest first. Returns InvalidArgument if the prompt
  // has no tokens, a token outside the vocabulary, or more tokens than the context.
  absl::StatusOr<std::vector<Hypothesis>> Generate(absl::Span<const int32_t> prompt);

 private:
  BeamGenerator(const GptConfig& config, const BeamSearchOptions& search, const GenerateOptions& options, size_t pages);
  absl::StatusOr<const float*> ReadPrompt(CachedText* prompt);
  absl::StatusOr<const float*> ReadNewest(const CachedText& prompt, const BeamSearch& search,
                                          const PageTable& of_search);
  void Extend(const float* logits, BeamSearch* search) const;

  const GptConfig config_;
  const GenerateOptions options_;
  const BeamSearchOptions search_;  // its only end token stands for all stop tokens
  std::unique_ptr<CachedGpt> gpt_;
  PagePool pool_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_BEAM_GENERATION_H_
