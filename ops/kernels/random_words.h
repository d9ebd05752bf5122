// Many words of a random stream at once, on Highway: the same words as RandomStream::Word gives.
#ifndef WEFT_OPS_KERNELS_RANDOM_WORDS_H_
#define WEFT_OPS_KERNELS_RANDOM_WORDS_H_

#include <cstdint>

#include "weft/core/random.h"

namespace weft {

// Words 4 * first .. 4 * (first + blocks) - 1.
void RandomWords(const RandomStream& stream, uint64_t first, int64_t blocks, uint32_t* words);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_RANDOM_WORDS_H_
