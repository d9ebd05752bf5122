#include <filesystem>
#include <nlohmann/json.hpp>

#include "weft/core/status.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

template <class T>
absl::StatusOr<PublishedModel> Any(absl::StatusOr<T> model) {
  if (!model.ok()) return model.status();
  return PublishedModel(*std::move(model));
}

const nlohmann::ordered_json* TypeIn(const nlohmann::ordered_json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && !type->is_null() ? &*type : nullptr;
}

}  // namespace

absl::StatusOr<ModelKind> KindOfConfig(const nlohmann::ordered_json& config) {
  if (const nlohmann::ordered_json* const type = TypeIn(config)) {
    return *type == "bert"          ? ModelKind::kBert
           : *type == "transformer" ? ModelKind::kTransformer
           : *type == "vit"         ? ModelKind::kVit
                                    : ModelKind::kGpt;
  }
  if (config.contains("model_args") || config.contains("block_size")) return ModelKind::kGpt;
  if (config.contains("ffn_dim")) return ModelKind::kTransformer;
  return absl::InvalidArgumentError(
      "it is of no model that is known: it has no model_type (Hugging Face), block_size (nanoGPT) or ffn_dim "
      "(CTranslate2)");
}

absl::StatusOr<PublishedModel> ReadModel(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return Any(ReadLlama2c(path));
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(path));
  const absl::StatusOr<ModelKind> kind = KindOfConfig(json);
  if (!kind.ok()) return Annotate(kind.status(), ConfigPath(path));
  const bool hugging_face = TypeIn(json) != nullptr;
  if (*kind == ModelKind::kBert) return Any(ReadBert(path));
  if (*kind == ModelKind::kTransformer) return hugging_face ? Any(ReadTransformer(path)) : Any(ReadCTranslate2(path));
  return hugging_face ? Any(ReadGpt(path)) : Any(ReadNanoGpt(path));
}

}  // namespace weft
