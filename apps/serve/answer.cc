#include "weft/apps/serve/answer.h"

#include <utility>

namespace weft {

void Answer::Add(Event event) {
  const absl::MutexLock lock(&mutex_);
  open_ -= event.end.has_value() ? 1 : 0;
  events_.push_back(std::move(event));
}

void Answer::Fail(absl::Status status) {
  const absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
}

absl::StatusOr<bool> Answer::Take(absl::Duration timeout, std::vector<Event>* events) {
  const absl::MutexLock lock(&mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !events_.empty() || open_ == 0 || !status_.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), timeout);
  if (!status_.ok()) return status_;
  for (Event& event : events_) events->push_back(std::move(event));
  events_.clear();
  return open_ > 0;
}

}  // namespace weft
