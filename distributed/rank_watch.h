// A RankWatch detects a rank that has died or hangs. Each rank sends a byte, a heartbeat, to the next rank about eight
// times in `timeout_seconds`. If a rank gets no heartbeat from the previous rank for `timeout_seconds`, its watch
// prints a message and aborts all ranks.
//
//   RankWatch watch(communicator, /*timeout_seconds=*/60);
//   while (watch.Tick(now, waiting_since)) {  // on the thread that uses the communicator
//     communicator->Progress(&ended);
//     for (const auto request : ended) if (!watch.Ended(request, now)) OtherMessage(request);
//   }
//
// A rank that ends sends a goodbye in place of a heartbeat, and then waits for the goodbye of the previous rank. So the
// next rank does not take the silence for a failure, and every heartbeat is received. If a rank has said goodbye while
// the next rank still waits for a message, the two ranks have run different programs. The message would never end, so
// the watch aborts all ranks in this case, too. In a ring of ranks, such a pair exists whenever one rank has ended and
// another waits forever.
#ifndef WEFT_DISTRIBUTED_RANK_WATCH_H_
#define WEFT_DISTRIBUTED_RANK_WATCH_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "weft/distributed/communicator.h"

namespace weft {

// Maximum number of seconds that a process waits: 31 years. The clock counts nanoseconds, so that it overflows after
// 292 years; longer timeouts are taken for this one.
inline constexpr double kMaxTimeout = 1e9;

class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // With one rank or a timeout of 0, the watch does nothing. All ranks must give the same timeout.
  RankWatch(Communicator* communicator, double timeout_seconds);

  // Sends and receives heartbeats. Must be called at least once in every `period`. `waiting_since`: the time since
  // which other messages are pending and none has ended, or `now` if no message is pending. Returns false after it has
  // aborted.
  bool Tick(Clock::time_point now, Clock::time_point waiting_since);
  // Handles the end of a heartbeat or goodbye. Returns false if `request` is another message.
  bool Ended(Communicator::Request request, Clock::time_point now);
  // Makes the next heartbeat a goodbye.
  void SayGoodbye() { ending_ = true; }
  // Reports whether the goodbye to the next rank has been sent, and the goodbye of the previous rank has arrived.
  bool finished() const { return !watches_ || (said_goodbye_ && !sending_.has_value() && previous_has_ended_); }

  // Returns the time between two heartbeats, or 0 if the watch does nothing.
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

// A Deadline ends this process if it is not destroyed in time. It guards the start of MPI, when no messenger watches
// the other ranks yet. MPI itself waits forever for a rank that hangs before it has connected.
//
//   const Deadline deadline(/*seconds=*/60, "weft: a rank has not answered");
//   MPI_Init(nullptr, nullptr);
class Deadline {
 public:
  // After `seconds`, prints `message` as a line on stderr and ends the process with exit code 1, without destructors.
  // 0: there is no deadline.
  Deadline(double seconds, std::string message);

 private:
  std::jthread thread_;  // its destructor stops it; not joinable if there is no deadline
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_RANK_WATCH_H_
