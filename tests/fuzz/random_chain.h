// A RandomChain is a random chain of most ops in ops.h, with random shapes, axes, options, masks and ids. It has
// gradients of first and second order, and updates of weights. (tests/random_program.h: fewer ops, larger tensors.)
#ifndef WEFT_TESTS_FUZZ_RANDOM_CHAIN_H_
#define WEFT_TESTS_FUZZ_RANDOM_CHAIN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/core/tape.h"
#include "weft/tests/buffer.h"

namespace weft {

struct ChainOptions {
  uint32_t seed = 0;
  int ops = 20;  // the number of rules to apply; a chain of more ops begins with the same ones
  DType dtype = kF64;
};

struct RandomChain {
  VarList fetch, updates;
  std::vector<std::pair<Var, Buffer>> feeds;
};

// Records a chain on an empty tape. Fetched values depend continuously on anything that rounding affects. Ops with
// kinks take values to which random numbers were added; ops with jumps take only inputs and weights.
RandomChain RecordRandomChain(const ChainOptions& options, Tape* tape);

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_RANDOM_CHAIN_H_
