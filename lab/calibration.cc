// Fits four rates to each kind of kernel call. The error is the absolute logarithm of estimated / measured, so that a
// tile of microseconds counts as much as a tile of milliseconds.
#include "weft/lab/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/op.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

constexpr int kTerms = 4;
constexpr const char* kRateNames[kTerms] = {"tile_seconds", "flop_seconds", "byte_seconds", "memory_byte_seconds"};
constexpr double kMaxRate = 1e6;
using Terms = TileRates;  // a term is what a rate is multiplied by

double Dot(const Terms& a, const Terms& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]; }

// Returns the sample's four terms, each divided by `seconds`. With its measured time, the sum of rate times term is 1
// if the rates are right.
Terms TermsOf(const TileSample& sample, double seconds) {
  return {1 / seconds, sample.flops / seconds, sample.bytes / seconds, sample.memory_bytes / seconds};
}

// Returns the rates that minimise the weighted sum of (1 - rates · row)² over all rows. A term whose bit in `mask` is 0
// gets the rate 0. Solves the normal equations by elimination. If the terms are not independent, returns nothing.
std::optional<Terms> Solve(const std::vector<Terms>& rows, const std::vector<double>& weights, unsigned mask) {
  double matrix[kTerms][kTerms + 1] = {};
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int i = 0; i < kTerms; ++i) {
      for (int j = 0; j < kTerms; ++j) matrix[i][j] += weights[r] * rows[r][i] * rows[r][j];
      matrix[i][kTerms] += weights[r] * rows[r][i];
    }
  }
  Terms rates = {};
  for (int i = 0; i < kTerms; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const double before = matrix[i][i];
    for (int k = 0; k < i; ++k) {
      if ((mask >> k & 1) == 0) continue;
      const double factor = matrix[i][k] / matrix[k][k];
      for (int j = k; j <= kTerms; ++j) matrix[i][j] -= factor * matrix[k][j];
    }
    if (!(matrix[i][i] > 1e-9 * before)) return std::nullopt;
  }
  for (int i = kTerms - 1; i >= 0; --i) {
    if ((mask >> i & 1) == 0) continue;
    double sum = matrix[i][kTerms];
    for (int j = i + 1; j < kTerms; ++j) sum -= matrix[i][j] * rates[j];
    rates[i] = sum / matrix[i][i];
  }
  return rates;
}

// Returns the rates that minimise the weighted sum of |log(rates · row)|; none of them is negative. Tries each subset
// of the terms by iteratively reweighted least squares, and takes the best rates of all rounds.
Terms MinimizeErrors(const std::vector<Terms>& rows, const std::vector<double>& row_weights) {
  constexpr int kRounds = 40;
  constexpr double kMinError = 1e-3;  // also of ratios; keeps logarithms and weights finite
  Terms best = {};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned mask = 1; mask < 1u << kTerms; ++mask) {
    std::vector<double> weights = row_weights;
    for (int round = 0; round < kRounds; ++round) {
      const std::optional<Terms> rates = Solve(rows, weights, mask);
      if (!rates) break;
      double sum = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        const double ratio = std::max(Dot(*rates, rows[r]), kMinError);  // expected / measured
        const double off = std::max(std::abs(std::log(ratio)), kMinError), square = (1 - ratio) * (1 - ratio);
        sum += row_weights[r] * off;
        weights[r] = row_weights[r] * off / std::max(square, kMinError * kMinError);
      }
      const bool positive = std::all_of(rates->begin(), rates->end(), [](double rate) { return rate >= 0; });
      if (positive && sum < least * (1 - 1e-6)) {
        least = sum;
        best = *rates;
      }
    }
  }
  return best;
}

