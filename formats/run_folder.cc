// A checkpoint is complete if its folder's name is a number and both of its files exist.
#include "weft/formats/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"

namespace weft {
namespace fs = std::filesystem;

namespace {

absl::Status LoadRunFile(const std::string& path, Parameters::Others others, Parameters* parameters) {
  return parameters->Load(path, Parameters::kWeights, others, WantedChecksum::kOfRun);
}

}  // namespace

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

absl::Status LoadRunWeights(const std::string& run, Parameters* parameters) {
  const std::string weights = run + "/model.safetensors", checkpoints = run + "/checkpoints";
  if (Exists(weights)) {
    const absl::Status loaded = LoadRunFile(weights, Parameters::kNothingElse, parameters);
    if (!absl::IsDataLoss(loaded) || ListCheckpoints(checkpoints).empty()) return loaded;
    return absl::DataLossError(
        absl::StrCat(loaded.message(), "; remove this file to take the weights from the run's newest checkpoint"));
  }
  absl::Status first_error = absl::NotFoundError(absl::StrCat(run, ": neither model.safetensors nor a checkpoint"));
  for (const int64_t step : ListCheckpoints(checkpoints)) {
    const absl::Status loaded =
        LoadRunFile(CheckpointFolder(checkpoints, step) + kCheckpointState, Parameters::kMayHaveMore, parameters);
    if (loaded.ok()) return loaded;
    if (absl::IsNotFound(first_error)) first_error = loaded;
  }
  return first_error;
}

}  // namespace weft
