#include "weft/distributed/deadline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "weft/core/signal_block.h"

namespace weft {

Deadline::Deadline(double seconds, std::string message) {
  if (seconds == 0) return;
  seconds = std::min(seconds, kMaxTimeout);
  const SignalBlock block;  // the new thread inherits it for all its life
  thread_ = std::thread([this, seconds, message = std::move(message)] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return reached_; })) return;
    std::fprintf(stderr, "%s\n", message.c_str());
    std::_Exit(1);
  });
}

Deadline::~Deadline() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace weft
