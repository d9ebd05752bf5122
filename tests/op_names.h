// OpNames returns the names of a program's ops in their order, for tests of passes.
#ifndef WEFT_TESTS_OP_NAMES_H_
#define WEFT_TESTS_OP_NAMES_H_

#include <string>
#include <vector>

#include "weft/core/program.h"

namespace weft {

inline std::vector<std::string> OpNames(const Program& program) {
  std::vector<std::string> names;
  for (const Node& node : program.nodes) names.push_back(node.op->name);
  return names;
}

}  // namespace weft

#endif  // WEFT_TESTS_OP_NAMES_H_
