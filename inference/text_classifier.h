// TextClassifier makes a BERT that classifies texts.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert("runs/classify-1"));
//   WEFT_ASSIGN_OR_RETURN(const auto classifier, TextClassifier(std::move(bert), {.batch = 32}));
//   WEFT_ASSIGN_OR_RETURN(const auto logits, classifier->Run(texts));   // logits[i][k]: of label k
#ifndef WEFT_INFERENCE_TEXT_CLASSIFIER_H_
#define WEFT_INFERENCE_TEXT_CLASSIFIER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "weft/inference/bert_encoder.h"

namespace weft {

// Returns an encoder whose results are the labels' logits, or InvalidArgument if the model has no classifier.
absl::StatusOr<std::unique_ptr<BertEncoder>> TextClassifier(OpenedBert bert, const BertEncoderOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_TEXT_CLASSIFIER_H_
