// CheckChain checks that a random chain computes the same, however it is compiled and run.
#ifndef WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
#define WEFT_TESTS_FUZZ_CHAIN_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/graph/compile.h"
#include "weft/tests/fuzz/random_chain.h"

namespace weft {

// The number of builds: each subset of the optional passes, with and without a memory budget that forces recomputation.
inline constexpr uint32_t kBuildCount = 2u << kPassCount;

struct ChainCheck {
  ChainOptions chain;
  DType precision = kF32;
  uint32_t first_build = 0;  // `builds` consecutive builds are checked, modulo kBuildCount
  uint32_t builds = 4;
};

// Runs each build twice, with an update between the executions, and checks:
//   - the bits are the same on one, two, three and four threads, under each policy in turn;
//   - the bits are the same without folding, advanced writes and fusion, which promise that (see Pass);
//   - values, gradients and updated weights agree with those of the build without any pass. The tolerance is 1e-9 in
//     f64 and 5e-3 in f32, relative to a tensor's largest element; bf16 is not compared.
// Returns InternalError, with the difference, if a check fails. Other errors come from recording, compiling and
// running.
absl::Status CheckChain(const ChainCheck& check);

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
