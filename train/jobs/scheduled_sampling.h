// Scheduled sampling (Bengio et al., 2015) replaces some of a decoder's input tokens in training by tokens that the
// decoder predicts. The fraction of replaced tokens can grow with the step.
//
//   const ScheduledSampling sampling = {.schedule = "linear", .rate = 0.25, .steps = 1000};
//   sampling.At(500);  // 0.125: the fraction of the inputs to replace
//
// A new schedule is a row of kSamplingSchedules.
#ifndef WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_
#define WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace weft {

struct ScheduledSampling {
  std::string schedule = "none";  // the name of a row of kSamplingSchedules
  double rate = 0.25;             // the highest fraction of the inputs to replace
  double steps = 1000;            // "linear": the step at which `rate` is reached; "inverse-sigmoid": k

  // Returns the fraction of the inputs to replace in a step, by the formula of the schedule below. The first step is 0.
  double At(int64_t step) const;
};

struct SamplingSchedule {
  const char* name;
  double (*fraction)(const ScheduledSampling& s, double step);
};
inline constexpr SamplingSchedule kSamplingSchedules[] = {
    {"none", [](const ScheduledSampling&, double) { return 0.0; }},
    {"constant", [](const ScheduledSampling& s, double) { return s.rate; }},
    {"linear", [](const ScheduledSampling& s, double step) { return s.rate * std::min(1.0, step / s.steps); }},
    // The published rate · (1 - k / (k + e)) with e = exp(step / k) equals rate · e / (k + e). Here both parts are
    // divided by e, which can overflow. It is about rate / k at step 0, and half of rate at step k · ln k.
    {"inverse-sigmoid",
     [](const ScheduledSampling& s, double step) { return s.rate / (1 + s.steps * std::exp(-step / s.steps)); }},
};

inline double ScheduledSampling::At(int64_t step) const {
  for (const SamplingSchedule& row : kSamplingSchedules) {
    if (row.name == schedule) return row.fraction(*this, static_cast<double>(step));
  }
  return 0;
}

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_
