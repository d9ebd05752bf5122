// What `weft evaluate` measures: figures of a model on data, by the kind of model.
#ifndef WEFT_APPS_EVALUATION_EVALUATE_H_
#define WEFT_APPS_EVALUATION_EVALUATE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/apps/flags.h"
#include "weft/inference/open_model.h"

namespace weft {

struct EvaluateFlags {
  std::string model, tokenizer, labels, source, references, translations;
  double masked = 0.15;
  uint64_t seed = 1;
  int64_t beam = 4, batch = 32, threads = 0;
  bool lowercase = false, truncate = false, json = false;
  std::vector<std::string> files;
  GivenFlags given;
};

struct Figure {
  std::string name;  // the key in JSON
  nlohmann::ordered_json value;
  std::string text;  // for reading; empty: in JSON only
};
using Figures = std::vector<Figure>;

// The error for a flag that was given, but does nothing for this kind of model.
absl::Status NoUse(const std::string& flag, const std::string& kind);

Figure Count(const std::string& name, int64_t count);
Figure Loss(double loss, const std::string& of);  // the mean, in nats
Figure Accuracy(double part);                     // a part of 1

// Errors are usage errors if they are of the files or of the model that the flags name.
absl::StatusOr<Figures> EvaluateGpt(const EvaluateFlags& flags);
absl::StatusOr<Figures> EvaluateBert(const EvaluateFlags& flags);  // a classifier or a masked-language model
absl::StatusOr<Figures> EvaluateTextClassifier(OpenedBert bert, const EvaluateFlags& flags);
absl::StatusOr<Figures> EvaluateVit(const EvaluateFlags& flags);
absl::StatusOr<Figures> EvaluateTransformer(const EvaluateFlags& flags);
absl::StatusOr<Figures> EvaluateTranslations(const EvaluateFlags& flags);  // finished ones, without a model

}  // namespace weft

#endif  // WEFT_APPS_EVALUATION_EVALUATE_H_
