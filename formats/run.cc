// This file defines the format of training runs, which is only read. config.json describes the model. The weights are
// mapped from their file or, if they must be put together, loaded by LoadRunWeights.
#include <nlohmann/json.hpp>

#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/formats/published.h"
#include "weft/formats/run_folder.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns the model family of a run with the config.json `run`. For a GPT, the model's options are keys at the top
// level of `run`. For any other model, its configuration is under the key "model".
absl::StatusOr<const ModelFamily*> FamilyOfRun(const Json& run) {
  if (IsRunConfig(run, "gpt")) return &PublishedGpt::kFamily;
  const auto model = run.find("model");
  const Json* const type = model != run.end() ? FindModelType(*model) : nullptr;
  const ModelFamily* const family = type != nullptr ? FamilyOfType(*type) : nullptr;
  if (family != nullptr && family != &PublishedGpt::kFamily && family->from_run != nullptr) return family;
  return InvalidArgument("the run is of ", run["command"].dump(), ", and model.model_type is ",
                         type == nullptr ? "null" : type->dump(),
                         ", which is not supported; wanted a run of train gpt, \"bert\", \"transformer\" or \"vit\"");
}

absl::StatusOr<PublishedModel> Read(const std::string& path, const Json& run) {
  const std::string folder = ParseRunPath(path).folder;
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, Annotate(FamilyOfRun(run), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, Annotate(family->from_run(folder, run), ConfigPath(folder)));

  const std::vector<ParameterSpec> specs = ParametersOf(model);
  const auto with = [&](Weights weights) {
    WeightsOf(model) = std::move(weights);
    return std::move(model);
  };
  if (const std::string file = RunWeightsFile(path); !file.empty()) {
    absl::StatusOr<Weights> mapped = Weights::ReadStored(file, WantedChecksum::kOfRun);
    // LoadRunWeights below tells more about a damaged file.
    if (mapped.ok()) {
      WEFT_RETURN_IF_ERROR(Parameters::Check(file, mapped->tensors(), specs));
      return with(*std::move(mapped));
    }
  }
  Parameters parameters({.draw = false});
  WEFT_RETURN_IF_ERROR(parameters.Create(specs));
  WEFT_RETURN_IF_ERROR(LoadRunWeights(path, &parameters));
  Weights weights;
  for (const ParameterSpec& spec : specs) {
    WEFT_RETURN_IF_ERROR(weights.AddCopy(spec.name, *parameters.Find(spec.name)));
  }
  return with(std::move(weights));
}

}  // namespace

constexpr Format kRunFormat = {
    .name = "run",
    .mark = "",
    .recognizes = [](const Json& config) { return config.contains("command"); },
    .family = FamilyOfRun,
    .read = Read,
};

}  // namespace weft
