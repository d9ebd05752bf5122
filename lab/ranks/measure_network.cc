#include "weft/lab/ranks/measure_network.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/lab/measure.h"
#include "weft/lab/team.h"

namespace weft {
namespace {

constexpr size_t kShortBytes = 8, kLongBytes = size_t{16} << 20;
constexpr int kShortRounds = 300, kLongRounds = 8, kWarmUpRounds = 3;
constexpr double kMinRate = 1;  // bytes per second; keeps a division finite

// Waits for the end of one message.
class Ended {
 public:
  Transport::Done done() {
    return {.call = [](void* object, uint32_t) { static_cast<Ended*>(object)->End(); }, .object = this};
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
  }

 private:
  void End() {
    const std::lock_guard lock(mutex_);  // held while notifying: the waiting thread destroys this object
    ended_ = true;
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

// Returns the median seconds in which messages of `bytes` bytes go to the other rank and come back.
double RoundTrip(Transport* transport, size_t bytes, int rounds) {
  const int me = transport->rank(), peer = 1 - me;
  std::vector<std::byte> buffer(bytes);
  const auto send = [&] {
    Ended ended;
    transport->Send(buffer, peer, /*tag=*/0, ended.done());
    ended.Wait();
  };
  const auto receive = [&] {
    Ended ended;
    transport->Receive(absl::MakeSpan(buffer), peer, /*tag=*/0, ended.done());
    ended.Wait();
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
  InProcessNetwork network(
      2, {.latency_seconds = imitated.latency_seconds, .bytes_per_second = imitated.bytes_per_second});
  Network results[2];
  Team team(2);
  team.Run([&](int rank) {
    Messenger messenger(network.Connect(rank));
    results[rank] = MeasureNetwork(&messenger);
  });
  return results[0];
}

}  // namespace weft
