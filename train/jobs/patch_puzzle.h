// A PatchPuzzle makes a task from pictures without labels: it hides random patches of a picture, or shuffles the
// patches. WritePuzzles shows how a trained Vision Transformer solves such puzzles.
//
//   const PatchPuzzle puzzle = {.task = VitTask::kOrder, .height = 28, .width = 28, .patch = 4};
//   const std::vector<int32_t> places = puzzle.Draw({.seed = 1, .step = 7}, /*row=*/0);
//   puzzle.Shuffle(places, absl::MakeSpan(picture));   // patch i is now the one of place places[i]
#ifndef WEFT_TRAIN_JOBS_PATCH_PUZZLE_H_
#define WEFT_TRAIN_JOBS_PATCH_PUZZLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/models/vit.h"

namespace weft {

struct PatchPuzzle {
  VitTask task = VitTask::kMasked;  // kMasked or kOrder
  int64_t height = 0, width = 0;    // of a picture in pixels, multiples of patch
  int64_t patch = 0;                // the height and width of a patch
  int64_t hidden = 0;               // kMasked: number of hidden patches of a picture, at most patches()

  int64_t patches() const { return (height / patch) * (width / patch); }

  // Returns the puzzle of row `row` of a batch. For kMasked, these are the hidden patches; for kOrder, the place of
  // each patch that is shown. The result depends only on the seed and step of `random` and on `row`.
  std::vector<int32_t> Draw(RandomStream random, int64_t row) const;
  // Copies patch `i` of the picture `from` to place `j` of the picture `to`.
  void Copy(absl::Span<const float> from, int64_t i, absl::Span<float> to, int64_t j) const;
  // Puts the patch of place places[i] at place i, for each i.
  void Shuffle(absl::Span<const int32_t> places, absl::Span<float> picture) const;
};

// A picture with its puzzle. Pixels are from -1, black, to 1, white.
struct PuzzleSample {
  std::vector<float> picture;
  std::vector<int32_t> draw;  // PatchPuzzle::Draw
};

// Solves `samples` with the weights of the run folder `run`, and writes a PNG file. A row of it has a picture, its
// puzzle and the solution. Hidden patches and places without a patch are grey. If the model gives several patches the
// same place, the one with the largest logit is shown. `threads`: as for Runner.
absl::Status WritePuzzles(const PatchPuzzle& puzzle, const VitConfig& model, absl::Span<const PuzzleSample> samples,
                          const std::string& run, const std::string& file, int64_t threads);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_PATCH_PUZZLE_H_
