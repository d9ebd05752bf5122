#include "weft/train/run/metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr char kRewrite[] = "\r\x1b[K";  // moves to the start of the line and erases it

}  // namespace

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

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrFormat("%ds", whole);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string FormatStep(int64_t step, int64_t steps, const Metrics::Training& training, double seconds_left) {
  const double speed = training.tokens_per_second;
  return absl::StrFormat("step %d/%d  loss %.4f  rate %.2e  %s tokens/s  %s left", step, steps, training.loss,
                         training.learning_rate,
                         speed < 1e4 ? absl::StrFormat("%.0f", speed) : absl::StrFormat("%.1fk", speed * 1e-3),
                         FormatDuration(seconds_left));
}

void Progress::Begin(int64_t first_step, int64_t steps) {
  first_step_ = first_step;
  steps_ = steps;
  begin_ = Clock::now();
  shown_ = Clock::time_point::min();
}

void Progress::Step(int64_t step, const Metrics::Training& training) {
  if (options_.quiet) return;
  const auto now = Clock::now();
  const bool soon =
      shown_ != Clock::time_point::min() && now - shown_ < std::chrono::duration<double>(options_.between);
  if (options_.terminal ? soon && step < steps_
                        : options_.log_every == 0 || (step % options_.log_every != 0 && step < steps_)) {
    return;
  }
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double left =
      elapsed / static_cast<double>(std::max<int64_t>(1, step - first_step_)) * static_cast<double>(steps_ - step);
  const std::string line = FormatStep(step, steps_, training, left);
  std::fprintf(options_.out, options_.terminal ? "%s%s" : "%s%s\n", options_.terminal ? kRewrite : "", line.c_str());
  std::fflush(options_.out);
  line_open_ = options_.terminal;
}

void Progress::Evaluation(const Metrics& line) {
  if (!line.validation) return;
  const auto figures = [](const Metrics::Validation& measured) {
    std::string text = absl::StrFormat("%.4f", measured.loss);
    if (measured.bits_per_byte)
      absl::StrAppendFormat(&text, " nats a token, %.4f bits a byte", *measured.bits_per_byte);
    if (measured.accuracy) absl::StrAppendFormat(&text, "  accuracy %.2f%%", 100 * *measured.accuracy);
    for (const auto& [name, value] : measured.figures) absl::StrAppendFormat(&text, "  %s %.4f", name, value);
    return text;
  };
  Say(absl::StrFormat("step %d/%d  validation loss %s%s%s  after %s", line.step, steps_, figures(*line.validation),
                      line.ema ? "  of averaged weights " : "", line.ema ? figures(*line.ema) : "",
                      FormatDuration(line.seconds)));
}

void Progress::Say(absl::string_view line) {
  if (options_.quiet) return;
  std::fprintf(options_.out, "%s%.*s\n", line_open_ ? kRewrite : "", static_cast<int>(line.size()), line.data());
  std::fflush(options_.out);
  line_open_ = false;
}

void Progress::End() {
  if (line_open_) std::fprintf(options_.out, "\n");
  std::fflush(options_.out);
  line_open_ = false;
}

void Warn(absl::string_view text) {
  std::fprintf(stderr, "weft: warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace weft
