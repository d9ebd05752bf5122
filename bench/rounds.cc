// A round's share is the lowest fraction of full speed that a figure reaches, before or after the round.
#include "weft/bench/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr double kMinShare = 0.95;
constexpr int kMaxFactor = 4;  // the maximum number of rounds, divided by the number that must count

using Figure = double SpeedProbe::Speed::*;
constexpr std::pair<Figure, const char*> kFigures[] = {{&SpeedProbe::Speed::flops, "multiply-adds"},
                                                       {&SpeedProbe::Speed::read, "reads"}};

std::vector<double> Descending(const std::vector<SpeedProbe::Speed>& speeds, Figure figure) {
  std::vector<double> values;
  for (const SpeedProbe::Speed& speed : speeds) values.push_back(speed.*figure);
  absl::c_sort(values, std::greater<>());
  return values;
}

}  // namespace

Rounds::Rounds(int wanted, std::function<SpeedProbe::Speed()> probe) : wanted_(wanted), probe_(std::move(probe)) {
  WEFT_CHECK(wanted >= 1);
}

bool Rounds::GoOn() {
  speeds_.push_back(probe_ ? probe_() : SpeedProbe::Speed());
  const auto good = absl::c_count_if(Shares(), [](double share) { return share >= kMinShare; });
  return good < wanted_ && static_cast<int>(speeds_.size()) <= kMaxFactor * wanted_;
}

std::vector<double> Rounds::Shares() const {
  WEFT_CHECK(!speeds_.empty());
  std::vector<double> shares(speeds_.size(), 1);  // of each probe
  for (const auto& [figure, name] : kFigures) {
    const size_t bursts = std::max<size_t>((speeds_.size() - 1) / 5, speeds_.size() > 2 ? 1 : 0);
    const double full = Descending(speeds_, figure)[bursts];
    for (size_t i = 0; full > 0 && i < shares.size(); ++i) {  // a figure that was not measured is 0
      shares[i] = std::min(shares[i], speeds_[i].*figure / full);
    }
  }
  for (size_t i = 0; i + 1 < shares.size(); ++i) shares[i] = std::min(shares[i], shares[i + 1]);
  shares.pop_back();
  return shares;
}

std::vector<bool> Rounds::Counted() const {
  const std::vector<double> shares = Shares();
  std::vector<double> sorted = shares;
  absl::c_sort(sorted, std::greater<>());
  const size_t wanted = std::min(sorted.size(), static_cast<size_t>(wanted_));
  const double least = wanted > 0 ? std::min(kMinShare, sorted[wanted - 1]) : kMinShare;
  std::vector<bool> counted;
  for (const double share : shares) counted.push_back(share >= least);
  return counted;
}

std::string Rounds::Report() const {
  const std::vector<double> shares = Shares();
  const auto good = absl::c_count_if(shares, [](double share) { return share >= kMinShare; });
  std::string report =
      absl::StrFormat("%d of %d rounds ran at %.0f%% of full speed or above", good, shares.size(), 100 * kMinShare);
  for (const auto& [figure, name] : kFigures) {
    const std::vector<double> values = Descending(speeds_, figure);
    if (values[0] == 0) continue;
    absl::StrAppendFormat(&report, "; slowest probe of %s: %.0f%% of the fastest", name,
                          100 * values.back() / values[0]);
  }
  return report;
}

}  // namespace weft
