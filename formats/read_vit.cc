#include <nlohmann/json.hpp>

#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {

absl::StatusOr<PublishedVit> ReadVit(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
  const absl::StatusOr<VitConfig> config = VitConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  PublishedVit vit = {.config = *config};
  WEFT_ASSIGN_OR_RETURN(vit.labels, VitLabelsFromJson(json));
  WEFT_ASSIGN_OR_RETURN(vit.weights, ReadFolderWeights(folder, {}));
  WEFT_RETURN_IF_ERROR(Parameters::Check(WeightsPath(folder), vit.weights.tensors(), ParametersOf(vit.config)));
  return vit;
}

}  // namespace weft
