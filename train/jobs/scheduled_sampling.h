// Scheduled sampling (Bengio et al., 2015) replaces some of a decoder's input tokens in training by tokens that the
// decoder predicts. The fraction of replaced tokens can grow with the step.
//
//   const ScheduledSampling sampling = {.schedule = "linear", .rate = 0.25, .steps = 1000};
//   sampling.At(500);  // 0.125: the fraction of the inputs to replace
//
// A new schedule is a function and a row of the table in scheduled_sampling.cc.
#ifndef WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_
#define WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct ScheduledSampling {
  std::string schedule = "none";
  double rate = 0.25;   // the highest fraction of the inputs to replace
  double steps = 1000;  // "linear": the step at which `rate` is reached; "inverse-sigmoid": k

  // Returns the fraction of the inputs to replace in a step; the first step is 0.
  //   none: 0    constant: rate    linear: rate · min(1, step / steps)
  //   inverse-sigmoid: rate · (1 - k / (k + exp(step / k))) with k = steps: about rate / k at step 0, and half of rate
  //     at step k · ln k
  double At(int64_t step) const;
};

// Returns the names that ScheduledSampling::schedule may have.
std::vector<std::string> SamplingScheduleNames();

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_SCHEDULED_SAMPLING_H_
