// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number depends on (seed, stream, step, index) only, so it is the same in whatever order, and on whatever thread, it
// is drawn.
#ifndef WEFT_CORE_RANDOM_H_
#define WEFT_CORE_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

using Philox4 = std::array<uint32_t, 4>;

// Four random words for a 128-bit counter and a 64-bit key.
constexpr Philox4 Philox(Philox4 counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Streams outside of any tape; a tape gives its random ops 0, 1, 2, ...
enum HostStream : uint32_t {
  kTrainPlaceStream = 0xffff0001,
  kValidationPlaceStream,
  kSampleStream,
  kNoiseStream,
  kShuffleStream,
  kScheduledSamplingStream,
  kShiftStream,
  kMaskStream,
  kSecondStream,
};

// A sequence of numbers that can be read at any index.
struct RandomStream {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t step = 0;

  constexpr Philox4 Block(uint64_t block) const {  // words 4 * block .. 4 * block + 3
    return Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), step, stream},
                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  constexpr uint32_t Word(uint64_t index) const { return Block(index / 4)[index % 4]; }
  // Uniform over [0, 1): the upper 24 bits of a word.
  constexpr float Uniform(uint64_t index) const { return static_cast<float>(Word(index) >> 8) * 0x1p-24f; }
  // Uniform over 0 .. n - 1 for n up to 2^32: the upper half of word * n.
  constexpr uint64_t Below(uint64_t n, uint64_t index) const { return (Word(index) * n) >> 32; }
};

// A 64-bit hash that stays the same (FNV-1a, then SplitMix64's finish): to derive seeds from names, or for a checksum.
constexpr uint64_t StableHash(absl::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
  h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
  return h ^ (h >> 31);
}

}  // namespace weft

#endif  // WEFT_CORE_RANDOM_H_
