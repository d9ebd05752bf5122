// This file has the table of schedules, and parses the text by which options name a schedule or join several.
#include "weft/train/optimize/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"

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

double InverseSqrt(const RateScheduleSettings& s, int64_t step) {
  return std::max(s.floor, s.peak * std::sqrt(static_cast<double>(s.warmup + 1) / static_cast<double>(step + 1)));
}

// Returns a point of the half cosine from `begin` to `end`.
double HalfCosine(double begin, double end, double progress) {
  return end + (begin - end) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

double OneCycleUp(const RateScheduleSettings& s, int64_t step) {
  constexpr double kStart = 1.0 / 25;  // of the peak, as PyTorch's div_factor
  return HalfCosine(s.peak * kStart, s.peak, static_cast<double>(step) / static_cast<double>(s.warmup));
}

double OneCycleDown(const RateScheduleSettings& s, int64_t step) {
  if (step >= s.steps - 1) return s.floor;
  return HalfCosine(s.peak, s.floor,
                    static_cast<double>(step - s.warmup) / static_cast<double>(s.steps - 1 - s.warmup));
}

double WarmupStableDecay(const RateScheduleSettings& s, int64_t step) {
  if (step >= s.steps) return s.floor;
  const int64_t wanted = std::llround(s.decay < 1 ? s.decay * static_cast<double>(s.steps) : s.decay);
  const int64_t decay = std::min(wanted, s.steps - s.warmup), left = s.steps - step;
  if (left >= decay) return s.peak;
  return s.floor + (s.peak - s.floor) * static_cast<double>(left) / static_cast<double>(decay);
}

double Warmup(const RateScheduleSettings& s, int64_t step) {
  return s.peak * std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(s.steps + 1));
}

constexpr RateScheduleRow kSchedules[] = {{.name = "cosine", .rate = Cosine},
                                          {.name = "linear", .rate = Linear},
                                          {.name = "constant", .rate = Constant},
                                          {.name = "inverse-sqrt", .rate = InverseSqrt},
                                          {.name = "one-cycle", .rate = OneCycleDown, .warm_up = OneCycleUp},
                                          {.name = "wsd", .rate = WarmupStableDecay},
                                          {.name = "plateau", .rate = Constant, .plateau = true},
                                          {.name = "warmup", .rate = Warmup, .warm_up = Warmup}};

struct NamedPart {
  const RateScheduleRow* row = nullptr;
  std::optional<int64_t> steps;  // unset for a last part without a number
};

absl::StatusOr<NamedPart> ParsePart(absl::string_view text) {
  const size_t colon = text.find(':');
  const std::string name(absl::StripAsciiWhitespace(text.substr(0, colon)));
  NamedPart part = {.row = FindRateSchedule(name)};
  if (part.row == nullptr) return InvalidArgument("there is no '", name, "'", DidYouMean(name, RowNames(kSchedules)));
  if (colon == text.npos) return part;
  int64_t steps = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &steps) || steps < 1) {
    return InvalidArgument("'", text, "' has no number of steps after ':'");
  }
  part.steps = steps;
  return part;
}

absl::StatusOr<std::vector<NamedPart>> ParseParts(absl::string_view text) {
  std::vector<NamedPart> parts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (!parts.empty() && !parts.back().steps) {
      return InvalidArgument("schedule: '", parts.back().row->name, "' lacks its number of steps, as in '",
                             parts.back().row->name, ":100'");
    }
    WEFT_ASSIGN_OR_RETURN(parts.emplace_back(), Annotate(ParsePart(word), "schedule"));
  }
  for (const NamedPart& part : parts) {
    if (parts.size() == 1 || !part.row->plateau) continue;
    return InvalidArgument("schedule: '", part.row->name, "' can't be one of several parts");
  }
  return parts;
}

// Returns the number of steps in which each part runs; the last part runs at least until `steps`.
std::vector<int64_t> Lengths(const std::vector<NamedPart>& parts, int64_t steps) {
  std::vector<int64_t> lengths;
  for (const NamedPart& part : parts) {
    lengths.push_back(part.steps.value_or(std::max<int64_t>(0, steps)));
    steps -= lengths.back();
  }
  return lengths;
}

}  // namespace

