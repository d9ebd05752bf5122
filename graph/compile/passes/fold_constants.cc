// Constant folding: computes small values that depend on constants only, once at compile time instead of in every
// execution. Examples are masks, position tables and their casts.
#include <map>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/base/arena.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/graph/compile/passes/passes.h"

namespace weft {
namespace {

constexpr size_t kMaxBytes = 4096;  // of a folded value: keeps compiled graphs small

// Reports whether a node can be computed now: it is deterministic, has one small output, and reads only constants.
bool Folds(const Program& program, const Node& node) {
  if (node.op->random || node.op->writes > 0 || node.output_count != 1) return false;
  const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
  if (outputs[0].bytes() > kMaxBytes || (!node.op->view && KernelFor(*node.op, inputs, outputs) == nullptr))
    return false;
  return absl::c_all_of(node.inputs, [&](ValueId in) { return program.producer(in).op == &kConstantOp; });
}

}  // namespace

// Rewrite op(constants) to a constant
// Equal folded constants share an entry of the program's table, so that ShareCommon makes their nodes one node.
absl::Status FoldConstants(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::map<std::pair<std::string, std::vector<std::byte>>, size_t> index_of;
  for (Node& node : program.nodes) {
    if (node.op == &kConstantOp || !Folds(program, node)) continue;
    const TensorType type = program.value(node.output(0)).type;
    std::vector<Tensor> inputs;
    Arena arena;  // kernels need aligned bytes
    for (ValueId in : node.inputs) {
      const ConstantData& data = program.constant(program.producer(in));
      inputs.push_back({data.type, arena.Allocate(data.type.bytes())});
      std::copy(data.bytes->begin(), data.bytes->end(), inputs.back().data);
    }
    Tensor output = {type, arena.Allocate(type.bytes())};
    if (node.op->view) {
      output.data = inputs[0].data;
    } else {
      Evaluate(*node.op, node.attrs, inputs, absl::MakeConstSpan(&output, 1));
    }
    const std::vector<std::byte> bytes(output.data, output.data + type.bytes());
    const auto [known, added] = index_of.try_emplace({ToString(type), bytes}, program.constants.size());
    if (added) program.constants.push_back({type, std::make_shared<const std::vector<std::byte>>(bytes)});
    node.op = &kConstantOp;
    node.attrs = Attrs::Of(SourceAttrs{type, static_cast<int32_t>(known->second)});
    node.inputs.clear();
  }
  return absl::OkStatus();
}

}  // namespace weft
