// An Answer carries texts, token by token, from the thread that generates them to the thread of a connection.
#ifndef WEFT_APPS_SERVE_ANSWER_H_
#define WEFT_APPS_SERVE_ANSWER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "weft/inference/generate/generate.h"

namespace weft {

class Answer {
 public:
  // A token of one of the texts, or its end with the rest of its text.
  struct Event {
    size_t choice = 0;  // the index of the text
    std::string text;
    int32_t token = -1;
    std::vector<TokenLogprob> logprobs = {};
    std::optional<TextEnd> end = std::nullopt;
  };

  explicit Answer(size_t choices) : open_(choices) {}

  // The following are called by the thread that generates.
  void Add(Event event);
  void Fail(absl::Status status);  // ends all texts
  bool cancelled() const { return cancelled_; }

  // The following are called by the connection's thread. Take waits for events, at most `timeout`, and appends them to
  // `events`. Returns false once all texts have ended and all events are taken. Returns the status of Fail.
  absl::StatusOr<bool> Take(absl::Duration timeout, std::vector<Event>* events);
  void Cancel() { cancelled_ = true; }  // nobody waits for the answer any more

 private:
  std::atomic<bool> cancelled_ = false;
  absl::Mutex mutex_;
  size_t open_ ABSL_GUARDED_BY(mutex_);  // number of texts that have not ended
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_ANSWER_H_
