// On a terminal, the line is rewritten at most every `between` seconds and after the last step. The time left follows
// from the mean time of a step.
#include "weft/train/run/progress.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr char kRewrite[] = "\r\x1b[K";  // moves to the start of the line and erases it

}  // namespace

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

void Progress::Evaluation(int64_t step, const Metrics::Validation& validation, double seconds) {
  const auto accuracy = [](std::optional<double> value) {
    return value ? absl::StrFormat("  accuracy %.2f%%", 100 * *value) : "";
  };
  const auto more = [](const NamedFigures& figures) {
    std::string text;
    for (const auto& [name, value] : figures) absl::StrAppendFormat(&text, "  %s %.4f", name, value);
    return text;
  };
  const auto loss = [](double nats, std::optional<double> bits) {
    return bits ? absl::StrFormat("%.4f nats a token, %.4f bits a byte", nats, *bits) : absl::StrFormat("%.4f", nats);
  };
  std::string average;
  if (validation.ema_loss) {
    average = absl::StrFormat("  of averaged weights %s%s%s", loss(*validation.ema_loss, validation.ema_bits_per_byte),
                              accuracy(validation.ema_accuracy), more(validation.ema_figures));
  }
  Say(absl::StrFormat("step %d/%d  validation loss %s%s%s%s  after %s", step, steps_,
                      loss(validation.loss, validation.bits_per_byte), accuracy(validation.accuracy),
                      more(validation.figures), average, FormatDuration(seconds)));
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
