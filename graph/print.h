// Programs as text, one node a line, and as Graphviz's DOT; and what a graph takes of memory.
#ifndef WEFT_GRAPH_PRINT_H_
#define WEFT_GRAPH_PRINT_H_

#include <string>

#include "weft/graph/graph.h"

namespace weft {

std::string PrintText(const Program& program);
std::string PrintText(const Graph& graph);  // says of nodes that run together which group they are in
std::string PrintDot(const Program& program);
// The name of an input or parameter, or the attributes of any other node: "axis=1 keep=true".
std::string PrintDetail(const Program& program, const Node& node);
// A table: the values' three figures, parameters, constants, workspaces, and the counts of steps, groups, tasks and
// edges.
std::string PrintMemory(const Graph& graph);
// A line for each pattern that was recognised, and how often: "raised", or why it was left as it was.
std::string PrintExplanations(const Graph& graph);

}  // namespace weft

#endif  // WEFT_GRAPH_PRINT_H_
