// These functions measure models on data: loss, perplexity and accuracy, and translations to compare with references.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("runs/gpt-1", ""));
//   WEFT_ASSIGN_OR_RETURN(const EncodedTexts texts, EncodeTexts(gpt, {"validation.txt"}));
//   WEFT_ASSIGN_OR_RETURN(const LanguageModelScore score, EvaluateGpt(gpt, texts, /*threads=*/0));
//   score.loss   // nats per token
//
// A function that reads files returns an error if it can't use a file. A function that evaluates returns an error only
// if a run fails, unless its comment says otherwise.
#ifndef WEFT_INFERENCE_EVALUATION_H_
#define WEFT_INFERENCE_EVALUATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/inference/classifier.h"
#include "weft/inference/open_model.h"

namespace weft {

struct EncodedTexts {
  std::vector<std::vector<int32_t>> texts;  // the tokens of each file
  size_t beginning = 0;                     // number of tokens at the front of each text that are given, not predicted
  int64_t bytes = 0;                        // total size of the files
};
// Reads texts and encodes them. Errors name the file.
absl::StatusOr<EncodedTexts> EncodeTexts(const OpenedGpt& gpt, absl::Span<const std::string> paths);
absl::StatusOr<EncodedTexts> EncodeTexts(const OpenedBert& bert, absl::Span<const std::string> paths);

struct LanguageModelScore {
  int64_t tokens = 0;        // number of predicted tokens
  double loss = 0;           // mean, in nats per token
  double perplexity = 0;     // e^loss
  double bits_per_byte = 0;  // bits per byte of the texts
};
// Predicts each token of the texts from the tokens before it in its window. Windows have the length of the context and
// do not overlap.
absl::StatusOr<LanguageModelScore> EvaluateGpt(const OpenedGpt& gpt, const EncodedTexts& texts, int64_t threads);

struct MaskedTokensOptions {
  double fraction = 0.15;  // fraction of the tokens to mask
  uint64_t seed = 1;       // chooses the masked tokens, together with the window's number
  int64_t batch = 32;      // maximum number of windows in one run; the score does not depend on it
  int64_t threads = 0;     // 0: one for each core
};
// Masks tokens and guesses them. Windows have the context's length and do not overlap. Requires CheckGuessesMasked.
absl::StatusOr<ClassScore> EvaluateMaskedTokens(const OpenedBert& bert, const EncodedTexts& texts,
                                                const MaskedTokensOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_EVALUATION_H_
