// CheckOp: what is tested of every op, from its own examples. It serves ops defined outside the library as well:
//
//   TEST(Silu, FollowsTheRules) { CheckOp(kSilu); }
//
// For each example, in f32, f64 and, where there is a kernel, bf16: the shape rule; values against the elementary
// spelling or the reference; every tile, in another order and alone, for what it reads and writes; in-place runs; one
// thread against four, bit for bit, in the smallest tiles and as compiled. In f64: gradients of first and second order
// against central differences. Error rows. What is missing in the OpDef fails, too.
#ifndef WEFT_TESTS_OP_CHECK_H_
#define WEFT_TESTS_OP_CHECK_H_

#include <string>

#include "weft/tests/op_case.h"

namespace weft {

struct OpCheckResult {
  int bf16 = 0;                // examples in bf16
  int gradients = 0;           // examples whose gradient was compared
  int second_gradients = 0;    // examples whose gradient's gradient was compared
  std::string second_missing;  // why there is none, where there is none
};

// Reports failures through GoogleTest.
OpCheckResult CheckOp(const OpDef& op);

// The parts of it. A node's values and those of its twin, the same node recorded in f64.
void CheckValues(const OpExample& example, const NodeCase& node, const NodeCase& twin);
void CheckTiles(const NodeCase& node);
void CheckInPlace(const NodeCase& node);
void CheckConcurrentTiles(const NodeCase& node);
void CheckThreads(const OpCase& c);
void CheckGradients(const OpDef& op, const OpExample& example, OpCheckResult* result);

}  // namespace weft

#endif  // WEFT_TESTS_OP_CHECK_H_
