#include "weft/train/run/metrics.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace weft {

NamedFigures Metrics::Evaluated(bool averaged) const {
  const std::optional<Validation>& measured = averaged ? ema : validation;
  if (!measured) return {};
  NamedFigures all = {{"loss", measured->loss}};
  if (measured->accuracy) all.emplace_back("accuracy", *measured->accuracy);
  if (measured->bits_per_byte) all.emplace_back("bits_per_byte", *measured->bits_per_byte);
  all.insert(all.end(), measured->figures.begin(), measured->figures.end());
  return all;
}

std::string ToJsonLine(const Metrics& metrics) {
  nlohmann::ordered_json json = {{"step", metrics.step}, {"tokens", metrics.tokens}, {"seconds", metrics.seconds}};
  if (metrics.training) json["train_loss"] = metrics.training->loss;
  for (const bool averaged : {false, true}) {
    for (const auto& [name, value] : metrics.Evaluated(averaged)) {
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

}  // namespace weft
