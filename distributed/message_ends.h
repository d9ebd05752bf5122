// MessageEnds lets a thread wait until messages of a Transport have ended.
//
//   MessageEnds ends(2);
//   transport->Send(sent, /*to=*/1, /*tag=*/0, ends.done());
//   transport->Receive(received, /*from=*/1, /*tag=*/0, ends.done());
//   ends.Wait();
#ifndef WEFT_DISTRIBUTED_MESSAGE_ENDS_H_
#define WEFT_DISTRIBUTED_MESSAGE_ENDS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "weft/graph/run/transport.h"

namespace weft {

class MessageEnds {
 public:
  using Clock = std::chrono::steady_clock;

  // `count`: number of messages that use done().
  explicit MessageEnds(int count = 1) : left_(count) {}

  // The object must exist until Wait has returned.
  Transport::Done done() {
    return {.call = [](void* object, uint32_t) { static_cast<MessageEnds*>(object)->End(); }, .object = this};
  }

  // Waits until all messages have ended. Returns when the last one ended.
  Clock::time_point Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
    return time_;
  }

 private:
  void End() {
    // Notifies under the mutex: the waiting thread destroys this object as soon as it gets the mutex.
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    if (--left_ == 0) changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
  Clock::time_point time_;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_MESSAGE_ENDS_H_
