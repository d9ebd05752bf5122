#include "weft/text/noise.h"

namespace weft {

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
