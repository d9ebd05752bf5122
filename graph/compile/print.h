// These functions print programs and graphs as text, one node a line, and programs as Graphviz's DOT. They also print
// the memory of a graph, which patterns the compiler raised, and what bounds the graph's speedup.
#ifndef WEFT_GRAPH_COMPILE_PRINT_H_
#define WEFT_GRAPH_COMPILE_PRINT_H_

#include <string>

#include "weft/graph/graph.h"

namespace weft {

std::string PrintText(const Program& program);
std::string PrintText(const Graph& graph);  // adds the fusion group of each node whose group has several nodes
std::string PrintDot(const Program& program);
// Returns the name of an input or parameter, or the attributes of any other node: "axis=1 keep=true".
std::string PrintDetail(const Program& program, const Node& node);
// Returns a table with the bytes of values, parameters, constants and workspaces, and the numbers of kernel calls,
// groups, tasks and edges.
std::string PrintMemory(const Graph& graph);
// Returns one line for each different result of a pattern in a scope: "raised" or the reason why not, and how often it
// occurred.
std::string PrintExplanations(const Graph& graph);
// Returns the figures of SpeedupOf, and the five nodes that take most of the longest path.
std::string PrintSpeedup(const Graph& graph);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_PRINT_H_