absl::StatusOr<std::vector<SharingRow>> ReadSharing(const nlohmann::json& json) {
  constexpr double kMaxFigure = 1e18, kMaxThreads = 1e6;
  std::vector<SharingRow> rows;
  bool valid = json.is_array() && !json.empty();
  for (const nlohmann::json& entry : valid ? json : nlohmann::json::array()) {
    const double threads = NumberUpTo(kMaxThreads, entry, "threads");
    valid = valid && threads >= 1 && threads == std::floor(threads);
    if (!valid) break;
    valid = rows.empty() ? threads == 1 : threads > rows.back().threads;
    SharingRow& row = rows.emplace_back(SharingRow{.threads = static_cast<int>(threads)});
    for (const auto& [name, figure, is_rate] : kSharingFigures) {
      row.*figure = NumberUpTo(kMaxFigure, entry, name);
      valid = valid && row.*figure >= 0 && (!is_rate || (row.*figure > 0) == (rows[0].*figure > 0));
    }
  }
  if (valid) return rows;
  return InvalidArgument(
      "\"sharing\" is not an array of objects in ascending order of threads, which begin with 1, each with threads, "
      "flops, bytes, wake_seconds and moved_byte_seconds; flops and bytes are 0 in all or in none");
}

}  // namespace

double NumberUpTo(double max, const nlohmann::json& object, const char* key, double absent) {
  const auto it = object.find(key);
  if (it == object.end()) return absent;
  const double value = it->is_number() ? it->get<double>() : -1;
  return value >= 0 && value <= max ? value : -1;
}

std::vector<TileSample> Samples(const Graph& graph, absl::Span<const double> call_seconds) {
  const CompiledGraph& compiled = graph.compiled();
  const std::vector<CallBytes> bytes = BytesOfCalls(graph, kCacheBytes);
  std::map<std::string, double> count;
  std::vector<TileSample> samples;
  for (size_t s = 0; s < compiled.calls.size(); ++s) {
    const Node& node = compiled.program.node(compiled.calls[s].node);
    const Types inputs = compiled.program.InputTypes(node), outputs = compiled.program.OutputTypes(node);
    const OpArgs args = {node.attrs, inputs, outputs};
    const Cost cost = CostOf(*node.op, args);
    const uint32_t tiles = compiled.calls[s].tile_count;
    const bool timed = s < call_seconds.size() && compiled.calls[s].messages.empty();
    const DType dtype = inputs.empty() ? outputs[0].dtype : inputs[0].dtype;
    samples.push_back({.kind = absl::StrCat(node.op->name, " ", Name(dtype)),
                       .flops = cost.flops / tiles,
                       .bytes = cost.bytes / tiles,
                       .memory_bytes = bytes[s].memory / tiles,
                       .model_seconds = compiled.calls[s].seconds / tiles,
                       .seconds = timed ? call_seconds[s] / tiles : 0,
                       .tiles = tiles});
    ++count[samples.back().kind];
  }
  for (TileSample& sample : samples) sample.weight = 1 / count[sample.kind];
  return samples;
}

Calibration Calibration::Fit(absl::Span<const TileSample> samples) {
  std::map<std::string, std::pair<std::vector<Terms>, std::vector<double>>> rows;  // by kind, with weights
  std::vector<double> ratios;
  for (const TileSample& sample : samples) {
    if (!(sample.seconds > 0)) continue;  // shorter than the clock's resolution
    auto& [of_kind, weights] = rows[sample.kind];
    of_kind.push_back(TermsOf(sample, sample.seconds));
    weights.push_back(sample.weight);
    if (sample.model_seconds > 0) ratios.push_back(sample.seconds / sample.model_seconds);
  }
  Calibration calibration;
  for (const auto& [kind, of_kind] : rows) {
    calibration.rates_[kind] = MinimizeErrors(of_kind.first, of_kind.second);
  }
  if (!ratios.empty()) calibration.others_ = Median(std::move(ratios));
  return calibration;
}

std::string Calibration::ToJson() const {
  nlohmann::ordered_json ops = nlohmann::ordered_json::object();
  for (const auto& [kind, rates] : rates_) {
    for (size_t i = 0; i < kTerms; ++i) ops[kind][kRateNames[i]] = rates[i];
  }
  nlohmann::ordered_json json = {{"weft_calibration", 1}, {"ops", ops}, {"others", others_}};
  if (network_) json["network"] = ToString(*network_);
  for (const SharingRow& row : sharing_) {
    nlohmann::ordered_json& entry = json["sharing"].emplace_back();
    entry["threads"] = row.threads;
    for (const SharingFigure& each : kSharingFigures) entry[each.name] = row.*each.figure;
  }
  return json.dump(1) + "\n";
}

