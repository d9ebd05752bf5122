// A draw is a partial Fisher-Yates shuffle of the patches.
#include "weft/train/jobs/patch_puzzle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/formats/images.h"
#include "weft/formats/run_folder.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using Picture = std::vector<float>;

constexpr float kGrey = 0;         // halfway between black and white
constexpr int64_t kMinSide = 112;  // of a shown picture in pixels: large enough to see the patches of 28 x 28 pixels
constexpr int64_t kGap = 4;        // between shown pictures

// Returns the picture with its hidden patches in grey, or with its patches in the order of the puzzle.
Picture Posed(const PatchPuzzle& puzzle, const PuzzleSample& sample) {
  Picture posed = sample.picture;
  if (puzzle.task == VitTask::kOrder) {
    puzzle.Shuffle(sample.draw, absl::MakeSpan(posed));
    return posed;
  }
  const Picture grey(posed.size(), kGrey);
  for (const int32_t hidden : sample.draw) puzzle.Copy(grey, hidden, absl::MakeSpan(posed), hidden);
  return posed;
}

// Returns the picture with the predicted pixels [N, P·P] in place of the hidden patches.
Picture Reconstructed(const PatchPuzzle& puzzle, const PuzzleSample& sample, absl::Span<const float> pixels) {
  Picture predicted(sample.picture.size()), result = sample.picture;
  const int64_t patch = puzzle.patch, across = puzzle.width / patch;
  for (int64_t i = 0; i < static_cast<int64_t>(pixels.size()); ++i) {
    const int64_t n = i / (patch * patch), y = i / patch % patch, x = i % patch;
    predicted[static_cast<size_t>((n / across * patch + y) * puzzle.width + n % across * patch + x)] =
        pixels[static_cast<size_t>(i)];
  }
  for (const int32_t hidden : sample.draw) puzzle.Copy(predicted, hidden, absl::MakeSpan(result), hidden);
  return result;
}

// Returns the patches of `posed` at their most likely places by the logits [N, N].
Picture PutBack(const PatchPuzzle& puzzle, const Picture& posed, absl::Span<const float> logits) {
  const auto n = static_cast<size_t>(puzzle.patches());
  Picture result(posed.size(), kGrey);
  std::vector<float> best(n, -std::numeric_limits<float>::infinity());  // the logit of the patch at each place
  for (size_t i = 0; i < n; ++i) {
    const absl::Span<const float> row = logits.subspan(i * n, n);
    const auto place = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    if (row[place] <= best[place]) continue;
    best[place] = row[place];
    puzzle.Copy(posed, static_cast<int64_t>(i), absl::MakeSpan(result), static_cast<int64_t>(place));
  }
  return result;
}

// Draws rows of pictures, each enlarged by a whole number, on white.
GreyPicture DrawRows(const PatchPuzzle& puzzle, const std::vector<std::vector<Picture>>& rows) {
  const int64_t scale = std::max<int64_t>(1, (kMinSide + puzzle.width - 1) / puzzle.width);
  const int64_t height = scale * puzzle.height, width = scale * puzzle.width;
  const auto count = static_cast<int64_t>(rows.size()), columns = static_cast<int64_t>(rows[0].size());
  GreyPicture sheet(count * (height + kGap) + kGap, columns * (width + kGap) + kGap, 255);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const Picture& from = rows[static_cast<size_t>(row)][static_cast<size_t>(column)];
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          const float pixel = from[static_cast<size_t>(y / scale * puzzle.width + x / scale)];
          sheet.at(kGap + row * (height + kGap) + y, kGap + column * (width + kGap) + x) =
              static_cast<uint8_t>(std::lround(127.5f * (std::clamp(pixel, -1.0f, 1.0f) + 1)));
        }
      }
    }
  }
  return sheet;
}

}  // namespace

