// Computes the tables of rotary positions (Su et al., 2021), with the scalings of their frequencies for longer
// contexts.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

constexpr double kTwoPi = 6.283185307179586;

VarList RecordTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base,
                     const RotaryScaling& scaling) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < width / 2; ++i) frequencies.push_back(RotaryFrequency(i, width, base, scaling));
  const bool yarn = scaling.kind == RotaryScalingKind::kYarn;
  const double usual = 0.1 * std::log(std::max(scaling.factor, 1.0)) + 1;
  const double gain = !yarn ? 1 : scaling.gain != 0 ? scaling.gain : usual;
  const auto angle = [&](int64_t position, int64_t i) {
    return static_cast<double>(position) * frequencies[static_cast<size_t>(i)];
  };
  const auto cosine = [&](int64_t position, int64_t i) { return gain * std::cos(angle(position, i)); };
  const auto sine = [&](int64_t position, int64_t i) { return gain * std::sin(angle(position, i)); };
  return {ConstantTable(tape, dtype, length, width / 2, cosine), ConstantTable(tape, dtype, length, width / 2, sine)};
}

}  // namespace

double RotaryFrequency(int64_t i, int64_t width, double base, const RotaryScaling& scaling) {
  const auto of_width = [&](double x) { return x / static_cast<double>(width); };
  const double frequency = std::pow(base, of_width(-2.0 * static_cast<double>(i)));
  const double context = static_cast<double>(scaling.context), slow = scaling.slow;
  const bool yarn = scaling.kind == RotaryScalingKind::kYarn;
  const double fast = scaling.fast != 0 ? scaling.fast : yarn ? 32 : 4;
  double kept = 0;  // the fraction of the frequency that is not divided
  if (scaling.kind == RotaryScalingKind::kNone) {
    kept = 1;
  } else if (yarn) {
    // Pair pair_of(n) turns n times. The ramp begins and ends at whole pairs.
    const auto pair_of = [&](double turns) {
      return static_cast<double>(width) * std::log(context / (turns * kTwoPi)) / (2 * std::log(base));
    };
    const double first = std::max(std::floor(pair_of(fast)), 0.0);
    double last = std::min(std::ceil(pair_of(slow)), static_cast<double>(width - 1));
    if (first == last) last += 0.001;
    kept = 1 - std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
  } else if (scaling.kind == RotaryScalingKind::kLlama3) {
    const double turns = context * frequency / kTwoPi;
    kept = turns < slow ? 0 : turns > fast ? 1 : (turns - slow) / (fast - slow);
  }
  return kept * frequency + (1 - kept) * frequency / scaling.factor;
}

VarList RotaryTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base,
                     const RotaryScaling& scaling) {
  const std::string key =
      absl::StrFormat("rotary %d %d %d %a %d %a %d %a %a %a", dtype, length, width, base, scaling.kind, scaling.factor,
                      scaling.context, scaling.slow, scaling.fast, scaling.gain);
  return tape->Once(key, [&] { return RecordTables(tape, dtype, length, width, base, scaling); });
}

}  // namespace weft
