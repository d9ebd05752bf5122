// A folded program as Graphviz's DOT, and as JSON, which the page apps/graph/graph_page.html draws too.
//
// The JSON is one object:
//
//   stage       "recorded" or "compiled"
//   depth       of the fold
//   boxes       of the fold, each after those that it reads:
//     id          from 0
//     scope       the first levels of its nodes' scopes; of an input its name
//     phase       "input", "forward", "backward", "update"; "recorded" of a program that isn't compiled
//     part        0, or which one of this scope and phase it is, where one alone would make a cycle
//     ops         how many nodes there are of each op: {"matmul": 4}
//     flops, bytes                        what the cost model says: of computing, and of operands read and written
//     parameters  count, elements, bytes  of what its nodes read; one that several boxes read is counted in each
//     nodes       in the order of the program:
//       id          from 0, of the program
//       op, attrs   "slice", "axis=0 begin=0 end=64"; of an input its name
//       scope       all of it
//       inputs      values, numbered as in --format=text
//       outputs     values
//       types       of the outputs: "f32[12,64]"
//       flops, bytes
//       group       which nodes run together, tile by tile; not of those that run alone
//   edges       between boxes: from, to (boxes), values (how many different ones), bytes
//   sources     parameters and constants, which are in no box: id, op, name (of a parameter), output, type, bytes
#ifndef WEFT_LAB_FOLDED_PRINT_H_
#define WEFT_LAB_FOLDED_PRINT_H_

#include <string>

#include "weft/lab/fold.h"

namespace weft {

std::string PrintDot(const Fold& fold);
// Of the program that `fold` is of; `graph` is null for one that isn't compiled.
std::string PrintJson(const Program& program, const CompiledGraph* graph, const Fold& fold, int depth);

}  // namespace weft

#endif  // WEFT_LAB_FOLDED_PRINT_H_
