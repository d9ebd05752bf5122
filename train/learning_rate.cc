#include "weft/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft {
namespace {

// Returns the fraction of the steps after the warm-up that come before `step`.
double Progress(const RateScheduleSettings& s, int64_t step) {
  return static_cast<double>(step - s.warmup) / static_cast<double>(s.steps - s.warmup);
}

double Cosine(const RateScheduleSettings& s, int64_t step) {
  if (step >= s.steps) return s.floor;
  return s.floor + 0.5 * (1 + std::cos(std::numbers::pi * Progress(s, step))) * (s.peak - s.floor);
}

double Linear(const RateScheduleSettings& s, int64_t step) {
  if (step >= s.steps) return s.floor;
  return s.floor + (1 - Progress(s, step)) * (s.peak - s.floor);
}

double Constant(const RateScheduleSettings& s, int64_t /*step*/) { return s.peak; }

constexpr RateScheduleRow kSchedules[] = {{"cosine", Cosine}, {"linear", Linear}, {"constant", Constant}};

}  // namespace

absl::Span<const RateScheduleRow> RateSchedules() { return kSchedules; }

const RateScheduleRow* FindRateSchedule(absl::string_view name) {
  const auto found = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                  [&](const RateScheduleRow& row) { return row.name == name; });
  return found != std::end(kSchedules) ? found : nullptr;
}

RateSchedule MakeRateSchedule(const RateScheduleRow& row, const RateScheduleSettings& settings) {
  return [&row, settings](int64_t step) {
    if (step >= settings.warmup) return row.rate(settings, step);
    return settings.peak * static_cast<double>(step + 1) / static_cast<double>(settings.warmup + 1);
  };
}

}  // namespace weft
