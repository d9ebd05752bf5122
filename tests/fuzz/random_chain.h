// Chains of ops drawn at random from most of what ops.h has, with shapes, axes, options, masks and ids; with gradients
// of first and second order, and updates of weights. (tests/random_program.h draws fewer ops of larger values.)
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
  int ops = 20;  // drawn, many of which record several; the first k are the same for any number of at least k
  DType dtype = kF64;
};

struct RandomChain {
  VarList fetch, updates;
  std::vector<std::pair<Var, Buffer>> feeds;
};

// Records on an empty tape. What is fetched is continuous where rounding can reach: ops with kinks get values to which
// random numbers were added, those with jumps get inputs.
RandomChain RecordRandomChain(const ChainOptions& options, Tape* tape);

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_RANDOM_CHAIN_H_
