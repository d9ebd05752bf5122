// Adds nodes to boxes in the program's order. A node joins the newest box of its scope and phase
// or, if that would close a cycle of boxes, begins a new part.
#include "weft/lab/fold.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/base/json.h"
#include "weft/graph/compile/print.h"

namespace weft {
namespace {

constexpr uint32_t kNoBox = std::numeric_limits<uint32_t>::max();

bool IsSource(const Node& node) { return node.op == &kInputOp || node.op == &kParameterOp || node.op == &kConstantOp; }

// Returns the first `depth` levels of a scope, or the whole scope if it has fewer.
std::string ScopePrefix(const std::string& scope, int depth) {
  size_t end = 0;
  for (int level = 0; level < depth && end != std::string::npos; ++level) {
    end = scope.find('/', end == 0 ? 0 : end + 1);
  }
  return scope.substr(0, end);
}

// Returns the cost model's cost of a node. Sources, groups and views run no kernel, so they cost 0.
Cost CostOfNode(const Program& program, const Node& node) {
  if (IsSource(node) || node.op == &kGroupOp || node.op == &kGradientOp || node.op->view) return {};
  const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
  return CostOf(*node.op, {node.attrs, inputs, outputs});
}

// The boxes while nodes are being added.
struct Boxes {
  std::vector<Box> boxes;
  std::vector<uint32_t> box_of;             // by node
  std::vector<std::set<uint32_t>> readers;  // by box: the boxes that read its values

  // Reports whether a path leads from `box` to one of `targets`.
  bool Reaches(uint32_t box, const std::set<uint32_t>& targets) const {
    std::vector<uint32_t> open = {box};
    std::set<uint32_t> seen = {box};
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (targets.contains(at)) return true;
      for (uint32_t next : readers[at]) {
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  // Returns an order in which each box follows the boxes that it reads. Of several boxes that could be next, the one
  // that was created first is.
  std::vector<uint32_t> Order() const {
    std::vector<uint32_t> order, waits(boxes.size(), 0);
    for (const auto& of_one : readers) {
      for (uint32_t reader : of_one) ++waits[reader];
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t b = 0; b < boxes.size(); ++b) {
      if (waits[b] == 0) ready.push(b);
    }
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (uint32_t reader : readers[order.back()]) {
        if (--waits[reader] == 0) ready.push(reader);
      }
    }
    return order;
  }
};

Boxes DivideNodes(const Program& program, absl::Span<const Phase> phases, int depth) {
  Boxes b = {.boxes = {}, .box_of = std::vector<uint32_t>(program.nodes.size(), kNoBox), .readers = {}};
  std::map<std::pair<Phase, std::string>, uint32_t> newest;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (node.op == &kParameterOp || node.op == &kConstantOp) continue;
    const bool input = node.op == &kInputOp;
    std::string scope = input ? program.inputs[node.attrs.as<SourceAttrs>().index].name : program.scope(node);
    if (!input && depth > 0) scope = ScopePrefix(scope, depth);
    std::set<uint32_t> read;
    for (ValueId in : node.inputs) read.insert(b.box_of[program.value(in).producer]);
    read.erase(kNoBox);
    const auto [known, is_new] = newest.try_emplace({phases[n], scope}, kNoBox);
    std::set<uint32_t> others = read;
    others.erase(known->second);
    if (is_new || depth == 0 || (!others.empty() && b.Reaches(known->second, others))) {
      const uint32_t part = is_new ? 0 : b.boxes[known->second].part + 1;
      known->second = static_cast<uint32_t>(b.boxes.size());
      b.boxes.push_back({.scope = std::move(scope), .phase = phases[n], .part = part});
      b.readers.emplace_back();
      others = std::move(read);
    }
    b.box_of[n] = known->second;
    b.boxes[known->second].nodes.push_back(NodeId{static_cast<uint32_t>(n)});
    for (uint32_t from : others) b.readers[from].insert(known->second);
  }
  return b;
}

}  // namespace

const char* Name(Phase phase) {
  constexpr const char* kNames[] = {"input", "recorded", "forward", "backward", "update"};
  return kNames[static_cast<size_t>(phase)];
}

std::vector<Phase> Phases(const CompiledGraph& graph) {
  const Program& program = graph.program;
  const size_t count = program.nodes.size();
  std::vector<Phase> phases(count, Phase::kUpdate);
  const auto with_needed = [&](std::vector<bool> nodes) {  // adds the nodes that they need
    for (size_t n = count; n-- > 0;) {
      if (!nodes[n]) continue;
      for (ValueId in : program.nodes[n].inputs) nodes[program.value(in).producer] = true;
    }
    return nodes;
  };
  std::vector<bool> has_forward(program.scopes.size()), writes(count), updates(count);
  for (size_t n = 0; n < count; ++n) updates[n] = program.nodes[n].op->writes > 0;
  updates = with_needed(std::move(updates));
  for (size_t f = 0; f < graph.fetches.size(); ++f) {
    std::vector<bool> needed(count);
    needed[program.value(graph.fetches[f].second).producer] = true;
    needed = with_needed(std::move(needed));
    bool of_gradients = false;  // as the norm is: needs what the updates need, too, but the loss does not
    for (size_t n = 0; f > 0 && n < count; ++n) {
      of_gradients |= needed[n] && updates[n] && phases[n] != Phase::kForward && !IsSource(program.nodes[n]);
    }
    for (size_t n = 0; n < count; ++n) phases[n] = needed[n] && !of_gradients ? Phase::kForward : phases[n];
  }
  for (size_t n = 0; n < count; ++n) {  // marks scopes, and nodes that write state or depend on such a write
    const Node& node = program.nodes[n];
    if (phases[n] == Phase::kForward && !IsSource(node)) has_forward[node.scope] = true;
    writes[n] = node.op->writes > 0 || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                   [&](ValueId in) { return writes[program.value(in).producer]; });
  }
  for (size_t n = count; n-- > 0;) {
    const Node& node = program.nodes[n];
    if (phases[n] == Phase::kUpdate && !writes[n] && has_forward[node.scope]) {
      phases[n] = Phase::kBackward;
    }
    for (ValueId in : node.inputs) {
      Phase& before = phases[program.value(in).producer];
      if (phases[n] == Phase::kBackward) before = std::min(before, Phase::kBackward);
    }
  }
  for (size_t n = 0; n < count; ++n) {
    if (IsSource(program.nodes[n])) phases[n] = Phase::kInput;
  }
  return phases;
}

