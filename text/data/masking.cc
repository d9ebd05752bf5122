// MaskTokens draws each row's targets without replacement: a partial Fisher-Yates shuffle of the positions that may be
// chosen.
#include "weft/text/data/masking.h"

#include <algorithm>
#include <utility>

#include "weft/core/program.h"

namespace weft {

void MaskTokens(const std::vector<bool>& may, int64_t rows, const MaskingOptions& options, RandomStream random,
                absl::Span<int32_t> tokens, MaskedPositions* out, int64_t first_row) {
  random.stream = kMaskStream;
  const size_t length = tokens.size() / static_cast<size_t>(rows), count = static_cast<size_t>(options.count);
  out->indices.assign(static_cast<size_t>(rows) * count, 0);
  out->targets.assign(static_cast<size_t>(rows) * count, kIgnoredTarget);
  out->chosen = 0;
  std::vector<int32_t> candidates;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    candidates.clear();
    for (size_t i = row * length; i < (row + 1) * length; ++i) {
      if (may[i]) candidates.push_back(static_cast<int32_t>(i));
    }
    const size_t chosen = std::min(count, candidates.size());
    // Each target has four random numbers and uses three of them.
    uint64_t next = (static_cast<uint64_t>(first_row) + row) * 4 * count;
    for (size_t i = 0; i < chosen; ++i, next += 4) {
      std::swap(candidates[i], candidates[i + random.Below(candidates.size() - i, next)]);
      int32_t& token = tokens[static_cast<size_t>(candidates[i])];
      out->indices[row * count + i] = candidates[i];
      out->targets[row * count + i] = token;
      const uint64_t tenth = random.Below(10, next + 1);
      if (tenth < 8) token = options.mask;
      if (tenth == 8) {
        token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(options.vocabulary), next + 2));
      }
    }
    out->chosen += static_cast<int64_t>(chosen);
  }
}

void AddNoise(absl::Span<int32_t> tokens, double probability, int64_t vocabulary, RandomStream random,
              const std::vector<bool>& may, int64_t first) {
  if (probability <= 0) return;
  random.stream = kNoiseStream;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t index = 2 * (static_cast<uint64_t>(first) + i);
    if ((!may.empty() && !may[i]) || static_cast<double>(random.Uniform(index)) >= probability) continue;
    tokens[i] = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocabulary), index + 1));
  }
}

}  // namespace weft
