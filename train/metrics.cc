// Append does not wait for the disk; Sync does. Open drops a line that a killed program left incomplete.
#include "weft/train/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

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
    if (validation.ema_loss) json["ema_val_loss"] = *validation.ema_loss;
    if (validation.ema_accuracy) json["ema_val_accuracy"] = *validation.ema_accuracy;
  }
  if (metrics.training) {
    json["learning_rate"] = metrics.training->learning_rate;
    json["grad_norm"] = metrics.training->gradient_norm;
    json["tokens_per_second"] = metrics.training->tokens_per_second;
  }
  if (metrics.skipped) json["skipped"] = *metrics.skipped;
  return json.dump();
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path, int64_t step) {
  MetricsFile metrics;
  metrics.path_ = path;
  std::string kept;
  absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok() && !absl::IsNotFound(contents.status())) return contents.status();
  if (contents.ok()) {
    for (absl::string_view line : absl::StrSplit(*contents, '\n', absl::SkipEmpty())) {
      const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
      if (json["step"].get<int64_t>() > step) continue;
      absl::StrAppend(&kept, line, "\n");
      if (json.contains("seconds") && json["seconds"].is_number()) metrics.seconds_ = json["seconds"].get<double>();
      if (json.contains("tokens") && json["tokens"].is_number()) metrics.tokens_ = json["tokens"].get<int64_t>();
    }
    if (kept != *contents) WEFT_RETURN_IF_ERROR(WriteFile(path, {kept}));
  }
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
