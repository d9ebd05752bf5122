#include "weft/train/run/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns the natural number `key` of `json`, or nothing if there is none or it is 2^63 or more.
std::optional<int64_t> NaturalNumber(const nlohmann::json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned()) return std::nullopt;
  return WholeNumber(json[key]);
}

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

absl::StatusOr<RunLog::Lines> RunLog::Lines::Open(const std::string& path, int64_t step,
                                                  absl::FunctionRef<void(const nlohmann::json&)> kept) {
  Lines lines;
  lines.path_ = path;
  const absl::StatusOr<std::string> found = ReadFile(path);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  const std::string contents = found.value_or("");
  std::string rest;
  for (absl::string_view line : absl::StrSplit(contents, '\n', absl::SkipEmpty())) {
    const nlohmann::json json = ParseJson(line);
    const std::optional<int64_t> of_step = NaturalNumber(json, "step");
    if (!of_step.has_value()) {
      const bool cut_off = line.data() + line.size() == contents.data() + contents.size();
      if (!cut_off) ++lines.damaged_;
      continue;
    }
    if (*of_step > step) continue;
    absl::StrAppend(&rest, line, "\n");
    kept(json);
  }
  if (rest != contents) WEFT_RETURN_IF_ERROR(WriteFile(path, {rest}));
  lines.file_.reset(std::fopen(path.c_str(), "ae"));
  if (lines.file_ == nullptr) return SystemStatus("write", path, errno);
  return lines;
}

// Does not wait for the disk.
absl::Status RunLog::Lines::Append(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  return written && std::fflush(file_.get()) == 0 ? absl::OkStatus() : SystemStatus("write", path_, errno);
}

absl::Status RunLog::Lines::Sync() {
  return fsync(fileno(file_.get())) == 0 ? absl::OkStatus() : SystemStatus("write", path_, errno);
}

absl::StatusOr<RunLog> RunLog::Open(const std::string& folder, int64_t step, const RunLogOptions& options) {
  RunLog log;
  log.keeps_errors_ = options.keeps_errors;
  const auto kept = [&](const nlohmann::json& json) {
    log.tokens_ = NaturalNumber(json, "tokens").value_or(log.tokens_);
    constexpr double kMaxSeconds = 1e9;  // 30 years; the clock of std::chrono covers 292 years
    const double seconds = json.contains("seconds") && json["seconds"].is_number() ? json["seconds"].get<double>() : -1;
    if (seconds >= 0 && seconds <= kMaxSeconds) log.seconds_ = seconds;
  };
  if (options.tensorboard) {
    WEFT_ASSIGN_OR_RETURN(log.events_, EventFile::Open(folder, step));
    if (!log.events_->warning().empty()) log.warnings_.push_back(log.events_->warning());
  }
  if (options.insights) {
    const auto ignore = [](const nlohmann::json&) {};
    WEFT_ASSIGN_OR_RETURN(log.insights_, Lines::Open(folder + "/insights.jsonl", step, ignore));
  }
  // Last, so that no error hides the warning after the damaged lines have been removed.
  const std::string path = folder + "/metrics.jsonl";
  WEFT_ASSIGN_OR_RETURN(log.metrics_, Lines::Open(path, step, kept));
  const int64_t damaged = log.metrics_->damaged();
  if (damaged > 0) log.warnings_.push_back(absl::StrCat("removed damaged lines from ", path, ": ", damaged));
  return log;
}

absl::Status RunLog::Append(const Metrics& metrics, const Parameters& parameters) {
  absl::Status status;
  if (events_) status = events_->AppendMetrics(metrics);
  if (events_ && metrics.validation && status.ok()) status = events_->AppendWeights(metrics.step, parameters);
  if (metrics_ && status.ok()) status = metrics_->Append(ToJsonLine(metrics));
  return Kept(status);
}

void RunLog::Remember(const Parameters& parameters) {
  if (!insights_) return;
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    const absl::StatusOr<Tensor> weight = parameters.Find(name);
    if (weight.ok() && IsFloat(weight->type.dtype)) remembered_[name] = TakeValues(*weight);
  }
}

absl::Status RunLog::AppendInsights(int64_t step, const absl::StatusOr<std::string>& sample,
                                    const Parameters& parameters) {
  if (!insights_) return absl::OkStatus();
  if (!sample.ok()) return Kept(sample.status());
  Json weights = Json::array();
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    const absl::StatusOr<Tensor> weight = parameters.Find(name);
    if (!weight.ok()) return Kept(weight.status());
    if (!IsFloat(weight->type.dtype)) continue;
    const auto before = remembered_.find(name);
    weights.push_back(Describe(name, TakeValues(*weight), before == remembered_.end() ? nullptr : &before->second));
  }
  remembered_.clear();
  Json line = {{"step", step}};
  if (!sample->empty()) line["sample"] = *sample;
  line["weights"] = std::move(weights);
  return Kept(insights_->Append(JsonLine(line)));
}

absl::Status RunLog::AppendText(int64_t step, const std::string& name, absl::string_view text) {
  if (!events_) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(events_->AppendLines(step, name, text));
  return events_->Sync();
}

absl::Status RunLog::Sync() {
  WEFT_RETURN_IF_ERROR(error_);
  if (events_) WEFT_RETURN_IF_ERROR(events_->Sync());
  if (insights_) WEFT_RETURN_IF_ERROR(insights_->Sync());
  return metrics_ ? metrics_->Sync() : absl::OkStatus();
}

absl::Status RunLog::Kept(const absl::Status& status) {
  if (!keeps_errors_) return status;
  error_.Update(status);
  return absl::OkStatus();
}

}  // namespace weft
