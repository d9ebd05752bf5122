// The comment above a function shows a line of its output.
#include "weft/graph/compile/print.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "weft/graph/compile/speedup.h"

namespace weft {
namespace {

// %3, %7
std::string ValueNames(absl::Span<const ValueId> ids) {
  return absl::StrJoin(ids, ", ", [](std::string* out, ValueId id) { absl::StrAppend(out, "%", id); });
}

std::string Prefixed(absl::string_view prefix, absl::string_view text) {
  return text.empty() ? "" : absl::StrCat(prefix, text);
}

// %9 = matmul(%3, %7) transpose_a=false transpose_b=true : f32[768,512] @ h.0/mlp
std::string Line(const Program& program, const Node& node) {
  return absl::StrCat(ValueNames(node.outputs()), " = ", node.op->name, "(", ValueNames(node.inputs), ")",
                      Prefixed(" ", PrintDetail(program, node)), " : ", ToString(TypeSpan(program.OutputTypes(node))),
                      Prefixed(" @ ", program.scope(node)));
}

}  // namespace

std::string PrintDetail(const Program& program, const Node& node) {
  if (node.op == &kInputOp) return program.input(node).name;
  if (node.op == &kParameterOp) return program.parameter(node).name;
  return PrintAttrs(*node.op, node.attrs);
}

std::string PrintMemory(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  size_t weights = 0, state = 0, constants = 0;
  for (const Node& node : compiled.program.nodes) {
    if (node.op == &kConstantOp) constants += node.attrs.as<SourceAttrs>().type.bytes();
    if (node.op != &kParameterOp) continue;
    const ParameterSpec& spec = compiled.program.parameter(node);
    const bool weight = spec.kind == ParameterKind::kWeight || spec.kind == ParameterKind::kFrozen ||
                        spec.kind == ParameterKind::kStatistic;
    (weight ? weights : state) += spec.type.bytes();
  }
  const auto [naive, planned, bound, budget, recomputed] = compiled.memory;
  std::string text;
  const auto row = [&](const char* name, size_t bytes, const std::string& note = "") {
    absl::StrAppendFormat(&text, "%-32s%11.3f MB%s\n", name, static_cast<double>(bytes) * 1e-6, note);
  };
  row("values, without reuse of bytes", naive);
  row("values, as planned", planned);
  row("values, maximum of live bytes", bound,
      absl::StrFormat("  (the plan has %.3f times as many)", bound == 0 ? 1 : static_cast<double>(planned) / bound));
  if (budget > 0) {
    row("values, budget", budget,
        absl::StrFormat("  (recomputation is %.1f%% of the estimated time)", 100 * recomputed));
  }
  row("constants", constants);
  row("weights", weights);
  row("optimizer and other state", state);
  row("workspace of each worker", compiled.workspace_bytes);
  absl::StrAppendFormat(&text, "%d kernel calls, %d groups, %d tasks, %d edges\n", compiled.calls.size(),
                        compiled.groups.size(), compiled.tasks.size(), compiled.schedule.successors.size());
  return text;
}

// h.0/attn: attention: raised
std::string PrintExplanations(const Graph& graph) {
  std::vector<std::pair<std::string, int>> lines;  // (line, how often it occurs)
  for (const Explanation& e : graph.compiled().explanations) {
    std::string line = absl::StrCat(e.scope, e.scope.empty() ? "" : ": ", e.pattern, ": ",
                                    e.declined.empty() ? "raised" : absl::StrCat("left alone, because ", e.declined));
    auto same = absl::c_find_if(lines, [&](const auto& known) { return known.first == line; });
    if (same == lines.end()) same = lines.insert(same, {std::move(line), 0});
    ++same->second;
  }
  std::string text;
  for (const auto& [line, times] : lines) {
    absl::StrAppend(&text, line, times == 1 ? "" : absl::StrCat(" (", times, " times)"), "\n");
  }
  return text.empty() ? "no pattern was recognised\n" : text;
}

// work 1985.210 ms, longest path 82.690 ms: at most 24.0 times as fast on many workers
//   12.300 ms of the path: matmul transpose_b=true : f32[256,768] @ h.0/mlp
std::string PrintSpeedup(const Graph& graph) {
  constexpr size_t kShown = 5;
  const GraphSpeedup speedup = SpeedupOf(graph);
  std::string text = absl::StrFormat("work %.3f ms, longest path %.3f ms: at most %.1f times as fast on many workers\n",
                                     speedup.work * 1e3, speedup.path * 1e3, speedup.ratio());
  for (const auto& [id, seconds] : absl::MakeSpan(speedup.nodes).first(std::min(kShown, speedup.nodes.size()))) {
    const Node& node = graph.program().node(id);
    absl::StrAppendFormat(&text, "%10.3f ms of the path: %s%s : %s%s\n", seconds * 1e3, node.op->name,
                          Prefixed(" ", PrintDetail(graph.program(), node)),
                          ToString(TypeSpan(graph.program().OutputTypes(node))),
                          Prefixed(" @ ", graph.program().scope(node)));
  }
  return text;
}

std::string PrintText(const Program& program) {
  std::string text;
  for (const Node& node : program.nodes) absl::StrAppend(&text, Line(program, node), "\n");
  return text;
}

// %9 = matmul(%3, %7) transpose_a=false transpose_b=true : f32[768,512] @ h.0/mlp, in group 3
std::string PrintText(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<std::string> lines;
  for (const Node& node : compiled.program.nodes) lines.push_back(Line(compiled.program, node));
  for (const KernelCall& call : compiled.calls) {
    if (compiled.groups[call.group].call_count == 1) continue;
    absl::StrAppend(&lines[call.node], ", in group ", call.group);
  }
  return absl::StrJoin(lines, "\n") + "\n";
}

std::string PrintDot(const Program& program) {
  std::string text = "digraph weft {\n  node [shape=box fontname=\"sans-serif\" fontsize=10];\n";
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    const bool source = node.inputs.empty();
    const std::string label =
        absl::StrCat(node.op->name, Prefixed("\n", PrintDetail(program, node)), "\n",
                     ToString(TypeSpan(program.OutputTypes(node))), Prefixed("\n", program.scope(node)));
    absl::StrAppend(&text, "  n", n, " [label=\"",
                    absl::StrReplaceAll(label, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"",
                    source ? " style=rounded" : "", "];\n");
    for (ValueId in : node.inputs) {
      absl::StrAppend(&text, "  n", program.value(in).producer, " -> n", n, ";\n");
    }
  }
  return text + "}\n";
}

}  // namespace weft
