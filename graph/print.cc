#include "weft/graph/print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace weft {
namespace {

std::string ValueName(ValueId id) { return absl::StrCat("%", static_cast<uint32_t>(id)); }

// "tokens" of an input, "h.0.mlp.c_fc.weight" of a parameter, else the attributes.
std::string Detail(const Program& program, const Node& node) {
  if (node.op == &kInputOp) return program.inputs[node.attrs.as<SourceAttrs>().index].name;
  if (node.op == &kParameterOp) return program.parameters[node.attrs.as<SourceAttrs>().index].name;
  return PrintAttrs(*node.op, node.attrs);
}

std::string Prefixed(absl::string_view prefix, absl::string_view text) {
  return text.empty() ? "" : absl::StrCat(prefix, text);
}

}  // namespace

// %9 = matmul(%3, %7) transpose_a=false transpose_b=true : f32[768,512] @ h.0/mlp
std::string PrintText(const Program& program) {
  std::string text;
  for (const Node& node : program.nodes) {
    std::vector<std::string> outputs;
    for (uint32_t i = 0; i < node.output_count; ++i) outputs.push_back(ValueName(node.output(i)));
    const std::string inputs =
        absl::StrJoin(node.inputs, ", ", [](std::string* out, ValueId id) { out->append(ValueName(id)); });
    absl::StrAppend(&text, absl::StrJoin(outputs, ", "), " = ", node.op->name, "(", inputs, ")",
                    Prefixed(" ", Detail(program, node)), " : ", ToString(TypeSpan(program.OutputTypes(node))),
                    Prefixed(" @ ", program.scope(node)), "\n");
  }
  return text;
}

std::string PrintDot(const Program& program) {
  std::string text = "digraph weft {\n  node [shape=box fontname=\"sans-serif\" fontsize=10];\n";
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    const bool source = node.inputs.empty();
    const std::string label =
        absl::StrCat(node.op->name, Prefixed("\n", Detail(program, node)), "\n",
                     ToString(TypeSpan(program.OutputTypes(node))), Prefixed("\n", program.scope(node)));
    absl::StrAppend(&text, "  n", n, " [label=\"",
                    absl::StrReplaceAll(label, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"",
                    source ? " style=rounded" : "", "];\n");
    for (ValueId in : node.inputs) {
      absl::StrAppend(&text, "  n", static_cast<uint32_t>(program.value(in).producer), " -> n", n, ";\n");
    }
  }
  return text + "}\n";
}

}  // namespace weft
