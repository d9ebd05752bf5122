#include "weft/train/scheduled_sampling.h"

#include <algorithm>
#include <cmath>

namespace weft {

double ScheduledSampling::At(int64_t step) const {
  const double at = static_cast<double>(step);
  switch (decay) {
    case Decay::kNone:
      return 0;
    case Decay::kConstant:
      return rate;
    case Decay::kLinear:
      return rate * std::min(1.0, at / steps);
    case Decay::kInverseSigmoid:
      return rate / (1 + steps * std::exp(-at / steps));  // exp may be 0, but not infinite
  }
  return 0;
}

}  // namespace weft
