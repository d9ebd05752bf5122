#include "weft/lab/ranks/measure_network.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/types/span.h"
#include "weft/distributed/rank_threads.h"
#include "weft/distributed/ranks.h"
#include "weft/lab/machine/measure.h"

namespace weft {
namespace {

constexpr size_t kShortBytes = 8, kLongBytes = size_t{16} << 20;
constexpr int kShortRounds = 300, kLongRounds = 8, kWarmUpRounds = 3;
constexpr double kMinRate = 1;  // bytes per second; keeps a division finite

// Returns the median seconds in which messages of `bytes` bytes go to the other rank and come back.
double RoundTrip(Transport* transport, size_t bytes, int rounds) {
  const int me = transport->rank(), peer = 1 - me;
  std::vector<std::byte> buffer(bytes);
  const auto send = [&] {
    absl::BlockingCounter end(1);
    transport->Send(buffer, peer, /*tag=*/0, CountIn(&end));
    end.Wait();
  };
  const auto receive = [&] {
    absl::BlockingCounter end(1);
    transport->Receive(absl::MakeSpan(buffer), peer, /*tag=*/0, CountIn(&end));
    end.Wait();
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
