// METG(50%) is the minimum effective task granularity of Task Bench (Slaughter and others, 2020): the shortest node
// with which threads spend half of their time on nodes. The shorter it is, the finer a program may cut its work.
#ifndef WEFT_BENCH_SCHEDULE_METG_H_
#define WEFT_BENCH_SCHEDULE_METG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// The efficiency of a policy on a graph, by the duration of a node.
struct EfficiencyCurve {
  std::string graph, policy;
  uint32_t nodes = 0;
  int threads = 1;
  std::vector<std::pair<double, double>> points;  // (microseconds of a node, efficiency), in ascending order
};

// Returns the microseconds at which the curve reaches `efficiency`. Between two points the curve is a line over the
// logarithm of the duration. If the first point is above, returns its duration; if no point is, returns nullopt.
std::optional<double> Metg(const EfficiencyCurve& curve, double efficiency = 0.5);

std::string MetgHeader();
// Print a row of a table, and a JSON object with the key "metg_us".
std::string PrintMetg(const EfficiencyCurve& curve);
std::string PrintMetgJson(const EfficiencyCurve& curve);

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_METG_H_
