// If ranks divide the optimizer's states (train/step/step_options.h), a checkpoint has one file for each rank. Rank 0
// writes state.safetensors with the weights and its pieces. Rank r > 0 writes state.r.safetensors with its pieces only.
// Any number of ranks, with or without sharding, can load these files. Each rank takes the rows that it needs.
//
//   if (!ranks.first()) WEFT_RETURN_IF_ERROR(WriteStatePieces(folder, ranks.rank(), parameters));
//   ...
//   WEFT_RETURN_IF_ERROR(LoadState(folder, &parameters));
#ifndef WEFT_TRAIN_RUN_STATE_PIECES_H_
#define WEFT_TRAIN_RUN_STATE_PIECES_H_

#include <string>

#include "absl/status/status.h"
#include "weft/core/parameters.h"

namespace weft {

// Writes the pieces among the parameters (distributed/piece_name.h) to the file of `rank` in `folder`. Without pieces,
// writes nothing.
absl::Status WriteStatePieces(const std::string& folder, int rank, const Parameters& parameters);
// Loads all parameters except caches from the state files in `folder`. If the files have other pieces than
// `parameters`, joins or cuts their tensors. Errors are those of Parameters::Load. After an error, `parameters` are
// unchanged.
absl::Status LoadState(const std::string& folder, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_STATE_PIECES_H_
