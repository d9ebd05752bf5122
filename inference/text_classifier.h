// A BERT that tells the class of texts.
#ifndef WEFT_INFERENCE_TEXT_CLASSIFIER_H_
#define WEFT_INFERENCE_TEXT_CLASSIFIER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "weft/inference/bert_encoder.h"

namespace weft {

// An encoder whose results are the logits of bert.model.labels. InvalidArgument if the model has no classifier.
absl::StatusOr<std::unique_ptr<BertEncoder>> TextClassifier(OpenedBert bert, const BertEncoderOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_TEXT_CLASSIFIER_H_
