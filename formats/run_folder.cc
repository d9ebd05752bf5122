// A checkpoint is complete if its folder's name is a number and both of its files exist.
#include "weft/formats/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/gguf.h"
#include "weft/core/safetensors.h"
#include "weft/formats/adapters.h"

namespace weft {
namespace fs = std::filesystem;

RunPath ParseRunPath(const std::string& path) {
  const size_t at = path.rfind('@');
  if (at == std::string::npos || at + 1 == path.size() || Exists(path)) return {path, ""};
  std::string folder = path.substr(0, at);
  if (!Exists(folder + "/config.json")) return {path, ""};
  return {std::move(folder), path.substr(at + 1)};
}

std::string ModelFile(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  if (!fs::is_directory(path, error) || Exists(path + "/config.json")) return path;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.is_regular_file(error) && entry.path().extension() == kGgufEnding) files.push_back(entry.path().string());
  }
  return files.size() == 1 ? files[0] : path;
}

std::string BaseOf(const std::string& model) {
  const absl::StatusOr<AdapterConfig> config = IsAdapter(model) ? ReadAdapterConfig(model) : AdapterConfig{model};
  return ModelFile(ParseRunPath(config.ok() ? config->base : model).folder);
}

std::string TokenizerOf(const std::string& model) {
  const fs::path base = BaseOf(model), folder = base.parent_path(), own = folder / "tokenizer.bin";
  std::error_code error;
  if (!fs::is_regular_file(base, error) || base.extension() == kGgufEnding) return base.string();
  return Exists(own.string()) ? own.string() : folder.empty() ? "." : folder.string();
}

bool IsRunConfig(const nlohmann::ordered_json& config, absl::string_view name) {
  return config.is_object() && config.contains("command") && config["command"] == absl::StrCat("train ", name);
}

bool IsRun(const std::string& path) {
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(ParseRunPath(path).folder + "/config.json");
  return json.ok() && json->contains("command");
}

std::string CheckpointFolder(const std::string& checkpoints, int64_t step) {
  return absl::StrCat(checkpoints, "/", step);
}

std::vector<int64_t> ListCheckpoints(const std::string& checkpoints) {
  std::vector<int64_t> steps;
  for (const std::string& name : NamesIn(checkpoints).value_or(std::vector<std::string>())) {
    int64_t step;
    const std::string path = absl::StrCat(checkpoints, "/", name);
    const bool number = absl::SimpleAtoi(name, &step) && step >= 0;
    if (number && Exists(path + kCheckpointState) && Exists(path + kCheckpointInfo)) steps.push_back(step);
  }
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

// Returns the weights of `parameters` and their adapters that the file has. A checkpoint also has the state of an
// optimizer, whose names may look like those of adapters.
std::vector<NamedTensor> WithoutState(const SafetensorsFile& file, const Parameters& parameters) {
  std::vector<NamedTensor> weights;
  for (const NamedTensor& each : file.tensors()) {
    const auto kind = each.name.rfind(".lora_");
    const std::string weight = kind == std::string::npos ? each.name : each.name.substr(0, kind) + ".weight";
    if (parameters.Find(weight).ok()) weights.push_back(each);
  }
  return weights;
}

// Like Parameters::Load of a run's weights. If the run trains adapters, merges them.
absl::Status LoadMerged(const std::string& run, const std::string& path, Parameters::Others others,
                        Parameters* parameters) {
  const double scale = AdapterScale(run);
  if (scale == 0) return parameters->Load(path, Parameters::kWeights, others, WantedChecksum::kOfRun);
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path, WantedChecksum::kOfRun));
  Arena arena;
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedTensor> merged,
                        Annotate(MergeAdapters(WithoutState(file, *parameters), scale, &arena), path));
  return parameters->Set(path, merged, Parameters::kWeights, others);
}

absl::Status LoadCheckpointWeights(const std::string& run, int64_t step, Parameters* parameters) {
  const std::string path = CheckpointFolder(run + "/checkpoints", step) + kCheckpointState;
  return LoadMerged(run, path, Parameters::kMayHaveMore, parameters);
}

