// Learning-rate schedules.
#ifndef WEFT_TRAIN_LEARNING_RATE_H_
#define WEFT_TRAIN_LEARNING_RATE_H_

#include <cstdint>

namespace weft {

// A linear warm-up to `peak`, then half a cosine down to `floor` (Loshchilov and Hutter, "SGDR", 2017, without
// restarts):
//   step < warmup: peak · (step + 1) / (warmup + 1)
//   else:          floor + (peak - floor) · (1 + cos(π · (step - warmup) / (steps - warmup))) / 2, and floor after
//   `steps`
struct WarmupCosine {
  double peak = 1e-3, floor = 1e-4;
  int64_t warmup = 100, steps = 2000;

  double At(int64_t step) const;  // the first update has step 0
};

}  // namespace weft

#endif  // WEFT_TRAIN_LEARNING_RATE_H_
