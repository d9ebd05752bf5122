// These functions measure models on data: the loss and perplexity of language models, and the figures of classifiers.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("runs/gpt-1", ""));
//   WEFT_ASSIGN_OR_RETURN(const LanguageModelScore score, EvaluateGpt(gpt, {"validation.txt"}, /*stride=*/256, {}));
//   score.loss   // nats per token
//
// A function returns an error if there is no file, if a file can't be read or has no tokens, or if an execution fails.
#ifndef WEFT_INFERENCE_MEASURE_EVALUATION_H_
#define WEFT_INFERENCE_MEASURE_EVALUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/measure/metrics.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/text/data/labelled_examples.h"

namespace weft {

// The score of a classifier, of a model that guesses masked tokens, or of a regression.
struct ClassScore {
  int64_t count = 0;                 // of examples or, for the task tokens, of words that the model read
  double loss = 0;                   // mean, in nats; of a regression, the mean squared error
  double accuracy = 0;               // fraction of examples whose most likely class is the right one
  ConfusionMatrix confusion = {};    // empty where classes are tokens
  TaggingScore tags = {};            // for the task tokens
  double pearson = 0, spearman = 0;  // of a regression: correlations of right and predicted numbers; NaN if undefined
};

// Measures the classifier on files of labelled texts (text/data/labelled_examples.h), whose format is `data`; its task
// is not used. Returns InvalidArgument for a label that the model does not have, and if an example has one right label,
// but the scores are not kSoftmax. Also returns InvalidArgument for a regression of several numbers.
absl::StatusOr<ClassScore> EvaluateTexts(TextHead* head, const std::vector<std::string>& files,
                                         LabelledDataOptions data);
// Measures the classifier on files of pictures with labels. `labels`: for pictures in IDX, the file with the labels of
// the one file of pictures; else empty. Returns InvalidArgument for a label that the model does not have, or unless the
// scores are kSoftmax.
absl::StatusOr<ClassScore> EvaluatePictures(PictureClassifier* classifier, const std::vector<std::string>& files,
                                            const std::string& labels);

struct LanguageModelScore {
  int64_t tokens = 0;     // that were predicted
  int64_t bytes = 0;      // of the texts
  int64_t words = 0;      // of the texts, as SplitWords of text/measures/ngrams.h finds them
  double loss = 0;        // mean, in nats per token
  double perplexity = 0;  // e^loss
  // e to the power of the sum of all tokens' losses, divided by the number of words or of bytes. These figures compare
  // models with different tokenizers. Without words, the perplexity by word is infinite.
  double word_perplexity = 0, byte_perplexity = 0;
  double bits_per_byte = 0;  // the logarithm of `byte_perplexity` to base 2
};
// Predicts each token of the files' texts once, from the tokens before it in its window. A window has as many tokens as
// the context. With stride 0, windows do not overlap. Otherwise each window after a text's first one predicts only its
// last `stride` tokens, from context - stride + 1 tokens or more. BeginningOfText's tokens come first in each text, and
// are not predicted. `runtime`: its batch is not used. Returns InvalidArgument if the stride is negative or greater
// than the context.
absl::StatusOr<LanguageModelScore> EvaluateGpt(const OpenedGpt& gpt, absl::Span<const std::string> paths,
                                               int64_t stride = 0, const RuntimeOptions& runtime = {});

// Masks `fraction` of the tokens in each window of the files' texts, at least one, and predicts them. The seed and the
// window's number choose the masked tokens, so the score does not depend on the batch. With its special tokens, a
// window fills the context; windows do not overlap. Returns InvalidArgument if CheckGuessesMasked does.
absl::StatusOr<ClassScore> EvaluateMaskedTokens(const OpenedBert& bert, absl::Span<const std::string> paths,
                                                double fraction = 0.15, uint64_t seed = 1,
                                                const RuntimeOptions& runtime = {});

}  // namespace weft

#endif  // WEFT_INFERENCE_MEASURE_EVALUATION_H_
