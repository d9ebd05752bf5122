// These functions read the files of a training run: config.json, checkpoints/STEP/ and model.safetensors. A run may be
// named together with the weights that are wanted of it, such as "runs/gpt-1@best".
//
//   const RunPath run = ParseRunPath("runs/gpt-1@best");   // {"runs/gpt-1", "best"}
//   if (IsRun(run.folder)) WEFT_RETURN_IF_ERROR(LoadRunWeights("runs/gpt-1@best", &parameters));
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
// The settings of generation, of a published model or of a run that began with one.
inline constexpr char kGenerationConfig[] = "generation_config.json";
// The files of one checkpoint.
inline constexpr char kCheckpointState[] = "/state.safetensors", kCheckpointInfo[] = "/checkpoint.json";

// How the weights of a run are named after '@', for help and errors.
inline constexpr char kRunWeightsHelp[] =
    "@last (the default), @best, @ema (moving averages), @STEP (a checkpoint), @mean or @mean:K (the mean of all or of "
    "the newest K checkpoints)";

struct RunPath {
  std::string folder;
  std::string weights;  // the text after '@'; empty without it
};
// Divides "FOLDER@WEIGHTS" at the last '@'. If `path` exists, FOLDER has no config.json, or WEIGHTS is empty, the whole
// path is the folder.
RunPath ParseRunPath(const std::string& path);
// Returns the file that is the model, if `path` is a folder without a config.json that has just one file with a model
// and its tokenizer (GGUF). Otherwise returns `path`.
std::string ModelFile(const std::string& path);
// Returns the path of the base model, which has the tokenizer, if `model` is a folder of an adapter (adapters.h).
// Otherwise, or if the adapter can't be read, returns `model`. The result has no "@WEIGHTS".
std::string BaseOf(const std::string& model);
// Returns the file or folder from which `model`'s own tokenizer is loaded: BaseOf(model) or, if that is a file without
// a tokenizer, tokenizer.bin beside it. If there is no such file, returns the folder that contains the model's file.
std::string TokenizerOf(const std::string& model);

// Reports whether `config` is the config.json of a training run of kind `name`: its key "command" is "train NAME".
bool IsRunConfig(const nlohmann::ordered_json& config, absl::string_view name);
// Reports whether `path`, a folder or a name with "@WEIGHTS", is a training run of any kind.
bool IsRun(const std::string& path);

// Returns the folder of the checkpoint of `step` inside the folder `checkpoints`.
std::string CheckpointFolder(const std::string& checkpoints, int64_t step);
// Returns the steps of the complete checkpoints, newest first, or none if the folder can't be read.
std::vector<int64_t> ListCheckpoints(const std::string& checkpoints);
// Loads weights of the run that `path` names. Without "@WEIGHTS", loads model.safetensors; if that file is
// missing, loads the newest checkpoint that can be loaded, and if none can, returns the error of the newest. If the run
// trains adapters, merges them. Returns NotFound if the run lacks the wanted weights, and InvalidArgument if WEIGHTS
// has no meaning.
absl::Status LoadRunWeights(const std::string& path, Parameters* parameters);
// Returns the file whose tensors are just the weights that LoadRunWeights would load, so that it can be mapped. Returns
// "" if there is no such file, because the weights are in a checkpoint, are a mean or must be merged with adapters.
std::string RunWeightsFile(const std::string& path);

}  // namespace weft

#endif  // WEFT_FORMATS_RUN_FOLDER_H_