absl::StatusOr<Calibration> Calibration::FromJson(const std::string& text, const std::string& from) {
  const auto wrong = [&](const auto&... what) { return InvalidArgument(from, " is not a calibration: ", what...); };
  const absl::StatusOr<nlohmann::json> parsed = ParseLargeJsonObject(text);
  if (!parsed.ok()) return wrong(parsed.status().message());
  const nlohmann::json& json = *parsed;
  const auto ops = json.find("ops");
  if (NumberUpTo(kMaxRate, json, "weft_calibration") != 1) return wrong("\"weft_calibration\" is not 1");
  if (ops == json.end() || !ops->is_object()) return wrong("\"ops\" is not an object");
  Calibration calibration;
  calibration.others_ = NumberUpTo(kMaxRate, json, "others");
  if (calibration.others_ < 0) return wrong("\"others\" is not a number from 0 to ", kMaxRate);
  if (const auto network = json.find("network"); network != json.end()) {
    if (!network->is_string()) return wrong("\"network\" is not a text");
    absl::StatusOr<Network> read = ParseNetwork(network->get<std::string>());
    if (!read.ok()) return wrong("\"network\": ", read.status().message());
    calibration.network_ = *read;
  }
  if (const auto sharing = json.find("sharing"); sharing != json.end()) {
    absl::StatusOr<std::vector<SharingRow>> read = ReadSharing(*sharing);
    if (!read.ok()) return wrong(read.status().message());
    calibration.sharing_ = *std::move(read);
  }
  for (const auto& [kind, value] : ops->items()) {
    if (!value.is_object()) return wrong("\"", kind, "\" is not an object");
    for (size_t i = 0; i < kTerms; ++i) {
      const double rate = calibration.rates_[kind][i] = NumberUpTo(kMaxRate, value, kRateNames[i]);
      if (rate >= 0) continue;
      return wrong("\"", kind, "\" needs tile_seconds, flop_seconds, byte_seconds and memory_byte_seconds, each from ",
                   "0 to ", kMaxRate);
    }
  }
  return calibration;
}

double Calibration::Seconds(const TileSample& sample) const {
  const auto it = rates_.find(sample.kind);
  if (it == rates_.end()) return others_ * sample.model_seconds;
  return Dot(it->second, TermsOf(sample, 1));
}

std::vector<double> Calibration::TaskSeconds(const Graph& graph) const {
  const CompiledGraph& compiled = graph.compiled();
  const std::vector<TileSample> samples = Samples(graph, {});
  std::vector<double> seconds(compiled.tasks.size(), 0);
  for (const Group& group : compiled.groups) {
    double sum = 0;
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) sum += Seconds(samples[s]);
    for (uint32_t t = 0; t < group.tile_count; ++t) seconds[group.first_task + t] = sum;
  }
  return seconds;
}

EstimateErrors CompareEstimates(absl::Span<const TileSample> samples, const Calibration* calibration) {
  std::map<std::string, std::pair<KindError, std::vector<double>>> by_kind;
  std::vector<double> all;
  for (const TileSample& sample : samples) {
    if (!(sample.seconds > 0)) continue;
    const double estimate = calibration != nullptr ? calibration->Seconds(sample) : sample.model_seconds;
    auto& [error, offs] = by_kind[sample.kind];
    ++error.calls;
    error.seconds += sample.seconds * sample.tiles;
    error.estimate += estimate * sample.tiles;
    offs.push_back(std::abs(estimate / sample.seconds - 1));
    all.push_back(offs.back());
  }
  EstimateErrors errors = {.median_off = all.empty() ? 0 : Median(std::move(all))};
  for (auto& [kind, entry] : by_kind) {
    entry.first.kind = kind;
    entry.first.median_off = Median(std::move(entry.second));
    errors.kinds.push_back(entry.first);
  }
  std::sort(errors.kinds.begin(), errors.kinds.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  return errors;
}

}  // namespace weft
