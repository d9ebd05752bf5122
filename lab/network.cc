#include "weft/lab/network.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "weft/base/decimal.h"
#include "weft/base/status.h"
#include "weft/distributed/ranks.h"
#include "weft/lab/machine/measure.h"

namespace weft {
namespace {

constexpr double kMaxRanks = 1e6, kMaxOversubscription = 1e4;

// MeasureNetwork times short messages for the latency, and long ones for the bandwidth.
constexpr size_t kShortBytes = 8, kLongBytes = size_t{16} << 20;
constexpr int kShortRounds = 300, kLongRounds = 8, kWarmUpRounds = 3;
constexpr double kMinRate = 1;  // bytes per second; keeps a division finite

struct Unit {
  const char* name;
  double factor;
};
// A name comes before its own suffixes, so that "ms" is not read as "s".
constexpr Unit kTimes[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1}};
constexpr Unit kRates[] = {
    {"Tbit", 1e12 / 8}, {"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"kbit", 1e3 / 8}, {"bit", 1.0 / 8}};

// Returns the value of a number with a unit, or nothing if `text` is not one.
std::optional<double> Value(absl::string_view text, absl::Span<const Unit> units) {
  for (const Unit& unit : units) {
    double number = 0;
    if (!absl::EndsWith(text, unit.name)) continue;
    text.remove_suffix(absl::string_view(unit.name).size());
    if (!ParseDecimal(text, &number) || number < 0) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

// Sets the topology of `network` to `text`. Returns false if `text` is no topology.
bool SetTopology(absl::string_view text, Network* network) {
  if (text == "flat") return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  return parts.size() == 3 && parts[0] == "tree" && absl::SimpleAtoi(parts[1], &network->ranks_per_switch) &&
         network->ranks_per_switch >= 1 && static_cast<double>(network->ranks_per_switch) <= kMaxRanks &&
         ParseDecimal(parts[2], &network->oversubscription) && network->oversubscription >= 1 &&
         network->oversubscription <= kMaxOversubscription;
}

std::string WithUnit(double value, absl::Span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    const double number = value / unit.factor, other = value / best->factor;
    if (number >= 1 && (other < 1 || number < other)) best = &unit;
  }
  return absl::StrFormat("%.4g%s", value / best->factor, best->name);
}

// Returns the median seconds in which messages of `bytes` bytes go to the other rank and come back.
double RoundTrip(Transport* transport, size_t bytes, int rounds) {
  const int me = transport->rank(), peer = 1 - me;
  std::vector<std::byte> buffer(bytes);
  const auto send = [&] {
    PendingMessages message;
    transport->Send(buffer, peer, /*tag=*/0, message.Add());
    message.Wait();
  };
  const auto receive = [&] {
    PendingMessages message;
    transport->Receive(absl::MakeSpan(buffer), peer, /*tag=*/0, message.Add());
    message.Wait();
  };
  std::vector<double> seconds;
  for (int round = -kWarmUpRounds; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    if (me == 0) send();
    receive();
    if (me == 1) send();
    if (round >= 0) seconds.push_back(SecondsSince(start));
  }
  return Median(std::move(seconds));
}

}  // namespace

double Network::LinkSeconds(double bytes, int from, int to) const {
  const bool apart = ranks_per_switch > 0 && from / ranks_per_switch != to / ranks_per_switch;
  return bytes / bytes_per_second * (apart ? oversubscription : 1);
}

absl::StatusOr<Network> ParseNetwork(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  Network network;
  if (parts.size() == 2 || parts.size() == 3) {
    const std::optional<double> latency = Value(parts[0], kTimes), rate = Value(parts[1], kRates);
    if (latency && rate && *rate > 0 && (parts.size() == 2 || SetTopology(parts[2], &network))) {
      network.latency_seconds = *latency;
      network.bytes_per_second = *rate;
      return network;
    }
  }
  return InvalidArgument("'", text,
                         "' is not LATENCY,BANDWIDTH or LATENCY,BANDWIDTH,TOPOLOGY, such as 25us,10Gbit, "
                         "25us,10Gbit,flat, or 25us,10Gbit,tree:16:4 for 16 ranks at a switch, whose uplink has 1/4 of "
                         "the ranks' bandwidth");
}

std::string ToString(const Network& network) {
  std::string text =
      absl::StrCat(WithUnit(network.latency_seconds, kTimes), ",", WithUnit(network.bytes_per_second, kRates));
  if (network.ranks_per_switch > 0) {
    absl::StrAppend(&text, ",tree:", network.ranks_per_switch, ":", network.oversubscription);
  }
  return text;
}

InProcessOptions Imitation(const Network& network) {
  return {.latency_seconds = network.latency_seconds, .bytes_per_second = network.bytes_per_second};
}

Network MeasureNetwork(Transport* transport) {
  const double brief = RoundTrip(transport, kShortBytes, kShortRounds);
  const double lengthy = RoundTrip(transport, kLongBytes, kLongRounds);
  const double seconds = std::max((lengthy - brief) / 2, 1e-9);
  return {.latency_seconds = brief / 2,
          .bytes_per_second = std::max(kMinRate, static_cast<double>(kLongBytes) / seconds)};
}

Network MeasureImitatedNetwork(const Network& imitated) {
  Network measured;
  RunRanks(
      2,
      [&](Transport* transport) {
        const Network mine = MeasureNetwork(transport);
        if (transport->rank() == 0) measured = mine;
      },
      Imitation(imitated));
  return measured;
}

}  // namespace weft
