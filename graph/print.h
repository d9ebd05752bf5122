// These functions print programs and graphs as text, one node a line, and as Graphviz's DOT. They also print the memory
// of a graph, and which patterns were raised.
#ifndef WEFT_GRAPH_PRINT_H_
#define WEFT_GRAPH_PRINT_H_

#include <string>

#include "weft/graph/graph.h"

namespace weft {

std::string PrintText(const Program& program);
std::string PrintText(const Graph& graph);  // adds the number of the fusion group, if that has several nodes
std::string PrintDot(const Program& program);
// Returns the name of an input or parameter, or the attributes of any other node: "axis=1 keep=true".
std::string PrintDetail(const Program& program, const Node& node);
// Returns a table with the bytes of values, parameters, constants and workspaces, and the numbers of kernel calls,
// groups, tasks and edges.
std::string PrintMemory(const Graph& graph);
// Returns a line for each recognised pattern, with the number of occurrences and "raised" or the reason why not.
std::string PrintExplanations(const Graph& graph);

}  // namespace weft

#endif  // WEFT_GRAPH_PRINT_H_
