// A RandomStream gives counter-based random numbers, by Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). A number is a function of (seed, stream, step, index), so neither order nor threads change it.
//
//   const RandomStream random = {.seed = 1, .stream = kShuffleStream};
//   const float x = random.Uniform(7);        // in [0, 1)
//   const uint64_t i = random.Below(10, 8);   // in 0 .. 9
#ifndef WEFT_CORE_RANDOM_H_
#define WEFT_CORE_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

using Philox4 = std::array<uint32_t, 4>;

// Returns four random words for a 128-bit counter and a 64-bit key.
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

// Streams that are used outside of graphs. A tape numbers the streams of its random ops 0, 1, 2, ...
enum HostStream : uint32_t {
  kTrainWindowStream = 0xffff0001,
  kValidationWindowStream,
  kSampleStream,
  kNoiseStream,
  kShuffleStream,
  kScheduledSamplingStream,
  kShiftStream,
  kMaskStream,
  kSecondStream,
  kSourceStream,
  kLowPositionStream,
  kResampleStream,
  kPatchStream,
};

// A sequence of random numbers that can be read at any index.
struct RandomStream {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t step = 0;

  // Returns words 4 * block .. 4 * block + 3.
  constexpr Philox4 Block(uint64_t block) const {
    return Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), step, stream},
                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  constexpr uint32_t Word(uint64_t index) const { return Block(index / 4)[index % 4]; }
  // Returns a number uniform over [0, 1): the upper 24 bits of a word.
  static constexpr float UniformOf(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
  constexpr float Uniform(uint64_t index) const { return UniformOf(Word(index)); }
  // Returns an integer from 0 .. n - 1, each with a probability within 2^-32 of 1 / n, for n up to 2^32.
  constexpr uint64_t Below(uint64_t n, uint64_t index) const { return (Word(index) * n) >> 32; }

  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

// Returns a 64-bit hash that stays the same in all versions of Weft (FNV-1a, then the last step of SplitMix64). It
// makes seeds from names and serves as a checksum.
constexpr uint64_t StableHash(absl::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
  h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
  return h ^ (h >> 31);
}

}  // namespace weft

#endif  // WEFT_CORE_RANDOM_H_
