#include <filesystem>

#include "absl/strings/match.h"
#include "weft/core/status.h"
#include "weft/models/published.h"
#include "weft/models/weights.h"

namespace weft {
namespace {

template <class T>
absl::StatusOr<PublishedModel> Any(absl::StatusOr<T> model) {
  if (!model.ok()) return model.status();
  return PublishedModel(*std::move(model));
}

}  // namespace

absl::StatusOr<PublishedModel> ReadModel(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return Any(ReadLlama2c(path));
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(path));
  const auto type = json.find("model_type");
  if (type != json.end() && !type->is_null()) {
    if (*type == "bert") return Any(ReadBert(path));
    if (*type == "transformer") return Any(ReadTransformer(path));
    return Any(ReadGpt(path));
  }
  if (json.contains("model_args") || json.contains("block_size")) return Any(ReadNanoGpt(path));
  if (json.contains("ffn_dim")) return Any(ReadCTranslate2(path));
  return absl::InvalidArgumentError(ConfigPath(path) +
                                    " is of no model that is known: it has no model_type (Hugging Face), block_size "
                                    "(nanoGPT) or ffn_dim (CTranslate2)");
}

}  // namespace weft
