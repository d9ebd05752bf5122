// Append does not wait for the disk; Sync does. Open drops a line that a killed program left incomplete.
#include "weft/train/run/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/train/run/kept_lines.h"

namespace weft {
namespace {

absl::Status WriteError(const std::string& path) { return SystemStatus("write", path, errno); }

}  // namespace

std::string ToJsonLine(const Metrics& metrics) {
  nlohmann::ordered_json json = {{"step", metrics.step}, {"tokens", metrics.tokens}, {"seconds", metrics.seconds}};
  if (metrics.training) json["train_loss"] = metrics.training->loss;
  if (metrics.validation) {
    const Metrics::Validation& validation = *metrics.validation;
    json["val_loss"] = validation.loss;
    if (validation.accuracy) json["val_accuracy"] = *validation.accuracy;
    if (validation.bits_per_byte) json["val_bits_per_byte"] = *validation.bits_per_byte;
    const auto add = [&](absl::string_view prefix, const NamedFigures& figures) {
      for (const auto& [name, value] : figures) json[absl::StrCat(prefix, name)] = value;
    };
    add("val_", validation.figures);
    if (validation.ema_loss) json["ema_val_loss"] = *validation.ema_loss;
    if (validation.ema_accuracy) json["ema_val_accuracy"] = *validation.ema_accuracy;
    if (validation.ema_bits_per_byte) json["ema_val_bits_per_byte"] = *validation.ema_bits_per_byte;
    add("ema_val_", validation.ema_figures);
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
  metrics.path_ = path;
  const auto kept = [&](const nlohmann::json& json) {
    metrics.tokens_ = NaturalNumber(json, "tokens").value_or(metrics.tokens_);
    constexpr double kMaxSeconds = 1e9;  // 30 years; the clock of std::chrono covers 292 years
    const double seconds = json.contains("seconds") && json["seconds"].is_number() ? json["seconds"].get<double>() : -1;
    if (seconds >= 0 && seconds <= kMaxSeconds) metrics.seconds_ = seconds;
  };
  WEFT_ASSIGN_OR_RETURN(metrics.damaged_lines_, KeepLines(path, step, kept));
  metrics.file_.reset(std::fopen(path.c_str(), "ae"));
  if (metrics.file_ == nullptr) return WriteError(path);
  return metrics;
}

absl::Status MetricsFile::Append(const Metrics& metrics) {
  const std::string line = ToJsonLine(metrics) + "\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  return written && std::fflush(file_.get()) == 0 ? absl::OkStatus() : WriteError(path_);
}

absl::Status MetricsFile::Sync() { return fsync(fileno(file_.get())) == 0 ? absl::OkStatus() : WriteError(path_); }

}  // namespace weft
