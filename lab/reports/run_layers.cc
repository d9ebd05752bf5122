#include "weft/lab/reports/run_layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/lab/reports/curve.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxCells = 6'000;       // histograms in a page: at most 150 bytes each
constexpr size_t kMaxEvaluations = 40;    // of a run
constexpr size_t kFewestEvaluations = 8;  // weights are left out before fewer evaluations are shown

bool HasWeights(const nlohmann::json& line) { return line.contains("weights") && line["weights"].is_array(); }

Json Rounded(const nlohmann::json& line, const char* key, double digits) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return nullptr;
  const double value = found->get<double>(), scale = std::pow(10, digits);
  return std::isfinite(value) ? Json(std::round(value * scale) / scale) : Json();
}

// Returns [low, high, [counts]], or null if the weight has no finite value.
Json Histogram(const nlohmann::json& weight) {
  const auto low = weight.find("low"), high = weight.find("high"), counts = weight.find("counts");
  if (counts == weight.end() || !counts->is_array() || low == weight.end() || high == weight.end()) return nullptr;
  Json rounded = Json::array();
  for (const nlohmann::json& count : *counts) {
    if (!count.is_number()) return nullptr;
    rounded.push_back(Json(count));
  }
  return {Rounded(weight, "low", 5), Rounded(weight, "high", 5), std::move(rounded)};
}

}  // namespace

Json LayersOfRun(absl::Span<const nlohmann::json> evaluations, size_t runs) {
  std::vector<const nlohmann::json*> lines;
  for (const nlohmann::json& line : evaluations) {
    if (HasWeights(line)) lines.push_back(&line);
  }
  std::map<std::string, size_t> rows;
  Json names = Json::array();
  for (const nlohmann::json* line : lines) {
    for (const nlohmann::json& weight : (*line)["weights"]) {
      if (!weight.is_object() || !weight.contains("name") || !weight["name"].is_string()) continue;
      const auto [found, added] = rows.try_emplace(weight["name"].get<std::string>(), rows.size());
      if (added) names.push_back(found->first);
    }
  }
  const size_t of = lines.size(), of_names = names.size(), cells = kMaxCells / std::max<size_t>(runs, 1);
  const size_t most = std::clamp(cells / std::max<size_t>(of_names, 1), kFewestEvaluations, kMaxEvaluations);
  lines = TakeEvenly(lines, most);
  const size_t kept = std::min(of_names, std::max<size_t>(1, cells / std::max<size_t>(lines.size(), 1)));
  names.get_ref<Json::array_t&>().resize(kept);
  Json updates(kept, Json(lines.size(), nullptr)), histograms = updates, steps = Json::array();
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto step = lines[i]->find("step");
    steps.push_back(step != lines[i]->end() && step->is_number() ? Json(*step) : Json());
    for (const nlohmann::json& weight : (*lines[i])["weights"]) {
      if (!weight.is_object() || !weight.contains("name") || !weight["name"].is_string()) continue;
      const size_t row = rows[weight["name"].get<std::string>()];
      if (row >= kept) continue;
      updates[row][i] = Rounded(weight, "log10_update", 2);
      histograms[row][i] = Histogram(weight);
    }
  }
  return {{"names", std::move(names)},     {"steps", std::move(steps)},           {"of", of},
          {"updates", std::move(updates)}, {"histograms", std::move(histograms)}, {"of_names", of_names}};
}

}  // namespace weft
