// DOT shows each box with its phase, number of nodes, cost and parameters. JSON also has the ops and the nodes inside
// the boxes, so that the page can unfold them.
#include "weft/lab/folded_print.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/core/json.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kNoGroup = 0xffffffff;

// Returns the fusion group of each node, or kNoGroup for a node that runs alone or not at all.
std::vector<uint32_t> GroupsOf(const CompiledGraph& graph) {
  std::vector<uint32_t> groups(graph.program.nodes.size(), kNoGroup);
  for (const KernelCall& call : graph.calls) {
    if (graph.groups[call.group].call_count > 1) groups[static_cast<size_t>(call.node)] = call.group;
  }
  return groups;
}

Json NodeJson(const Program& program, NodeId id) {
  const Node& node = program.node(id);
  const Cost cost = CostOfNode(program, node);
  Json json = {{"id", static_cast<uint32_t>(id)}, {"op", node.op->name},     {"attrs", PrintDetail(program, node)},
               {"scope", program.scope(node)},    {"inputs", Json::array()}, {"outputs", Json::array()},
               {"types", Json::array()},          {"flops", cost.flops},     {"bytes", cost.bytes}};
  for (ValueId in : node.inputs) json["inputs"].push_back(static_cast<uint32_t>(in));
  for (uint32_t i = 0; i < node.output_count; ++i) {
    json["outputs"].push_back(static_cast<uint32_t>(node.output(i)));
    json["types"].push_back(ToString(program.value(node.output(i)).type));
  }
  return json;
}

Json SourcesJson(const Program& program) {
  Json sources = Json::array();
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (node.op != &kParameterOp && node.op != &kConstantOp) continue;
    const TensorType& type = node.attrs.as<SourceAttrs>().type;
    Json source = {{"id", n},
                   {"op", node.op->name},
                   {"output", static_cast<uint32_t>(node.output(0))},
                   {"type", ToString(type)},
                   {"bytes", type.bytes()}};
    if (node.op == &kParameterOp) source["name"] = PrintDetail(program, node);
    sources.push_back(std::move(source));
  }
  return sources;
}

std::string Label(const Box& box) {
  std::string text = box.scope.empty() ? "(no scope)" : box.scope;
  if (box.part > 0) absl::StrAppend(&text, " (", box.part + 1, ")");
  if (box.phase == Phase::kInput) return text;
  absl::StrAppend(&text, "\n", Name(box.phase), ", ", box.nodes.size(), box.nodes.size() == 1 ? " node" : " nodes");
  absl::StrAppendFormat(&text, "\n%.3g GFLOP, %.3g MB", box.cost.flops * 1e-9, box.cost.bytes * 1e-6);
  if (box.parameters > 0) absl::StrAppend(&text, "\n", box.parameter_elements, " parameters");
  return text;
}

const char* Colour(Phase phase) {
  constexpr const char* kColours[] = {"#f0f0f0", "#dbe8f8", "#dbe8f8", "#fbe3cf", "#dff0d8"};
  return kColours[static_cast<size_t>(phase)];
}

}  // namespace

std::string PrintDot(const Fold& fold) {
  std::string text = "digraph weft {\n  node [shape=box style=filled fontname=\"sans-serif\" fontsize=10];\n";
  for (size_t b = 0; b < fold.boxes.size(); ++b) {
    const Box& box = fold.boxes[b];
    const std::string label = absl::StrReplaceAll(Label(box), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(&text, "  b", b, " [label=\"", label, "\" fillcolor=\"", Colour(box.phase), "\"];\n");
  }
  for (const BoxEdge& edge : fold.edges) {
    absl::StrAppend(&text, "  b", edge.from, " -> b", edge.to,
                    absl::StrFormat(" [tooltip=\"%d value%s, %.3g MB\"];\n", edge.values, edge.values == 1 ? "" : "s",
                                    edge.bytes * 1e-6));
  }
  return text + "}\n";
}

std::string PrintJson(const Program& program, const CompiledGraph* graph, const Fold& fold, int depth) {
  std::vector<uint32_t> groups(program.nodes.size(), kNoGroup);
  if (graph != nullptr) groups = GroupsOf(*graph);
  Json boxes = Json::array(), edges = Json::array();
  for (const Box& box : fold.boxes) {
    Json nodes = Json::array();
    for (NodeId n : box.nodes) {
      nodes.push_back(NodeJson(program, n));
      const uint32_t group = groups[static_cast<size_t>(n)];
      if (group != kNoGroup) nodes.back()["group"] = group;
    }
    boxes.push_back(
        {{"id", boxes.size()},
         {"scope", box.scope},
         {"phase", Name(box.phase)},
         {"part", box.part},
         {"ops", box.ops},
         {"flops", box.cost.flops},
         {"bytes", box.cost.bytes},
         {"parameters",
          {{"count", box.parameters}, {"elements", box.parameter_elements}, {"bytes", box.parameter_bytes}}},
         {"nodes", std::move(nodes)}});
  }
  for (const BoxEdge& edge : fold.edges) {
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"values", edge.values}, {"bytes", edge.bytes}});
  }
  const Json json = {{"stage", graph == nullptr ? "recorded" : "compiled"},
                     {"depth", depth},
                     {"boxes", std::move(boxes)},
                     {"edges", std::move(edges)},
                     {"sources", SourcesJson(program)}};
  return JsonLine(json) + "\n";
}

}  // namespace weft
