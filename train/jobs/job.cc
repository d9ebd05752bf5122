// This file has the code that all jobs share: the keys of config.json, fingerprints of data, and reading options from a
// configuration.
#include "weft/train/jobs/job.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/random.h"
#include "weft/core/status.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {

nlohmann::ordered_json ModelOf(const RunDirectory* resumed) {
  if (resumed == nullptr) return nlohmann::ordered_json::object();
  const auto found = resumed->config().find(kModelKey);
  return found != resumed->config().end() && found->is_object() ? *found : nlohmann::ordered_json::object();
}

absl::Status MissingFile(absl::string_view option) { return InvalidArgument(option, ": no file was given"); }

std::string FingerprintOfBytes(absl::string_view bytes, absl::string_view previous) {
  return absl::StrFormat("%016x", StableHash(absl::StrCat(previous, "\n", bytes)));
}

absl::Status TrainingJob::SaveMore(const Parameters& parameters, const std::string& folder) const {
  return SaveAdapter(lora(), base_model(), Model(), parameters, folder);
}

absl::Status SetFromConfig(const nlohmann::ordered_json& json, const std::string& name, const Hyperparameters& table) {
  if (json.is_object() && json.contains(kCommandKey) && json[kCommandKey] != absl::StrCat("train ", name)) {
    return InvalidArgument("belongs to another command, ", json[kCommandKey].dump());
  }
  return SetFromJson(json, table, {kCommandKey, kModelKey, kVersionKey, kFilesKey});
}

}  // namespace weft
