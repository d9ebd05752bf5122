#include "weft/train/plateau.h"

#include <algorithm>

#include "weft/core/status.h"

namespace weft {

absl::Status Validate(const PlateauSettings& settings) {
  const auto& [factor, patience, threshold, min_scale] = settings;
  if (!(factor >= 0 && factor < 1)) return InvalidArgument("plateau-factor ", factor, " is not in [0, 1)");
  if (patience < 0) return InvalidArgument("plateau-patience ", patience, " is less than 0");
  if (!(threshold >= 0 && threshold < 1)) return InvalidArgument("plateau-threshold ", threshold, " is not in [0, 1)");
  if (!(min_scale >= 0 && min_scale <= 1)) return InvalidArgument("min_scale ", min_scale, " is not in [0, 1]");
  return absl::OkStatus();
}

bool Plateau::Observe(double metric) {
  if (metric < state_.best * (1 - settings_.threshold)) {
    state_.best = metric;
    state_.bad = 0;
    return false;
  }
  if (++state_.bad <= settings_.patience) return false;
  state_.bad = 0;
  const double before = state_.scale;
  state_.scale = std::max(settings_.min_scale, before * settings_.factor);
  return state_.scale < before;
}

}  // namespace weft
