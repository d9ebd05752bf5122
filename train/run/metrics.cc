#include "weft/train/run/metrics.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {

NamedFigures Metrics::Validation::All(bool averaged) const {
  NamedFigures all;
  const auto add = [&](const char* name, std::optional<double> value) {
    if (value) all.emplace_back(name, *value);
  };
  add("loss", averaged ? ema_loss : loss);
  add("accuracy", averaged ? ema_accuracy : accuracy);
  add("bits_per_byte", averaged ? ema_bits_per_byte : bits_per_byte);
  const NamedFigures& more = averaged ? ema_figures : figures;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string ToJsonLine(const Metrics& metrics) {
  nlohmann::ordered_json json = {{"step", metrics.step}, {"tokens", metrics.tokens}, {"seconds", metrics.seconds}};
  if (metrics.training) json["train_loss"] = metrics.training->loss;
  for (const bool averaged : {false, true}) {
    if (!metrics.validation) break;
    for (const auto& [name, value] : metrics.validation->All(averaged)) {
      json[absl::StrCat(averaged ? "ema_val_" : "val_", name)] = value;
    }
  }
  if (metrics.training) {
    json["learning_rate"] = metrics.training->learning_rate;
    json["grad_norm"] = metrics.training->gradient_norm;
    json["tokens_per_second"] = metrics.training->tokens_per_second;
  }
  if (metrics.memory > 0) json["memory"] = metrics.memory;
  if (metrics.skipped) json["skipped"] = *metrics.skipped;
  return json.dump();
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path, int64_t step) {
  MetricsFile metrics;
  const auto kept = [&](const nlohmann::json& json) {
    metrics.tokens_ = NaturalNumber(json, "tokens").value_or(metrics.tokens_);
    constexpr double kMaxSeconds = 1e9;  // 30 years; the clock of std::chrono covers 292 years
    const double seconds = json.contains("seconds") && json["seconds"].is_number() ? json["seconds"].get<double>() : -1;
    if (seconds >= 0 && seconds <= kMaxSeconds) metrics.seconds_ = seconds;
  };
  WEFT_ASSIGN_OR_RETURN(metrics.lines_, StepLines::Open(path, step, kept));
  return metrics;
}

}  // namespace weft
