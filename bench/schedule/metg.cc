#include "weft/bench/schedule/metg.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace weft {

std::optional<double> Metg(const EfficiencyCurve& curve, double efficiency) {
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [work, reached] = curve.points[i];
    if (reached < efficiency) continue;
    if (i == 0) return work;
    const auto& [shorter, below] = curve.points[i - 1];
    return shorter * std::pow(work / shorter, (efficiency - below) / (reached - below));
  }
  return std::nullopt;
}

std::string MetgHeader() {
  return absl::StrFormat("%-11s %8s %-22s %7s %8s\n", "graph", "nodes", "policy", "threads", "metg_us");
}

std::string PrintMetg(const EfficiencyCurve& curve) {
  const std::optional<double> metg = Metg(curve);
  return absl::StrFormat("%-11s %8d %-22s %7d %8s\n", curve.graph, curve.nodes, curve.policy, curve.threads,
                         metg ? absl::StrFormat("%.3f", *metg) : "-");
}

std::string PrintMetgJson(const EfficiencyCurve& curve) {
  const std::optional<double> metg = Metg(curve);
  const nlohmann::ordered_json json = {{"graph", curve.graph},
                                       {"nodes", curve.nodes},
                                       {"threads", curve.threads},
                                       {"policy", curve.policy},
                                       {"metg_us", metg ? nlohmann::ordered_json(*metg) : nullptr},
                                       {"efficiency", curve.points}};
  return json.dump() + "\n";
}

}  // namespace weft
