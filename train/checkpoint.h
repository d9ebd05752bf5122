// Checkpoints: CHECKPOINTS/STEP/ with state.safetensors (weights, moments, all state) and checkpoint.json.
//
// A checkpoint is written as .writing-STEP, synced, and renamed as one folder: under its own name it is whole. One that
// it replaces waits as .replaced-STEP meanwhile.
#ifndef WEFT_TRAIN_CHECKPOINT_H_
#define WEFT_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/parameters.h"

namespace weft {

struct CheckpointInfo {
  int64_t step = 0;  // updates that were made
  uint64_t seed = 0;
  uint32_t parameters_step = 0;  // Parameters::step()
  std::string data;              // a fingerprint of the text
  std::string version, cpu;      // what wrote it
};

// Puts in order what a program that was killed while it saved has left in the folder. Fails if it can't be read.
absl::Status TidyCheckpoints(const std::string& checkpoints);
// Writes the checkpoint of info.step (version and cpu are filled in) and removes all but the newest `keep`.
absl::Status SaveCheckpoint(const std::string& checkpoints, CheckpointInfo info, const Parameters& parameters,
                            int keep = 2);
absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& checkpoints, int64_t step);
// Loads state.safetensors into `parameters`, with their step. Nothing is changed on an error.
absl::Status LoadCheckpoint(const std::string& checkpoints, const CheckpointInfo& info, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_CHECKPOINT_H_
