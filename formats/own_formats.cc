// This file defines Weft's own formats. The format of training runs is only read: config.json describes the model, and
// the weights are mapped from their file or, if they must be put together, loaded by LoadRunWeights.
//
// The format "weft" is for models that are used and no longer trained. Its weights may have fewer bytes than f32, and
// inference maps them from the file as they are.
//
// config.json has the keys of a run's config.json that describe the model, and:
//
//   "format": "weft"     marks the format
//   "version": 1         the version of this format
//   "weights": "q8_0"    the dtype for which the file was written; HeldDType gives the dtype of each weight
//
// model.safetensors has the weights under the names and with the shapes of the model's parameters.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/core/safetensors.h"
#include "weft/formats/published.h"
#include "weft/formats/run_folder.h"

namespace weft {
namespace {

// Returns the model_type of the model under the key "model", or null if there is none.
const Json* FindTypeOfModel(const Json& config) {
  const auto model = config.find("model");
  return model != config.end() && model->is_object() ? FindModelType(*model) : nullptr;
}

// Returns the model family of a run with the config.json `run`. For a GPT, the model's options are keys at the top
// level of `run`. For any other model, its configuration is under the key "model".
absl::StatusOr<const ModelFamily*> FamilyOfRun(const Json& run) {
  if (IsRunConfig(run, "gpt")) return &PublishedGpt::kFamily;
  const Json* const type = FindTypeOfModel(run);
  const ModelFamily* const family = type != nullptr ? FamilyOfType(*type) : nullptr;
  if (family != nullptr && family != &PublishedGpt::kFamily && family->from_run != nullptr) return family;
  return InvalidArgument("the run is of ", run["command"].dump(), ", and model.model_type is ",
                         type == nullptr ? "null" : type->dump(),
                         ", which is not supported; wanted a run of train gpt, \"bert\", \"transformer\" or \"vit\"");
}

absl::StatusOr<PublishedModel> ReadRun(const std::string& path, const Json& run) {
  const std::string folder = ParseRunPath(path).folder;
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, Annotate(FamilyOfRun(run), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, Annotate(family->from_run(folder, run), ConfigPath(folder)));

  const std::vector<ParameterSpec> specs = ParametersOf(model);
  if (const std::string file = RunWeightsFile(path); !file.empty()) {
    absl::StatusOr<Weights> mapped = Weights::ReadStored(file, WantedChecksum::kOfRun);
    // LoadRunWeights below tells more about a damaged file.
    if (mapped.ok()) {
      WEFT_RETURN_IF_ERROR(Parameters::Check(file, mapped->tensors(), specs));
      WeightsOf(model) = *std::move(mapped);
      return model;
    }
  }
  Parameters parameters({.draw = false});
  WEFT_RETURN_IF_ERROR(parameters.Create(specs));
  WEFT_RETURN_IF_ERROR(LoadRunWeights(path, &parameters));
  WeightsOf(model) = {};
  for (const ParameterSpec& spec : specs) {
    WEFT_RETURN_IF_ERROR(WeightsOf(model).AddCopy(spec.name, *parameters.Find(spec.name)));
  }
  return model;
}

constexpr char kMark[] = "format", kName[] = "weft", kVersionKey[] = "version";
constexpr int kVersion = 1;

// Returns the family of the model. Errors do not name the file.
absl::StatusOr<const ModelFamily*> FamilyOfConfig(const Json& config) {
  const Json version = config.value(kVersionKey, Json());
  if (version != kVersion) {
    return InvalidArgument("version is ", version.dump(), ", but this program reads version ", kVersion,
                           "; weft quantize writes the model anew");
  }
  const Json* const type = FindTypeOfModel(config);
  const ModelFamily* const family = type != nullptr ? FamilyOfType(*type) : nullptr;
  if (family != nullptr && family->from_run != nullptr) return family;
  return InvalidArgument("model.model_type is ", type == nullptr ? "missing" : type->dump(),
                         ", wanted the model_type of a model that weft train makes");
}

// Returns the model that `config` describes, with `weights`. Errors do not name the file.
absl::StatusOr<PublishedModel> Describe(const std::string& folder, const Json& config, Weights weights) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FamilyOfConfig(config));
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, family->from_run(folder, config));
  WeightsOf(model) = std::move(weights);
  return model;
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& config) {
  WEFT_RETURN_IF_ERROR(Annotate(FamilyOfConfig(config).status(), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, Weights::ReadStored(folder));
  WEFT_ASSIGN_OR_RETURN(PublishedModel model,
                        Annotate(Describe(folder, config, std::move(weights)), ConfigPath(folder)));
  WEFT_RETURN_IF_ERROR(WeightsOf(model).Fit(ParametersOf(model)));
  return model;
}

absl::Status Write(const PublishedModel& model, const std::string& folder, const WriteModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Json described, FamilyOf(model).to_run(model));
  const DType dtype = options.weights.value_or(kF32);
  Json config = {{kMark, kName}, {kVersionKey, kVersion}, {"weights", std::string(Name(dtype))}};
  config.update(described);
  const Weights& weights = WeightsOf(model);
  // When the configuration is read, it must give a model with the same parameters.
  WEFT_ASSIGN_OR_RETURN(const PublishedModel same, Describe(folder, config, weights));
  const std::vector<ParameterSpec> specs = ParametersOf(same);
  WEFT_RETURN_IF_ERROR(Parameters::Check("the model", weights.tensors(), specs));
  std::vector<NamedTensor> tensors;
  std::vector<DType> dtypes;
  for (const ParameterSpec& spec : specs) {
    tensors.push_back({spec.name, *weights.Find(spec.name)});
    dtypes.push_back(HeldDType(spec, dtype));
  }
  WEFT_RETURN_IF_ERROR(WriteConverted(
      tensors, dtypes, [&](const auto& types) { return SafetensorsWriter::Create(WeightsPath(folder), types); }));
  return WriteJson(ConfigPath(folder), config);
}

}  // namespace

constexpr Format kRunFormat = {
    .name = "run",
    .recognizes = [](const Json& config) { return config.contains("command"); },
    .family = FamilyOfRun,
    .read = ReadRun,
};

constexpr Format kWeftFormat = {
    .name = kName,
    .recognizes = [](const Json& config) { return config.is_object() && config.value(kMark, Json()) == kName; },
    .family = FamilyOfConfig,
    .read = Read,
    .write = Write,
    .files = kFolderFiles,
    .is_own = true,
    .keeps_dtypes = true,
};

}  // namespace weft
