#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {

absl::StatusOr<PublishedBert> ReadBert(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
  absl::StatusOr<BertConfig> config = BertConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  PublishedBert bert = {.config = *config};
  WEFT_ASSIGN_OR_RETURN(bert.weights, ReadFolderWeights(folder, {{{"bert.#", {"#"}}},
                                                                 {{"embeddings.position_ids", {}},
                                                                  // The token table and the bias again.
                                                                  {"cls.predictions.decoder.weight", {}},
                                                                  {"cls.predictions.decoder.bias", {}},
                                                                  {"#.gamma", {"#.weight"}},
                                                                  {"#.beta", {"#.bias"}}}}));
  WEFT_RETURN_IF_ERROR(
      Parameters::Check(WeightsPath(folder), bert.weights.tensors(), ParametersOf(bert.config, bert.weights)));
  const Tensor* const classifier = bert.weights.Find("classifier.weight");
  if (classifier == nullptr) return bert;
  absl::StatusOr<std::vector<std::string>> labels = LabelsFromJson(json);
  if (!labels.ok()) return Annotate(labels.status(), ConfigPath(folder));
  bert.labels = *std::move(labels);
  const size_t classes = static_cast<size_t>(classifier->type.shape.dim(0));
  if (bert.labels.empty()) {
    for (size_t i = 0; i < classes; ++i) bert.labels.push_back(absl::StrCat("LABEL_", i));
  }
  if (bert.labels.size() == classes) return bert;
  return absl::InvalidArgumentError(absl::StrCat(ConfigPath(folder), ": id2label has ", bert.labels.size(),
                                                 " labels, but classifier.weight ", classes, " rows"));
}

}  // namespace weft