std::vector<int32_t> PatchPuzzle::Draw(RandomStream random, int64_t row) const {
  random.stream = kPatchStream;
  std::vector<int32_t> drawn(static_cast<size_t>(patches()));
  std::iota(drawn.begin(), drawn.end(), 0);
  const size_t count = task == VitTask::kOrder ? drawn.size() : static_cast<size_t>(hidden);
  for (size_t i = 0; i < count; ++i) {
    std::swap(drawn[i], drawn[i + random.Below(drawn.size() - i, static_cast<uint64_t>(row) * drawn.size() + i)]);
  }
  drawn.resize(count);
  return drawn;
}

void PatchPuzzle::Copy(absl::Span<const float> from, int64_t i, absl::Span<float> to, int64_t j) const {
  const int64_t across = width / patch;
  const auto corner = [&](int64_t n) { return n / across * patch * width + n % across * patch; };
  for (int64_t y = 0; y < patch; ++y) {
    std::copy_n(&from[static_cast<size_t>(corner(i) + y * width)], patch,
                &to[static_cast<size_t>(corner(j) + y * width)]);
  }
}

void PatchPuzzle::Shuffle(absl::Span<const int32_t> places, absl::Span<float> picture) const {
  const Picture before(picture.begin(), picture.end());
  for (size_t i = 0; i < places.size(); ++i) Copy(before, places[i], picture, static_cast<int64_t>(i));
}

absl::Status WritePuzzles(const PatchPuzzle& puzzle, const VitConfig& model, absl::Span<const PuzzleSample> samples,
                          const std::string& run, const std::string& file, int64_t threads) {
  const auto count = static_cast<int64_t>(samples.size());
  Tape tape;
  const Var images = tape.Input("images", {kF32, {count, puzzle.height, puzzle.width, 1}});
  const bool masked = puzzle.task == VitTask::kMasked;
  const Vit vit(model);
  Var mask, predicted;  // [B, N], [B, N, P·P] or [B, N, N]
  if (masked) {
    mask = tape.Input("mask", {kF32, {count, puzzle.patches()}});
    predicted = vit.Reconstruct(vit.Encode(images, {.mask = mask}));
  } else {
    predicted = vit.Predict(puzzle.task, images);
  }
  Parameters parameters({.draw = false});
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, {.fetch = {predicted}, .mode = kEval}));
  Runner runner(std::move(graph), &parameters, {.threads = static_cast<int>(threads)});
  WEFT_RETURN_IF_ERROR(runner.status());
  WEFT_RETURN_IF_ERROR(LoadRunWeights(run, &parameters));

  std::vector<float> pixels, masks(samples.size() * static_cast<size_t>(puzzle.patches()));
  std::vector<std::vector<Picture>> rows;
  for (size_t i = 0; i < samples.size(); ++i) {
    rows.push_back({samples[i].picture, Posed(puzzle, samples[i])});
    const Picture& input = rows[i][masked ? 0 : 1];  // the mask token hides patches, so that their pixels do not count
    pixels.insert(pixels.end(), input.begin(), input.end());
    if (!masked) continue;
    for (const int32_t hidden : samples[i].draw) {
      masks[i * static_cast<size_t>(puzzle.patches()) + static_cast<size_t>(hidden)] = 1;
    }
  }
  std::vector<FeedPair> feeds = {{images, pixels}};
  if (masked) feeds.push_back({mask, masks});
  WEFT_ASSIGN_OR_RETURN(const Outputs out, runner.Run(feeds));
  const absl::Span<const float> values = out[predicted].span<const float>();
  const size_t each = values.size() / samples.size();
  for (size_t i = 0; i < samples.size(); ++i) {
    const absl::Span<const float> mine = values.subspan(i * each, each);
    rows[i].push_back(masked ? Reconstructed(puzzle, samples[i], mine) : PutBack(puzzle, rows[i][1], mine));
  }
  return WritePng(file, DrawRows(puzzle, rows));
}

}  // namespace weft
