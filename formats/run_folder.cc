// A checkpoint is complete if its folder's name is a number and both of its files exist.
#include "weft/formats/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/core/arena.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/safetensors.h"
#include "weft/core/status.h"
#include "weft/formats/adapters.h"

namespace weft {
namespace fs = std::filesystem;

bool IsRunConfig(const nlohmann::ordered_json& config, absl::string_view name) {
  return config.is_object() && config.contains("command") && config["command"] == absl::StrCat("train ", name);
}

bool IsRun(const std::string& folder) {
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(folder + "/config.json");
  return json.ok() && json->contains("command");
}

std::string CheckpointFolder(const std::string& checkpoints, int64_t step) {
  return absl::StrCat(checkpoints, "/", step);
}

std::vector<int64_t> ListCheckpoints(const std::string& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator i(checkpoints, error), end; !error && i != end; i.increment(error)) {
    int64_t step;
    const std::string path = i->path().string();
    const bool number = absl::SimpleAtoi(i->path().filename().string(), &step) && step >= 0;
    if (number && Exists(path + kCheckpointState) && Exists(path + kCheckpointInfo)) steps.push_back(step);
  }
  if (error) return {};
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

namespace {

// Returns alpha / rank of the adapters that the run trains, or 0 if it trains none.
double AdapterScale(const std::string& run) {
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(run + "/config.json");
  const auto number = [&](const char* key) {
    return json.ok() && json->contains(key) && (*json)[key].is_number() ? (*json)[key].get<double>() : 0.0;
  };
  const double rank = number("lora_rank");
  return rank > 0 ? number("lora_alpha") / rank : 0;
}

// Like Parameters::Load of a run's weights. If the run trains adapters, merges them.
absl::Status LoadMerged(const std::string& run, const std::string& path, Parameters::Others others,
                        Parameters* parameters) {
  const double scale = AdapterScale(run);
  if (scale == 0) return parameters->Load(path, Parameters::kWeights, others, WantedChecksum::kOfRun);
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path, WantedChecksum::kOfRun));
  Arena arena;
  absl::StatusOr<std::vector<NamedTensor>> merged = MergeAdapters(file.tensors(), scale, &arena);
  if (!merged.ok()) return Annotate(merged.status(), path);
  return parameters->Set(path, *merged, Parameters::kWeights, others);
}

}  // namespace

absl::Status LoadRunWeights(const std::string& run, Parameters* parameters) {
  const std::string weights = run + "/model.safetensors", checkpoints = run + "/checkpoints";
  if (Exists(weights)) {
    const absl::Status loaded = LoadMerged(run, weights, Parameters::kNothingElse, parameters);
    if (!absl::IsDataLoss(loaded) || ListCheckpoints(checkpoints).empty()) return loaded;
    return absl::DataLossError(
        absl::StrCat(loaded.message(), "; remove this file to take the weights from the run's newest checkpoint"));
  }
  absl::Status first_error = absl::NotFoundError(absl::StrCat(run, ": neither model.safetensors nor a checkpoint"));
  for (const int64_t step : ListCheckpoints(checkpoints)) {
    const absl::Status loaded =
        LoadMerged(run, CheckpointFolder(checkpoints, step) + kCheckpointState, Parameters::kMayHaveMore, parameters);
    if (loaded.ok()) return loaded;
    if (absl::IsNotFound(first_error)) first_error = loaded;
  }
  return first_error;
}

}  // namespace weft