// Loads model.safetensors or, if it is missing, the newest checkpoint that can be loaded.
absl::Status LoadLast(const std::string& run, const std::vector<int64_t>& steps, Parameters* parameters) {
  const std::string weights = absl::StrCat(run, "/", kLastWeights);
  if (Exists(weights)) {
    const absl::Status loaded = LoadMerged(run, weights, Parameters::kNothingElse, parameters);
    if (!absl::IsDataLoss(loaded) || steps.empty()) return loaded;
    return absl::DataLossError(
        absl::StrCat(loaded.message(), "; remove this file to take the weights from the run's newest checkpoint"));
  }
  absl::Status first_error = absl::NotFoundError(absl::StrCat(run, ": neither model.safetensors nor a checkpoint"));
  for (const int64_t step : steps) {
    const absl::Status loaded = LoadCheckpointWeights(run, step, parameters);
    if (loaded.ok()) return loaded;
    if (absl::IsNotFound(first_error)) first_error = loaded;
  }
  return first_error;
}

// Sets each weight to its mean over the checkpoints of `steps`. The sums are f64, from the newest checkpoint on.
absl::Status LoadMean(const std::string& run, absl::Span<const int64_t> steps, Parameters* parameters) {
  std::map<std::string, std::vector<double>> sums;
  const std::vector<std::string> names = parameters->Names(Parameters::kWeights);
  // Calls `function` with each element of the weights and its sum.
  const auto for_each = [&](auto function) {
    for (const std::string& name : names) {
      const Tensor tensor = *parameters->Find(name);
      std::vector<double>& sum = sums[name];
      sum.resize(static_cast<size_t>(tensor.type.shape.elements()));
      if (!IsFloat(tensor.type.dtype)) continue;
      Dispatch(tensor.type.dtype, [&](auto zero) {
        for (size_t i = 0; i < sum.size(); ++i) function(tensor.as<decltype(zero)>()[i], sum[i]);
      });
    }
  };
  for (const int64_t step : steps) {
    WEFT_RETURN_IF_ERROR(LoadCheckpointWeights(run, step, parameters));
    for_each([](const auto& value, double& sum) { sum += static_cast<double>(value); });
  }
  for_each([&](auto& value, double sum) {
    value = static_cast<std::decay_t<decltype(value)>>(sum / static_cast<double>(steps.size()));
  });
  return absl::OkStatus();
}

}  // namespace

std::string RunWeightsFile(const std::string& path) {
  const auto [run, weights] = ParseRunPath(path);
  const bool last = weights.empty() || weights == "last";
  const char* const name = last ? kLastWeights : weights == "best" ? kBestWeights : weights == "ema" ? kEmaWeights : "";
  const std::string file = absl::StrCat(run, "/", name);
  return *name != '\0' && Exists(file) && AdapterScale(run) == 0 ? file : "";
}

absl::Status LoadRunWeights(const std::string& path, Parameters* parameters) {
  const auto [run, weights] = ParseRunPath(path);
  const std::vector<int64_t> steps = ListCheckpoints(run + "/checkpoints");
  if (weights.empty() || weights == "last") return LoadLast(run, steps, parameters);
  for (const auto& [name, file, flag] : {std::tuple{"best", kBestWeights, "save-best"}, {"ema", kEmaWeights, "ema"}}) {
    if (weights != name) continue;
    const std::string found = absl::StrCat(run, "/", file);
    if (Exists(found)) return LoadMerged(run, found, Parameters::kNothingElse, parameters);
    return absl::NotFoundError(
        absl::StrCat(path, ": the run has no ", file, "; the option ", flag, " of a training makes it"));
  }
  int64_t number = 0;
  absl::string_view count = weights;
  if (absl::ConsumePrefix(&count, "mean") && (count.empty() || absl::ConsumePrefix(&count, ":"))) {
    const auto all = static_cast<int64_t>(steps.size());
    if (weights == "mean") number = all;
    if (weights != "mean" && (!absl::SimpleAtoi(count, &number) || number < 1 || number > all)) {
      return InvalidArgument(path, ": there is no mean of ", count, " checkpoints: the run has ", all);
    }
    if (number == 0) return absl::NotFoundError(absl::StrCat(path, ": the run has no checkpoints"));
    return LoadMean(run, absl::MakeConstSpan(steps).first(static_cast<size_t>(number)), parameters);
  }
  if (!absl::SimpleAtoi(weights, &number)) {
    return InvalidArgument(path, ": '@", weights, "' names no weights of a run; wanted ", kRunWeightsHelp);
  }
  if (!absl::c_linear_search(steps, number)) {
    return absl::NotFoundError(absl::StrCat(path, ": the run has no checkpoint of step ", number,
                                            steps.empty() ? "" : "; the checkpoints are of steps ",
                                            absl::StrJoin(steps, ", ")));
  }
  return LoadCheckpointWeights(run, number, parameters);
}

}  // namespace weft
