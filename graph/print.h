// Programs as text, one node a line, and as Graphviz's DOT.
#ifndef WEFT_GRAPH_PRINT_H_
#define WEFT_GRAPH_PRINT_H_

#include <string>

#include "weft/core/program.h"

namespace weft {

std::string PrintText(const Program& program);
std::string PrintDot(const Program& program);

}  // namespace weft

#endif  // WEFT_GRAPH_PRINT_H_
