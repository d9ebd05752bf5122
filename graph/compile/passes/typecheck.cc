// The type checker finds programs that could not have been recorded, which a faulty pass may leave. It runs first and
// last, and in debug builds after every pass.
#include "absl/strings/str_cat.h"
#include "weft/graph/compile/passes/passes.h"

namespace weft {

absl::Status Typecheck(Rewrite& rewrite) {
  const Program& program = rewrite.program;
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    for (ValueId in : node.inputs) {
      if (program.value(in).producer < NodeId{n}) continue;
      return absl::InternalError(absl::StrCat(node.op->name, ": reads a value that is made after it"));
    }
    const absl::StatusOr<Types> types = node.op->infer(node.attrs, program.InputTypes(node));
    if (!types.ok()) return absl::InternalError(absl::StrCat("after a pass, ", types.status().message()));
    if (*types == program.OutputTypes(node)) continue;
    return absl::InternalError(absl::StrCat(node.op->name, ": a pass left ", ToString(program.OutputTypes(node)),
                                            " where the shape rule gives ", ToString(*types)));
  }
  return absl::OkStatus();
}

}  // namespace weft
