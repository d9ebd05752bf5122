#include "weft/train/learning_rate.h"

#include <cmath>
#include <numbers>

namespace weft {

double WarmupCosine::At(int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (step >= steps) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return floor + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (peak - floor);
}

}  // namespace weft
