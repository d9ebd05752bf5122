// Differentiate is reverse-mode differentiation: it records the gradients of a scalar on the scalar's tape, as ordinary
// ops. A tape records gradients as one node, Tape::Gradient; the compiler calls Differentiate when it expands that
// node.
//
//   const VarList gradients = Differentiate(loss, {weight, bias});
#ifndef WEFT_GRAPH_COMPILE_GRADIENT_H_
#define WEFT_GRAPH_COMPILE_GRADIENT_H_

#include "weft/core/tape.h"

namespace weft {

// Returns d `loss` / d `wrt[i]` for each i: zeros if the loss does not depend on `wrt[i]`. Differentiates only node
// `first` and later nodes; values of earlier nodes are constants, unless they are in `wrt`. The tape fails if a path
// from `wrt` to the loss has a write, or an op without a gradient. `partial`: see GradientAttrs.
VarList Differentiate(Var loss, VarSpan wrt, NodeId first = NodeId{0}, bool partial = false);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_GRADIENT_H_
