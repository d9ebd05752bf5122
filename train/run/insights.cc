#include "weft/train/run/insights.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/train/run/histogram.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns evenly spaced values, in the order of the tensor.
std::vector<double> TakeValues(const Tensor& tensor) {
  std::vector<double> taken;
  Dispatch(tensor.type.dtype, [&](auto zero) {
    const auto values = tensor.span<decltype(zero)>();
    const size_t count = std::min(values.size(), kInsightValues);
    for (size_t i = 0; i < count; ++i) taken.push_back(static_cast<double>(values[values.size() * i / count]));
  });
  return taken;
}

// Returns the number with 6 digits, which are enough for a chart.
double Short(double value) { return std::strtod(absl::StrFormat("%.6g", value).c_str(), nullptr); }

Json Describe(const std::string& name, const std::vector<double>& now, const std::vector<double>* before) {
  const Histogram histogram = CountIntervals(absl::MakeConstSpan(now));
  Json counts = Json::array();
  for (const HistogramInterval& interval : histogram) counts.push_back(static_cast<int64_t>(interval.count));
  Json weight = {{"name", name},
                 {"low", Short(histogram.front().left)},
                 {"high", Short(histogram.back().right)},
                 {"counts", std::move(counts)}};
  if (before == nullptr || before->size() != now.size()) return weight;
  double size = 0, change = 0;  // sums of squares
  for (size_t i = 0; i < now.size(); ++i) {
    size += now[i] * now[i];
    change += (now[i] - (*before)[i]) * (now[i] - (*before)[i]);
  }
  const double ratio = std::log10(change / size) / 2;
  if (std::isfinite(ratio)) weight["log10_update"] = std::round(ratio * 1e4) / 1e4;
  return weight;
}

}  // namespace

absl::StatusOr<Insights> Insights::Open(const std::string& path, int64_t step) {
  Insights insights;
  WEFT_ASSIGN_OR_RETURN(insights.lines_, StepLines::Open(path, step, [](const nlohmann::json&) {}));
  return insights;
}

void Insights::Remember(const Parameters& parameters) {
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    const absl::StatusOr<Tensor> weight = parameters.Find(name);
    if (weight.ok() && IsFloat(weight->type.dtype)) remembered_[name] = TakeValues(*weight);
  }
}

absl::Status Insights::Append(int64_t step, absl::string_view sample, const Parameters& parameters) {
  Json weights = Json::array();
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    WEFT_ASSIGN_OR_RETURN(const Tensor weight, parameters.Find(name));
    if (!IsFloat(weight.type.dtype)) continue;
    const auto before = remembered_.find(name);
    weights.push_back(Describe(name, TakeValues(weight), before == remembered_.end() ? nullptr : &before->second));
  }
  remembered_.clear();
  Json line = {{"step", step}};
  if (!sample.empty()) line["sample"] = sample;
  line["weights"] = std::move(weights);
  return lines_.Append(JsonLine(line));
}

}  // namespace weft
