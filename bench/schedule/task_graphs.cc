#include "weft/bench/schedule/task_graphs.h"

#include <algorithm>
#include <cmath>

#include "weft/base/status.h"
#include "weft/core/random.h"

namespace weft {
namespace {

uint32_t Side(uint32_t nodes) { return std::max(1u, static_cast<uint32_t>(std::sqrt(static_cast<double>(nodes)))); }

TaskGraph Chain(uint32_t nodes) {
  TaskGraph graph = {.nodes = nodes};
  for (uint32_t t = 1; t < nodes; ++t) graph.edges.push_back({t - 1, t});
  return graph;
}

TaskGraph Fan(uint32_t nodes) {
  TaskGraph graph = {.nodes = std::max(nodes, 3u)};
  for (uint32_t t = 1; t + 1 < graph.nodes; ++t) {
    graph.edges.push_back({0, t});
    graph.edges.push_back({t, graph.nodes - 1});
  }
  return graph;
}

TaskGraph Tree(uint32_t nodes) {
  TaskGraph graph = {.nodes = nodes};
  for (uint32_t t = 1; t < nodes; ++t) graph.edges.push_back({(t - 1) / 2, t});
  return graph;
}

TaskGraph Wavefront(uint32_t nodes) {
  const uint32_t side = Side(nodes);
  TaskGraph graph = {.nodes = side * side};
  for (uint32_t t = 0; t < graph.nodes; ++t) {
    if (t >= side) graph.edges.push_back({t - side, t});
    if (t % side > 0) graph.edges.push_back({t - 1, t});
  }
  return graph;
}

TaskGraph Random(uint32_t nodes) {
  constexpr uint32_t kEdges = 3;
  const RandomStream random = {.seed = 1};
  const uint32_t side = Side(nodes);
  TaskGraph graph = {.nodes = side * side};
  for (uint32_t t = side; t < graph.nodes; ++t) {
    const uint32_t layer_before = (t / side - 1) * side;
    const size_t first = graph.edges.size();
    for (uint32_t k = 0; k < kEdges; ++k) {
      const std::pair<uint32_t, uint32_t> edge = {
          layer_before + static_cast<uint32_t>(random.Below(side, uint64_t{t} * kEdges + k)), t};
      const auto begin = graph.edges.begin() + static_cast<ptrdiff_t>(first);
      if (std::find(begin, graph.edges.end(), edge) == graph.edges.end()) graph.edges.push_back(edge);
    }
  }
  return graph;
}

TaskGraph Diamond(uint32_t nodes) {
  TaskGraph graph = {.nodes = 3 * std::max(1u, (nodes - 1) / 3) + 1};
  for (uint32_t t = 0; t + 1 < graph.nodes; t += 3) {
    graph.edges.insert(graph.edges.end(), {{t, t + 1}, {t, t + 2}, {t + 1, t + 3}, {t + 2, t + 3}});
  }
  return graph;
}

TaskGraph One(uint32_t) { return {.nodes = 1}; }

// Makes layers of 64 nodes. `waits(layer, i, j)`: whether node i of a layer waits for node j of the layer before.
template <class Waits>
TaskGraph Layers(uint32_t nodes, Waits waits) {
  constexpr uint32_t kWidth = 64;
  TaskGraph graph = {.nodes = std::max(1u, nodes / kWidth) * kWidth};
  for (uint32_t t = kWidth; t < graph.nodes; ++t) {
    const uint32_t layer = t / kWidth, before = (layer - 1) * kWidth;
    for (uint32_t j = 0; j < kWidth; ++j) {
      if (waits(layer, t % kWidth, j)) graph.edges.push_back({before + j, t});
    }
  }
  return graph;
}

TaskGraph Trivial(uint32_t nodes) { return {.nodes = nodes}; }

TaskGraph Stencil(uint32_t nodes) {
  return Layers(nodes, [](uint32_t, uint32_t i, uint32_t j) { return i <= j + 1 && j <= i + 1; });
}

TaskGraph Fft(uint32_t nodes) {
  return Layers(nodes, [](uint32_t layer, uint32_t i, uint32_t j) { return j == i || j == (i ^ 1u << layer % 6); });
}

TaskGraph AllToAll(uint32_t nodes) {
  return Layers(nodes, [](uint32_t, uint32_t, uint32_t) { return true; });
}

constexpr struct {
  const char* name;
  TaskGraph (*make)(uint32_t nodes);
} kGraphs[] = {
    {"chain", Chain},        {"fan", Fan}, {"tree", Tree},       {"wavefront", Wavefront}, {"random", Random},
    {"diamond", Diamond},    {"one", One}, {"trivial", Trivial}, {"stencil", Stencil},     {"fft", Fft},
    {"all-to-all", AllToAll}};

}  // namespace

std::vector<std::string> TaskGraphNames() {
  std::vector<std::string> names;
  for (const auto& graph : kGraphs) names.push_back(graph.name);
  return names;
}

TaskGraph MakeTaskGraph(const std::string& name, uint32_t nodes) {
  const auto found =
      std::find_if(std::begin(kGraphs), std::end(kGraphs), [&](const auto& g) { return g.name == name; });
  WEFT_CHECK(found != std::end(kGraphs) && nodes > 0);
  return found->make(nodes);
}

}  // namespace weft
