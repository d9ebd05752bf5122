#include "weft/distributed/rank_watch.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "weft/base/signal_block.h"

namespace weft {
namespace {

constexpr std::byte kAlive{1}, kGoodbye{2};
constexpr int kHeartbeatsPerTimeout = 8;

// Prints why all ranks end. Waits, because mpirun of MPICH may end before it has passed on what ranks printed last.
void PrintLastLine(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

}  // namespace

RankWatch::RankWatch(Communicator* communicator, double timeout_seconds)
    : communicator_(communicator),
      timeout_seconds_(timeout_seconds),
      watches_(communicator->size() > 1 && timeout_seconds > 0),
      period_(watches_ ? std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                             std::min(timeout_seconds, kMaxTimeout) / kHeartbeatsPerTimeout))
                       : Clock::duration::zero()),
      previous_((communicator->rank() + communicator->size() - 1) % communicator->size()),
      next_((communicator->rank() + 1) % communicator->size()) {}

bool RankWatch::Tick(Clock::time_point now, Clock::time_point waiting_since) {
  if (!watches_) return true;
  // The process was stopped, for example by Ctrl-Z. Heartbeats that it missed meanwhile do not count as silence.
  if (!started_ || now - last_tick_ > 2 * period_) last_heard_ = now;
  last_tick_ = now;

  if (!sending_.has_value() && !said_goodbye_ && (!started_ || ending_ || now - last_sent_ >= period_)) {
    sent_ = ending_ ? kGoodbye : kAlive;
    said_goodbye_ = ending_;
    last_sent_ = now;
    sending_ = communicator_->Send(absl::MakeConstSpan(&sent_, 1), next_, kHeartbeatTag);
  }
  if (!receiving_.has_value() && !previous_has_ended_) {
    receiving_ = communicator_->Receive(absl::MakeSpan(&received_, 1), previous_, kHeartbeatTag);
  }
  started_ = true;

  const Clock::duration timeout = kHeartbeatsPerTimeout * period_;
  if (!previous_has_ended_ && now - last_heard_ > timeout) {
    return Abort(absl::StrCat("rank ", previous_, " has not answered for ", timeout_seconds_, " s"));
  }
  if (previous_has_ended_ && now - last_heard_ > timeout && now - waiting_since > timeout) {
    return Abort(absl::StrCat("rank ", previous_, " has ended, but rank ", communicator_->rank(),
                              " has waited for messages for ", timeout_seconds_, " s"));
  }
  return true;
}

bool RankWatch::Ended(Communicator::Request request, Clock::time_point now) {
  if (request == sending_) {
    sending_.reset();
    return true;
  }
  if (request != receiving_) return false;
  receiving_.reset();
  last_heard_ = now;
  previous_has_ended_ = received_ == kGoodbye;
  return true;
}

bool RankWatch::Abort(const std::string& message) {
  PrintLastLine(absl::StrCat("weft: ", message, "; ending all ranks"));
  communicator_->Abort(1);
  return false;
}

Deadline::Deadline(double seconds, std::string message) {
  if (seconds == 0) return;
  const std::chrono::duration<double> longest(std::min(seconds, kMaxTimeout));
  const SignalBlock block;  // the new thread inherits it for all its life
  thread_ = std::jthread([longest, message = std::move(message)](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait_for(lock, stop, longest, [] { return false; });
    if (stop.stop_requested()) return;
    PrintLastLine(message);
    std::_Exit(1);
  });
}

}  // namespace weft
