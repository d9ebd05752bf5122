// The cost model: what a node takes on one core, roughly. It decides how finely work is cut and what runs first.
#ifndef WEFT_GRAPH_COST_H_
#define WEFT_GRAPH_COST_H_

#include <algorithm>

#include "weft/core/op.h"

namespace weft {

// The same on every machine, so that tiles are.
inline constexpr double kFlopsPerSecond = 1e11, kBytesPerSecond = 5e9;
inline constexpr double kTaskSeconds = 0.2e-6;  // to start one
// What a tile takes at least: long against what it costs to start one and against what a product packs first, short
// against a step.
inline constexpr double kTileSeconds = 150e-6;

inline double Seconds(const OpDef& op, const OpArgs& args) {
  const Cost cost = CostOf(op, args);
  const bool bf16 =
      !args.inputs.empty() && args.inputs[0].dtype == kBF16;  // half as long, where there are products of it
  return std::max(cost.flops / (bf16 ? 2 * kFlopsPerSecond : kFlopsPerSecond), cost.bytes / kBytesPerSecond);
}

}  // namespace weft

#endif  // WEFT_GRAPH_COST_H_
