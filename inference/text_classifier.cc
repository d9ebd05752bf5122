#include "weft/inference/text_classifier.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

absl::StatusOr<std::unique_ptr<BertEncoder>> TextClassifier(OpenedBert bert, const BertEncoderOptions& options) {
  const auto classes = static_cast<int64_t>(bert.model.labels.size());
  if (classes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(bert.path, ": the model has no classifier"));
  }
  return BertEncoder::Create(std::move(bert), options, [classes](const Bert& model, Var tokens, Var lengths) {
    return model.ClassifyText(model.Encode(tokens, {.lengths = lengths}), lengths, classes);
  });
}

}  // namespace weft
