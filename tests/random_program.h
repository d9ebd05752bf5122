// RecordRandomProgram records random programs for tests. They have products, reductions, chains of elementwise ops and
// views. They also have states that are written while other nodes still read the old versions.
#ifndef WEFT_TESTS_RANDOM_PROGRAM_H_
#define WEFT_TESTS_RANDOM_PROGRAM_H_

#include <cstddef>
#include <vector>

#include "weft/core/tape.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"

namespace weft {

struct RandomProgram {
  VarList fetch, updates;
};

// Records the program of `seed` on an empty tape. Inputs "x" and "y" have the shape of the first fetched value.
RandomProgram RecordRandomProgram(uint32_t seed, Tape* tape);

// Runs the graph twice. Returns the bytes of the fetched values of both executions and of the final parameters;
// nothing, with a test failure, if an execution fails.
std::vector<std::byte> RunTwice(const Graph& graph, const Tape& tape, const VarList& fetch,
                                const RunnerOptions& options);

}  // namespace weft

#endif  // WEFT_TESTS_RANDOM_PROGRAM_H_
