// Many words of a random stream at once, on Highway: the same words as RandomStream::Word gives.
#ifndef WEFT_OPS_KERNELS_RANDOM_WORDS_H_
#define WEFT_OPS_KERNELS_RANDOM_WORDS_H_

#include <cmath>
#include <cstdint>

#include "weft/core/dtype.h"
#include "weft/core/random.h"

namespace weft {

// Words 4 * first .. 4 * (first + blocks) - 1.
void RandomWords(const RandomStream& stream, uint64_t first, int64_t blocks, uint32_t* words);

// What the upper 24 bits of a word are below with probability `rate`.
inline uint32_t DropThreshold(double rate) { return static_cast<uint32_t>(std::ceil(rate * 0x1p24)); }

// y[i] = scale · x[i] where the upper 24 bits of words[i] are at least `threshold`, else 0; y may be x.
void KeepWhere(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y, int64_t n);
void KeepWhere(const uint32_t* words, uint32_t threshold, float scale, const BF16* x, BF16* y, int64_t n);
void KeepWhere(const uint32_t* words, uint32_t threshold, double scale, const double* x, double* y, int64_t n);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_RANDOM_WORDS_H_
