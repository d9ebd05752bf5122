// Each schedule is a row: its name and its fraction as a function of the step.
#include "weft/train/jobs/scheduled_sampling.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

struct Row {
  const char* name;
  double (*fraction)(const ScheduledSampling& s, double step);
};

constexpr Row kRows[] = {
    {"none", [](const ScheduledSampling&, double) { return 0.0; }},
    {"constant", [](const ScheduledSampling& s, double) { return s.rate; }},
    {"linear", [](const ScheduledSampling& s, double step) { return s.rate * std::min(1.0, step / s.steps); }},
    // The header's formula equals rate · e / (k + e) with e = exp(step / k). Here both parts are divided by e, which
    // can overflow.
    {"inverse-sigmoid",
     [](const ScheduledSampling& s, double step) { return s.rate / (1 + s.steps * std::exp(-step / s.steps)); }},
};

}  // namespace

double ScheduledSampling::At(int64_t step) const {
  for (const Row& row : kRows) {
    if (row.name == schedule) return row.fraction(*this, static_cast<double>(step));
  }
  return 0;
}

std::vector<std::string> SamplingScheduleNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace weft
