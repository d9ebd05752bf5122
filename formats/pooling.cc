// This file reads the pooling of sentence-transformers (https://www.sbert.net). In a model's folder, modules.json lists
// the modules that process a text, and names the folder of the pooling's config.json.
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Pooling> PoolingFromJson(const Json& json, int64_t width) {
  KeyReader keys(json);
  bool mean = false, first = false, root = false;
  std::string mode;
  keys.Field("pooling_mode", mode);  // newer folders have this key
  keys.Field("pooling_mode_mean_tokens", mean);
  keys.Field("pooling_mode_mean_sqrt_len_tokens", root);  // has the same direction as the mean
  keys.Field("pooling_mode_cls_token", first);
  mean = mean || root || mode == "mean" || mode == "mean_sqrt_len_tokens";
  first = first || mode == "cls";
  if (!mode.empty() && !mean && !first) keys.Refuse("pooling_mode", "mean or cls");
  keys.Only("word_embedding_dimension", width);
  keys.Only("embedding_dimension", width);
  keys.Harmless({"include_prompt"});  // only for prompts, which are never added
  WEFT_RETURN_IF_ERROR(keys.Finish());
  if (mean != first) return mean ? Pooling::kMean : Pooling::kFirst;
  return InvalidArgument("pooling must be the mean or the first token's vector, but both or none is set");
}

}  // namespace

absl::StatusOr<Pooling> ReadPooling(const std::string& folder, int64_t width) {
  const std::string path = folder + "/modules.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Pooling::kMean;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<Json> parsed = ParseJsonObject(absl::StrCat("{\"modules\":", text, "}"));
  if (!parsed.ok()) return Annotate(parsed.status(), path);
  Pooling pooling = Pooling::kMean;
  for (const Json& module : (*parsed)["modules"]) {
    std::string type, place;
    if (module.is_object()) {
      KeyReader keys(module);
      keys.Field("type", type);
      keys.Field("path", place);
      if (!keys.Refused().ok()) return Annotate(keys.Refused(), path);
    }
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Pooling") {
      WEFT_ASSIGN_OR_RETURN(const Json json, ReadConfig(absl::StrCat(folder, "/", place)));
      const absl::StatusOr<Pooling> read = PoolingFromJson(json, width);
      if (!read.ok()) return Annotate(read.status(), ConfigPath(absl::StrCat(folder, "/", place)));
      pooling = *read;
    } else if (name != "Normalize" && (name != "Transformer" || !place.empty())) {
      return InvalidArgument(path, ": the module ", module.dump(),
                             " is not supported; wanted a Transformer in the folder itself, "
                             "Pooling and Normalize");
    }
  }
  return pooling;
}

}  // namespace weft
