// Random programs for tests: products, reductions, chains of elementwise ops, views, and states that are written while
// others still read their old versions.
#ifndef WEFT_TESTS_RANDOM_PROGRAM_H_
#define WEFT_TESTS_RANDOM_PROGRAM_H_

#include "weft/core/tape.h"

namespace weft {

struct RandomProgram {
  VarList fetch, updates;
};

// Records on an empty tape. Inputs "x" and "y" have the shape of the first fetched value.
RandomProgram RecordRandomProgram(uint32_t seed, Tape* tape);

}  // namespace weft

#endif  // WEFT_TESTS_RANDOM_PROGRAM_H_
