// A RankWatch notices that a rank has died or hangs. Each rank sends a byte, a heartbeat, to the next rank about eight
// times in `timeout_seconds`. If a rank hears nothing from the previous rank for that long, its watch prints a message
// and aborts all ranks.
//
//   RankWatch watch(communicator, /*timeout_seconds=*/60);
//   while (watch.Tick(now, waiting_since)) {  // on the thread that uses the communicator
//     communicator->Progress(&ended);
//     for (const auto request : ended) if (!watch.Ended(request, now)) OtherMessage(request);
//   }
//
// A rank that ends says goodbye in place of a heartbeat, and then waits for the goodbye of the previous rank. So the
// next rank does not take its silence for death, and no heartbeat stays without a receiver. If a rank has said goodbye
// while the next one still waits for a message, the two have run different programs. Then no message ends any more, and
// the watch aborts, too. In a ring of ranks, such a pair exists whenever one rank has ended and another waits forever.
#ifndef WEFT_DISTRIBUTED_RANK_WATCH_H_
#define WEFT_DISTRIBUTED_RANK_WATCH_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "weft/distributed/communicator.h"

namespace weft {

class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // With one rank or a timeout of 0 there is nothing to watch. All ranks must give the same timeout.
  RankWatch(Communicator* communicator, double timeout_seconds);

  // Sends and receives heartbeats. Must be called at least once in every `period`. `waiting_since`: the time since
  // which other messages are pending and none has ended; `now` if none is pending. Returns false after it has aborted.
  bool Tick(Clock::time_point now, Clock::time_point waiting_since);
  // Takes note of an ended request. Returns false if it belongs to another message.
  bool Ended(Communicator::Request request, Clock::time_point now);
  // Makes the next heartbeat a goodbye.
  void SayGoodbye() { ending_ = true; }
  // Reports whether both goodbyes have arrived: that to the next rank, and that of the previous rank.
  bool finished() const { return !watches_ || (said_goodbye_ && !sending_.has_value() && previous_has_ended_); }

  // The time between two heartbeats. Zero if there is nothing to watch.
  Clock::duration period() const { return period_; }

 private:
  bool Abort(const std::string& message);

  Communicator* const communicator_;
  const double timeout_seconds_;
  const bool watches_;
  const Clock::duration period_;
  const int previous_, next_;
  Clock::time_point last_tick_, last_sent_, last_heard_;
  std::optional<Communicator::Request> sending_, receiving_;
  std::byte sent_{}, received_{};
  bool started_ = false;
  bool ending_ = false, said_goodbye_ = false, previous_has_ended_ = false;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_RANK_WATCH_H_
