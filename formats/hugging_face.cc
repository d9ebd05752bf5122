// This file defines the format of Hugging Face: a folder with config.json and model.safetensors. The key model_type in
// config.json tells which model family reads the folder.
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/formats/generation.h"
#include "weft/formats/marian.h"
#include "weft/formats/published.h"
#include "weft/formats/write_weights.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<const ModelFamily*> FamilyOfConfig(const Json& config) {
  const Json& type = *FindModelType(config);
  if (const ModelFamily* const family = FamilyOfType(type)) return family;
  std::vector<absl::string_view> known;
  for (const ModelFamily* const family : ModelFamilies()) {
    known.insert(known.end(), family->model_types.begin(), family->model_types.end());
  }
  return InvalidArgument("model_type is ", type.dump(-1, ' ', false, Json::error_handler_t::replace),
                         ", which is not supported; wanted one of ", absl::StrJoin(known, ", "));
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& config) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, Annotate(FamilyOfConfig(config), ConfigPath(folder)));
  return family->read(folder, config);
}

// A Transformer is written in the class of Hugging Face that has it. If there is none, it has this project's own keys
// and names, unless the caller wants published classes only.
absl::Status Write(const std::string& folder, const PublishedModel& model, const WriteModelOptions& options) {
  if (const auto* const transformer = std::get_if<PublishedTransformer>(&model)) {
    if (options.published_classes_only || MarianTypeFor(transformer->config).ok()) {
      return WriteMarian(folder, *transformer);
    }
  }
  return WriteHuggingFace(folder, model);
}

constexpr absl::string_view kFiles[] = {kConfigFile, "model.safetensors", kGenerationConfig};

}  // namespace

constexpr Format kHuggingFaceFormat = {
    .name = "huggingface",
    .mark = "model_type (Hugging Face)",
    .recognizes = [](const Json& config) { return FindModelType(config) != nullptr; },
    .family = FamilyOfConfig,
    .read = Read,
    .writes = [](const ModelFamily&) { return true; },
    .write = Write,
    .files = kFiles,
};

}  // namespace weft
