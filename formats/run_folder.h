// These functions read the files of a training run: config.json, checkpoints/STEP/ and model.safetensors.
//
//   if (IsRun(folder)) WEFT_RETURN_IF_ERROR(LoadRunWeights(folder, &parameters));
//
// The writers are train/run/run_directory.h and train/run/checkpoint.h.
#ifndef WEFT_FORMATS_RUN_FOLDER_H_
#define WEFT_FORMATS_RUN_FOLDER_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"

namespace weft {

// The files of weights: those after the last saved step, their exponential moving averages, and the best by a metric.
inline constexpr char kLastWeights[] = "model.safetensors", kEmaWeights[] = "ema.safetensors",
                      kBestWeights[] = "best.safetensors";
// The files of one checkpoint.
inline constexpr char kCheckpointState[] = "/state.safetensors", kCheckpointInfo[] = "/checkpoint.json";

// Reports whether `config` is the config.json of a training run of kind `name`: its key "command" is "train NAME".
bool IsRunConfig(const nlohmann::ordered_json& config, absl::string_view name);
// Reports whether `path`, a folder or a name with "@WEIGHTS" (run_path.h), is a training run of any kind.
bool IsRun(const std::string& path);

// Returns the folder of the checkpoint of `step` inside the folder `checkpoints`.
std::string CheckpointFolder(const std::string& checkpoints, int64_t step);
// Returns the steps of the complete checkpoints, newest first, or none if the folder can't be read.
std::vector<int64_t> ListCheckpoints(const std::string& checkpoints);
// Loads weights of the run that `path` names (run_path.h). Without "@WEIGHTS", loads model.safetensors; if that file is
// missing, loads the newest checkpoint that can be loaded, and if none can, returns the error of the newest. If the run
// trains adapters, merges them. Returns NotFound if the run lacks the wanted weights, and InvalidArgument if WEIGHTS
// has no meaning.
absl::Status LoadRunWeights(const std::string& path, Parameters* parameters);
// Returns the file whose tensors are just the weights that LoadRunWeights would load, so that it can be mapped. Returns
// "" if there is no such file, because the weights are in a checkpoint, are a mean or must be merged with adapters.
std::string RunWeightsFile(const std::string& path);

}  // namespace weft

#endif  // WEFT_FORMATS_RUN_FOLDER_H_