std::vector<Phase> RecordedPhases(const Program& program) {
  std::vector<Phase> phases;
  for (const Node& node : program.nodes) phases.push_back(IsSource(node) ? Phase::kInput : Phase::kRecorded);
  return phases;
}

Fold FoldByScope(const Program& program, absl::Span<const Phase> phases, int depth) {
  Boxes divided = DivideNodes(program, phases, depth);
  Fold fold;
  std::vector<uint32_t> number(divided.boxes.size());
  for (uint32_t b : divided.Order()) {
    number[b] = static_cast<uint32_t>(fold.boxes.size());
    fold.boxes.push_back(std::move(divided.boxes[b]));
  }
  std::map<std::pair<uint32_t, uint32_t>, BoxEdge> edges;
  for (uint32_t b = 0; b < fold.boxes.size(); ++b) {
    Box& box = fold.boxes[b];
    std::set<ValueId> read;
    for (NodeId n : box.nodes) {
      const Node& node = program.node(n);
      const Cost cost = CostOfNode(program, node);
      box.cost.flops += cost.flops;
      box.cost.bytes += cost.bytes;
      ++box.ops[node.op->name];
      for (ValueId in : node.inputs) {
        const Node& producer = program.producer(in);
        const TensorType& type = program.value(in).type;
        if (producer.op == &kConstantOp || !read.insert(in).second) continue;
        if (producer.op == &kParameterOp) {
          ++box.parameters;
          box.parameter_elements += type.shape.elements();
          box.parameter_bytes += type.bytes();
          continue;
        }
        const uint32_t from = number[divided.box_of[program.value(in).producer]];
        if (from == b) continue;
        BoxEdge& edge = edges.try_emplace({from, b}, BoxEdge{from, b}).first->second;
        ++edge.values;
        edge.bytes += type.bytes();
      }
    }
  }
  for (const auto& [ends, edge] : edges) fold.edges.push_back(edge);
  return fold;
}

namespace {

using Json = nlohmann::ordered_json;

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

constexpr const char* kColours[] = {"#f0f0f0", "#dbe8f8", "#dbe8f8", "#fbe3cf", "#dff0d8"};  // by Phase

}  // namespace

std::string PrintDot(const Fold& fold) {
  std::string text = "digraph weft {\n  node [shape=box style=filled fontname=\"sans-serif\" fontsize=10];\n";
  for (size_t b = 0; b < fold.boxes.size(); ++b) {
    const Box& box = fold.boxes[b];
    const std::string label = absl::StrReplaceAll(Label(box), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(&text, "  b", b, " [label=\"", label, "\" fillcolor=\"", kColours[static_cast<size_t>(box.phase)],
                    "\"];\n");
  }
  for (const BoxEdge& edge : fold.edges) {
    absl::StrAppend(&text, "  b", edge.from, " -> b", edge.to,
                    absl::StrFormat(" [tooltip=\"%d value%s, %.3g MB\"];\n", edge.values, edge.values == 1 ? "" : "s",
                                    edge.bytes * 1e-6));
  }
  return text + "}\n";
}

std::string PrintJson(const Program& program, const CompiledGraph* graph, const Fold& fold, int depth) {
  std::map<NodeId, uint32_t> groups;  // of nodes that do not run alone
  for (const KernelCall& call : graph == nullptr ? absl::Span<const KernelCall>() : graph->calls) {
    if (graph->groups[call.group].call_count > 1) groups[call.node] = call.group;
  }
  Json boxes = Json::array(), edges = Json::array();
  for (const Box& box : fold.boxes) {
    Json nodes = Json::array();
    for (NodeId n : box.nodes) {
      nodes.push_back(NodeJson(program, n));
      if (const auto group = groups.find(n); group != groups.end()) nodes.back()["group"] = group->second;
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
