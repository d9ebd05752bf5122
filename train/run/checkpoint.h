// Checkpoints keep the state of a training run on the disk, so that the run can be resumed. A checkpoint is a folder
// CHECKPOINTS/STEP/ with state.safetensors (weights, moments, all state) and checkpoint.json. Each file holds its own
// checksum (base/checksum.h), so that any changed bit is found.
//
// SaveCheckpoint writes the folder .writing-STEP, syncs it and renames it to STEP, so a folder named STEP is always
// complete. An older checkpoint of the same step is called .replaced-STEP until the rename is done, and is then
// removed. A checkpoint that is no longer kept is renamed to .removing-STEP before its files are removed.
//
//   WEFT_RETURN_IF_ERROR(SaveCheckpoint("run/checkpoints", {.step = 500, .seed = 1}, parameters));
//   WEFT_ASSIGN_OR_RETURN(const CheckpointInfo info, ReadCheckpointInfo("run/checkpoints", 500));
//   WEFT_RETURN_IF_ERROR(LoadCheckpoint("run/checkpoints", info, &parameters));
#ifndef WEFT_TRAIN_RUN_CHECKPOINT_H_
#define WEFT_TRAIN_RUN_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/parameters.h"

namespace weft {

struct CheckpointInfo {
  int64_t step = 0;  // the number of updates so far
  uint64_t seed = 0;
  uint32_t parameters_step = 0;  // Parameters::step()
  std::string data;              // fingerprint of the training data
  std::string version, cpu;      // of the program and the machine that wrote it
  std::string trainer = "{}";    // a JSON object: what else the trainer needs to continue
};

// Cleans up after a program that was killed in SaveCheckpoint. Removes folders .writing-STEP and .removing-STEP. If
// STEP is missing, renames .replaced-STEP to STEP; otherwise removes .replaced-STEP. Returns an error if a folder can't
// be read, renamed or removed.
absl::Status TidyCheckpoints(const std::string& checkpoints);
// Creates the folder in which SaveCheckpoint writes the checkpoint of `step`, and returns its path. Other ranks can
// then add files to the folder before SaveCheckpoint is called with `begun`.
absl::StatusOr<std::string> BeginCheckpoint(const std::string& checkpoints, int64_t step);
// Writes the checkpoint of `info.step` and removes all checkpoints except the newest `keep`. Ignores `info.version` and
// `info.cpu`, and writes the version and CPU of this program instead. Returns InvalidArgument if `info.trainer` is not
// a JSON object. `begun`: whether BeginCheckpoint has created the folder.
absl::Status SaveCheckpoint(const std::string& checkpoints, CheckpointInfo info, const Parameters& parameters,
                            int64_t keep = 2, bool begun = false);
// Removes all checkpoints except the newest `keep`, which is at least 1, of those up to `step`. Newer ones could not be
// read when the run was resumed; they are kept only if there are fewer than `keep` others.
absl::Status PruneCheckpoints(const std::string& checkpoints, int64_t step, int64_t keep);
// Reads checkpoint.json. Returns DataLoss if it is damaged. The object `trainer` has all keys with which it was
// written.
absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& checkpoints, int64_t step);
// Loads all parameters except caches from state.safetensors and the files of other ranks, and sets their step. If the
// files have other pieces than `parameters`, joins or cuts their tensors. Errors are those of Parameters::Load. After
// an error, `parameters` are unchanged.
absl::Status LoadCheckpoint(const std::string& checkpoints, const CheckpointInfo& info, Parameters* parameters);

// If ranks divide the optimizer's states (train/step/step_options.h), a checkpoint has one file for each rank. Rank 0
// writes state.safetensors with the weights and its pieces. Rank r > 0 writes state.r.safetensors with its pieces only.
// Any number of ranks, with or without sharding, can load these files. Each rank takes the rows that it needs.

// Writes the pieces among the parameters (distributed/piece_name.h) to the file of `rank` in `folder`. Without pieces,
// writes nothing.
absl::Status WriteStatePieces(const std::string& folder, int rank, const Parameters& parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_CHECKPOINT_H_
