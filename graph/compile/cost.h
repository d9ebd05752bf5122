// The cost model roughly estimates the seconds that a node takes on one core. Among other things, these seconds decide
// how finely the node is cut into tiles, and which ready task runs first.
#ifndef WEFT_GRAPH_COMPILE_COST_H_
#define WEFT_GRAPH_COMPILE_COST_H_

#include <algorithm>

#include "weft/core/op.h"

namespace weft {

// These rates are constants, not measurements, so that a graph has the same tiles, tasks and memory plan on all
// machines.
inline constexpr double kFlopsPerSecond = 1e11, kBytesPerSecond = 5e9;
inline constexpr double kTaskSeconds = 0.2e-6;  // 0.2 µs to start a task
// Default of the target duration of a tile: 150 µs. This is long enough to amortise starting a task and packing a
// product's operands. It is short enough that a training step still has many tiles.
inline constexpr double kTileSeconds = 150e-6;

// Returns the estimated seconds of a node: the time of its arithmetic or of its memory traffic, whichever is longer.
inline double Seconds(const OpDef& op, const OpArgs& args) {
  const Cost cost = CostOf(op, args);
  const bool bf16 = !args.inputs.empty() && args.inputs[0].dtype == kBF16;  // CPUs multiply bf16 twice as fast
  return std::max(cost.flops / (bf16 ? 2 * kFlopsPerSecond : kFlopsPerSecond), cost.bytes / kBytesPerSecond);
}

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_COST_H_
