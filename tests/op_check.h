// CheckOp tests an op on its own examples. It serves ops outside the library as well:
//
//   TEST(Silu, FollowsTheRules) { CheckOp(kSilu); }
//
// Types of an example that state no dtype are f32, then f64 and, if the op has a kernel for it, bf16. CheckOp checks:
// - the shape rule, and values against the elementary spelling and the reference, whichever the op has;
// - every tile, alone and in another order: it reads and writes only what OpDef::access says;
// - execution in place; and four threads against one, bit for bit, in the smallest tiles and as compiled;
// - in f64: gradients of first and second order against central differences;
// - errors; and that the OpDef has examples, an elementary spelling or reference, and a gradient or a reason for none.
#ifndef WEFT_TESTS_OP_CHECK_H_
#define WEFT_TESTS_OP_CHECK_H_

#include <string>

#include "weft/tests/op_case.h"

namespace weft {

struct OpCheckResult {
  int bf16 = 0;                // examples in bf16
  int gradients = 0;           // examples whose gradient was compared
  int second_gradients = 0;    // examples whose gradient's gradient was compared
  std::string second_missing;  // if there is no second gradient: the reason
};

// Reports failures through GoogleTest.
OpCheckResult CheckOp(const OpDef& op);

// The functions of CheckOp. `twin` is the same node, recorded in f64.
void CheckValues(const OpExample& example, const NodeCase& node, const NodeCase& twin);
void CheckTiles(const NodeCase& node);
void CheckInPlace(const NodeCase& node);
void CheckConcurrentTiles(const NodeCase& node);
void CheckThreads(const OpCase& c);
void CheckOpGradients(const OpDef& op, const OpExample& example, OpCheckResult* result);

}  // namespace weft

#endif  // WEFT_TESTS_OP_CHECK_H_
