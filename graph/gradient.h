// Reverse-mode differentiation: records the gradients of a scalar on its own tape, as ordinary ops. A tape records
// gradients as one node, Tape::Gradient; the compiler calls Differentiate when it expands that node.
//
//   const VarList gradients = Differentiate(loss, {weight, bias});
#ifndef WEFT_GRAPH_GRADIENT_H_
#define WEFT_GRAPH_GRADIENT_H_

#include "weft/core/tape.h"

namespace weft {

// Returns d loss / d wrt[i] for each i, which is zero if the loss does not depend on wrt[i]. Only nodes from `first` on
// are differentiated; values that were recorded before count as constants. An op without a gradient, or a write, on a
// path from wrt to the loss is an error of the tape.
VarList Differentiate(Var loss, VarSpan wrt, NodeId first = NodeId{0});

}  // namespace weft

#endif  // WEFT_GRAPH_GRADIENT_H_
