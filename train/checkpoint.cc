#include "weft/train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/safetensors.h"
#include "weft/core/status.h"
#include "weft/train/build_info.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kState[] = "/state.safetensors", kInfo[] = "/checkpoint.json";

absl::Status Check(absl::string_view action, const std::string& path, const std::error_code& error) {
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't ", action, " ", path, ": ", error.message()));
}

// Puts the whole folder `written` in the place of `path`.
absl::Status Replace(const std::string& written, const std::string& path, const std::string& aside) {
  std::error_code error;
  fs::remove_all(aside, error);
  WEFT_RETURN_IF_ERROR(Check("remove", aside, error));
  if (fs::exists(path)) {
    fs::rename(path, aside, error);
    WEFT_RETURN_IF_ERROR(Check("rename", path, error));
  }
  fs::rename(written, path, error);
  WEFT_RETURN_IF_ERROR(Check("rename", written, error));
  fs::remove_all(aside, error);
  return Check("remove", aside, error);
}

}  // namespace

std::string CheckpointFolder(const std::string& checkpoints, int64_t step) {
  return absl::StrCat(checkpoints, "/", step);
}

absl::Status SaveCheckpoint(const std::string& checkpoints, CheckpointInfo info, const Parameters& parameters,
                            int keep) {
  const std::string writing = absl::StrCat(checkpoints, "/.writing-", info.step);
  std::error_code error;
  fs::remove_all(writing, error);
  WEFT_RETURN_IF_ERROR(Check("remove", writing, error));
  fs::create_directories(writing, error);
  WEFT_RETURN_IF_ERROR(Check("create", writing, error));
  WEFT_RETURN_IF_ERROR(parameters.Save(writing + kState, Parameters::kAll));
  const nlohmann::ordered_json json = {
      {"step", info.step}, {"seed", info.seed},   {"parameters_step", info.parameters_step},
      {"data", info.data}, {"version", kVersion}, {"cpu", CpuFeatures()}};
  WEFT_RETURN_IF_ERROR(WriteFile(writing + kInfo, {json.dump(2), "\n"}));
  WEFT_RETURN_IF_ERROR(SyncFolder(writing));
  WEFT_RETURN_IF_ERROR(
      Replace(writing, CheckpointFolder(checkpoints, info.step), absl::StrCat(checkpoints, "/.replaced-", info.step)));
  WEFT_RETURN_IF_ERROR(SyncFolder(checkpoints));

  const std::vector<int64_t> steps = ListCheckpoints(checkpoints);
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i) {
    const std::string old = CheckpointFolder(checkpoints, steps[i]);
    fs::remove_all(old, error);
    WEFT_RETURN_IF_ERROR(Check("remove", old, error));
  }
  return absl::OkStatus();
}

std::vector<int64_t> ListCheckpoints(const std::string& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator i(checkpoints, error), end; !error && i != end; i.increment(error)) {
    int64_t step;
    const std::string path = i->path().string();
    if (absl::SimpleAtoi(i->path().filename().string(), &step) && step >= 0 && fs::exists(path + kState) &&
        fs::exists(path + kInfo)) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& checkpoints, int64_t step) {
  const std::string path = CheckpointFolder(checkpoints, step) + kInfo;
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  const auto json = nlohmann::json::parse(contents, nullptr, /*allow_exceptions=*/false);
  for (const char* key : {"step", "seed", "parameters_step"}) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer()) {
      return absl::DataLossError(absl::StrCat(path, ": no whole number '", key, "'"));
    }
  }
  for (const char* key : {"data", "version", "cpu"}) {
    if (!json.contains(key) || !json[key].is_string()) {
      return absl::DataLossError(absl::StrCat(path, ": no text '", key, "'"));
    }
  }
  if (json["step"] != step) return absl::DataLossError(absl::StrCat(path, ": is of step ", json["step"].dump()));
  return CheckpointInfo{.step = step,
                        .seed = json["seed"].get<uint64_t>(),
                        .parameters_step = json["parameters_step"].get<uint32_t>(),
                        .data = json["data"].get<std::string>(),
                        .version = json["version"].get<std::string>(),
                        .cpu = json["cpu"].get<std::string>()};
}

absl::Status LoadCheckpoint(const std::string& checkpoints, const CheckpointInfo& info, Parameters* parameters) {
  WEFT_RETURN_IF_ERROR(parameters->Load(CheckpointFolder(checkpoints, info.step) + kState, Parameters::kAll));
  parameters->set_step(info.parameters_step);
  return absl::OkStatus();
}

absl::Status LoadRunWeights(const std::string& run, Parameters* parameters) {
  const std::string weights = run + "/model.safetensors", checkpoints = run + "/checkpoints";
  if (fs::exists(weights)) return parameters->Load(weights, Parameters::kWeights);
  const std::vector<int64_t> steps = ListCheckpoints(checkpoints);
  if (steps.empty()) return absl::NotFoundError(absl::StrCat(run, ": neither model.safetensors nor a checkpoint"));
  const std::string state = CheckpointFolder(checkpoints, steps.front()) + kState;
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(state));
  for (const std::string& name : parameters->Names(Parameters::kWeights)) {
    const NamedTensor* saved = file.Find(name);
    WEFT_ASSIGN_OR_RETURN(const Tensor weight, parameters->Find(name));
    if (saved == nullptr || saved->tensor.type != weight.type) {
      return absl::DataLossError(absl::StrCat(state, ": no ", ToString(weight.type), " '", name, "'"));
    }
    std::memcpy(weight.data, saved->tensor.data, weight.type.bytes());
  }
  return absl::OkStatus();
}

}  // namespace weft
