// CheckChain checks that a random chain computes the same values, however it is compiled and run.
#ifndef WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
#define WEFT_TESTS_FUZZ_CHAIN_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/tests/fuzz/random_chain.h"

namespace weft {

// A build is a subset of the optional passes, with or without a memory budget that makes the compiler recompute values.
// This is the number of all builds.
inline constexpr uint32_t kBuildCount = 2u << kPassCount;

struct ChainCheck {
  ChainOptions chain;
  DType precision = kF32;
  uint32_t first_build = 0;  // `builds` consecutive builds are checked, modulo kBuildCount
  uint32_t builds = 4;
};

// Executes each build twice, with an update between the executions, and checks:
//   - the bits are the same as under policy serial on one, two, three and four threads, each under another policy;
//   - the bits are the same without kFold, kAdvanceWrites, kFuse and the memory budget, which change none (see Pass);
//   - values, gradients and updated weights agree with those of the build without any pass. The tolerance is 1e-9 in
//     f64 and 5e-3 in f32, times a tensor's largest element or 1e-3, whichever is larger. bf16 is not compared.
// Returns InternalError, with the difference, if a check fails. Other errors come from recording, compiling and
// running.
absl::Status CheckChain(const ChainCheck& check);

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
