// These functions measure language models on texts: loss, perplexity and accuracy.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("runs/gpt-1", ""));
//   WEFT_ASSIGN_OR_RETURN(const LanguageModelScore score, EvaluateGpt(gpt, {"validation.txt"}, /*threads=*/0));
//   score.loss   // nats per token
//
// A function returns an error if there is no file, if a file can't be read or has no tokens, or if an execution fails.
#ifndef WEFT_INFERENCE_EVALUATION_H_
#define WEFT_INFERENCE_EVALUATION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/inference/classifier.h"
#include "weft/inference/open_model.h"

namespace weft {

struct LanguageModelScore {
  int64_t tokens = 0;     // that were predicted
  int64_t bytes = 0;      // of the texts
  double loss = 0;        // mean, in nats per token
  double perplexity = 0;  // e^loss
  double bits_per_byte = 0;
};
// Predicts each token of the files' texts from the tokens before it in its window. A window has as many tokens as the
// context, and windows do not overlap. BeginningOfText's tokens come first in each text, and are not predicted.
absl::StatusOr<LanguageModelScore> EvaluateGpt(const OpenedGpt& gpt, absl::Span<const std::string> paths,
                                               int64_t threads);

struct MaskedTokensOptions {
  double fraction = 0.15;  // fraction of the tokens to mask
  uint64_t seed = 1;       // chooses the masked tokens, together with the window's number
  int64_t batch = 32;      // maximum number of windows in one execution; the score does not depend on it
  int64_t threads = 0;     // 0: one for each core
};
// Masks `fraction` of the tokens in each window of the files' texts, at least one, and predicts them. With its special
// tokens, a window fills the context; windows do not overlap. Returns InvalidArgument if CheckGuessesMasked does.
absl::StatusOr<ClassScore> EvaluateMaskedTokens(const OpenedBert& bert, absl::Span<const std::string> paths,
                                                const MaskedTokensOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_EVALUATION_H_
