// Whether a random chain computes the same however it is compiled and run.
#ifndef WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
#define WEFT_TESTS_FUZZ_CHAIN_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/graph/compile.h"
#include "weft/tests/fuzz/random_chain.h"

namespace weft {

// Every subset of the optional passes, without and with a memory budget that takes some computing twice.
inline constexpr uint32_t kBuildCount = 2u << kPassCount;

struct ChainCheck {
  ChainOptions chain;
  DType precision = kF32;
  uint32_t first_build = 0;  // of `builds` consecutive ones, which wrap around
  uint32_t builds = 4;
};

// Each build on one to four threads, in two runs with updates between:
//   - the same bits on one, two, three and four threads, under each policy in turn;
//   - the same bits without folding, advanced writes and fusion, which promise that (Pass);
//   - values, gradients and updated weights within 1e-9, in f32 5e-3, of those of the build without any pass, relative
//   to
//     the largest of a tensor; not in bf16.
// InternalError says what differs, and by how much; other errors are those of recording, compiling and running.
absl::Status CheckChain(const ChainCheck& check);

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_CHAIN_CHECK_H_
