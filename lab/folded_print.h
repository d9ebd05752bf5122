// These functions print a folded program as Graphviz's DOT and as JSON. The page lab/graph_page.html draws the JSON.
//
// The JSON is one object:
//
//   stage       "recorded" or "compiled"
//   depth       the depth of the fold
//   boxes       the fold's boxes, each after those that it reads:
//     id          a number from 0
//     scope       the first levels of its nodes' scopes; for an input, its name
//     phase       "input", "forward", "backward", "update"; "recorded" in a program that is not compiled
//     part        from 0: number of the box in its scope and phase; more than one if a single box would close a cycle
//     ops         the number of nodes of each op: {"matmul": 4}
//     flops, bytes  the cost model's operations, and bytes of operands read and written
//     parameters  count, elements, bytes of the parameters that its nodes read; several boxes may count a parameter
//     nodes       in the order of the program:
//       id          the node's number in the program, from 0
//       op, attrs   "slice", "axis=0 begin=0 end=64"; for an input, attrs is its name
//       scope       the whole scope
//       inputs      values, numbered as in the text format
//       outputs     values
//       types       the outputs' types: "f32[12,64]"
//       flops, bytes
//       group       a fusion group's number; absent if the node runs alone or not at all
//   edges       between boxes: from, to (boxes), values (the number of distinct values), bytes
//   sources     parameters and constants, which are in no box: id, op, name (of a parameter), output, type, bytes
#ifndef WEFT_LAB_FOLDED_PRINT_H_
#define WEFT_LAB_FOLDED_PRINT_H_

#include <string>

#include "weft/lab/fold.h"

namespace weft {

std::string PrintDot(const Fold& fold);
// `fold` must be a fold of `program` at `depth`. `graph`: the compiled graph of `program`; null if `program` is a
// recorded program.
std::string PrintJson(const Program& program, const CompiledGraph* graph, const Fold& fold, int depth);

}  // namespace weft

#endif  // WEFT_LAB_FOLDED_PRINT_H_
