// Random programs for tests: products, reductions, chains of elementwise ops, views, and states that are written while
// others still read their old versions.
#ifndef WEFT_TESTS_RANDOM_PROGRAM_H_
#define WEFT_TESTS_RANDOM_PROGRAM_H_

#include <cstddef>
#include <vector>

#include "weft/core/tape.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"

namespace weft {

struct RandomProgram {
  VarList fetch, updates;
};

// Records on an empty tape. Inputs "x" and "y" have the shape of the first fetched value.
RandomProgram RecordRandomProgram(uint32_t seed, Tape* tape);

// The bytes of what is fetched in two runs, and of the parameters after them. Empty, with a failure, where one fails.
std::vector<std::byte> RunTwice(const Graph& graph, const Tape& tape, const VarList& fetch,
                                const RunnerOptions& options);

}  // namespace weft

#endif  // WEFT_TESTS_RANDOM_PROGRAM_H_
