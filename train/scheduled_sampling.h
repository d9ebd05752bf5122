// Scheduled sampling (Bengio et al., 2015): in training a decoder sees, now and then, what it would have written itself
// in place of the true text, and more often as it learns.
#ifndef WEFT_TRAIN_SCHEDULED_SAMPLING_H_
#define WEFT_TRAIN_SCHEDULED_SAMPLING_H_

#include <cstdint>

namespace weft {

struct ScheduledSampling {
  enum class Decay : uint8_t { kNone, kConstant, kLinear, kInverseSigmoid };
  Decay decay = Decay::kNone;
  double rate = 0.25;   // the greatest part of the inputs that are the model's own
  double steps = 1000;  // kLinear: until that; kInverseSigmoid: k

  // The part of the inputs that are the model's own, after `step` updates:
  //   kNone: 0    kConstant: rate    kLinear: rate · min(1, step / steps)
  //   kInverseSigmoid: rate · (1 - k / (k + exp(step / k))); some rate / k at first, half at step k · ln k
  double At(int64_t step) const;
};

}  // namespace weft

#endif  // WEFT_TRAIN_SCHEDULED_SAMPLING_H_
