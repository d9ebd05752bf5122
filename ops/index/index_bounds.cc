#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/attributes.h"

namespace weft {

void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view counted,
                   std::optional<int64_t> ignored) {
  Tape* const tape = indices.tape;
  if (tape == nullptr || !tape->status().ok() || indices.shape().elements() == 0) return;
  const Program& program = tape->program();
  const Node& source = program.producer(indices.id);
  if (source.op != &kInputOp) return;
  const InputSpec& spec = program.inputs[source.attrs.as<SourceAttrs>().index];
  const auto [below, declared] = spec.bounds;
  std::string wrong;
  if (below <= 0) {
    wrong = absl::StrCat("has no range, wanted below <= ", count);
  } else if (below > count) {
    wrong = absl::StrCat("is declared with below = ", below, ", wanted below <= ", count);
  } else if (declared == InputBounds().ignored || declared == ignored) {
    return;
  } else {
    wrong = absl::StrCat("is declared with ignored = ", declared, ", wanted ",
                         ignored ? absl::StrCat(*ignored, " as in the op") : "none");
  }
  tape->Fail(ShapeError(op, absl::StrCat("input '", spec.name, "' ", wrong, "; there are ", count, " ", counted),
                        {spec.type}));
}

}  // namespace weft
