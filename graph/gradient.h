// Reverse-mode differentiation: records the gradients of a scalar on its own tape, as ordinary ops.
#ifndef WEFT_GRAPH_GRADIENT_H_
#define WEFT_GRAPH_GRADIENT_H_

#include "weft/core/tape.h"

namespace weft {

// d loss / d wrt[i] for each i; zeros where the loss does not depend on it. Only nodes from `first` on are
// differentiated: what was recorded before it counts as constant. An op without a gradient, or a write, on a path from
// wrt to the loss is the tape's error.
VarList Differentiate(Var loss, VarSpan wrt, NodeId first = NodeId{0});

}  // namespace weft

#endif  // WEFT_GRAPH_GRADIENT_H_