absl::Span<const RateScheduleRow> RateSchedules() { return kSchedules; }

const RateScheduleRow* FindRateSchedule(absl::string_view name) { return FindRow(kSchedules, name); }

RateSchedule MakeRateSchedule(const RateScheduleRow& row, const RateScheduleSettings& settings) {
  return [&row, settings](int64_t step) {
    if (step >= settings.warmup) return row.rate(settings, step);
    if (row.warm_up != nullptr) return row.warm_up(settings, step);
    return settings.peak * static_cast<double>(step + 1) / static_cast<double>(settings.warmup + 1);
  };
}

absl::StatusOr<RateSchedule> ParseRateSchedule(absl::string_view text, const RateScheduleSettings& settings) {
  if (settings.floor > settings.peak) {
    return InvalidArgument("schedule: the minimum learning rate ", settings.floor, " is more than the highest, ",
                           settings.peak);
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedPart> named, ParseParts(text));
  std::vector<int64_t> lengths = Lengths(named, settings.steps);
  std::vector<RateSchedule> parts;  // the steps of each count from 0 again
  RateScheduleSettings each = settings;
  for (size_t i = 0; i < named.size(); ++i) {
    each.steps = lengths[i];
    parts.push_back(MakeRateSchedule(*named[i].row, each));
    each.warmup = 0;
  }
  return [parts = std::move(parts), lengths = std::move(lengths)](int64_t step) {
    size_t i = 0;  // the last part continues for ever
    for (; i + 1 < parts.size() && step >= lengths[i]; ++i) step -= lengths[i];
    return parts[i](step);
  };
}

absl::Status CheckLengths(absl::string_view text, const RateScheduleSettings& settings) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedPart> parts, ParseParts(text));
  const int64_t steps = settings.steps;
  const int64_t warmup = parts[0].row->warm_up == Warmup ? 0 : settings.warmup;
  if (warmup > steps) {
    return InvalidArgument("warmup-steps: the warm-up of ", warmup, " steps is longer than the training of ", steps,
                           " steps");
  }
  const std::vector<int64_t> lengths = Lengths(parts, steps);
  int64_t sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    sum += lengths[i];
    if (i == 0 && parts.size() > 1 && warmup > lengths[i]) {
      return InvalidArgument("schedule: the warm-up of ", warmup, " steps is longer than the part '",
                             parts[i].row->name, "' of ", lengths[i], " steps");
    }
    if (lengths[i] == 0 && steps > 0) {
      return InvalidArgument("schedule: '", text, "' has no step left for '", parts[i].row->name, "' in a training of ",
                             steps, " steps");
    }
  }
  if (sum > steps) {
    return InvalidArgument("schedule: the parts of '", text, "' take ", sum, " steps, more than the training's ",
                           steps);
  }
  return absl::OkStatus();
}

absl::Status Validate(const PlateauSettings& settings) {
  const auto& [factor, patience, threshold, min_scale] = settings;
  if (!(factor >= 0 && factor < 1)) return InvalidArgument("plateau-factor ", factor, " is not in [0, 1)");
  if (patience < 0) return InvalidArgument("plateau-patience ", patience, " is less than 0");
  if (!(threshold >= 0 && threshold < 1)) return InvalidArgument("plateau-threshold ", threshold, " is not in [0, 1)");
  if (!(min_scale >= 0 && min_scale <= 1)) return InvalidArgument("min_scale ", min_scale, " is not in [0, 1]");
  return absl::OkStatus();
}

bool Plateau::Observe(double metric, const PlateauSettings& settings) {
  if (metric < best * (1 - settings.threshold)) {
    best = metric;
    bad = 0;
    return false;
  }
  if (++bad <= settings.patience) return false;
  bad = 0;
  const double before = scale;
  scale = std::max(settings.min_scale, before * settings.factor);
  return scale < before;
}

}  // namespace weft
