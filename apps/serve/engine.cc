#include "weft/apps/serve/engine.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "weft/base/status.h"

namespace weft {

Engine::Engine(std::vector<ServedModel*> models, const Options& options)
    : models_(std::move(models)), options_(options), thread_([this] { Loop(); }) {}

void Engine::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status Engine::Queue(size_t texts, std::function<void()> job) {
  const absl::MutexLock lock(&mutex_);
  if (stops_) return absl::UnavailableError("the server is shutting down");
  if (texts > options_.queue)
    return InvalidArgument("the request has ", texts, " texts, wanted at most ", options_.queue);
  const size_t waiting = queued_ + counts_.waiting;
  if (waiting + texts > options_.queue) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue is full: ", waiting, " texts wait, and at most ",
                                                     options_.queue, " may; try again later"));
  }
  queued_ += texts;
  jobs_.push_back([this, texts, job = std::move(job)] {
    job();
    const absl::MutexLock lock(&mutex_);
    queued_ -= texts;
  });
  return absl::OkStatus();
}

absl::Status Engine::Continue(ServedModel* model, std::vector<ContinuationRequest> texts,
                              std::shared_ptr<Answer> answer) {
  const size_t count = texts.size();
  const auto shared = std::make_shared<std::vector<ContinuationRequest>>(std::move(texts));
  return Queue(count, [this, model, shared, answer] {
    for (size_t i = 0; i < shared->size(); ++i) Add(model, std::move((*shared)[i]), i, answer);
    counts_.waiting = counts_.waiting + shared->size();
  });
}

absl::Status Engine::Run(const std::function<void()>& job) {
  absl::Notification done;
  WEFT_RETURN_IF_ERROR(Queue(1, [&] {
    job();
    done.Notify();
  }));
  done.WaitForNotification();
  return absl::OkStatus();
}

void Engine::Add(ServedModel* model, ContinuationRequest request, size_t choice,
                 const std::shared_ptr<Answer>& answer) {
  const auto number = std::make_shared<size_t>(0);
  const size_t prompt = request.prompt.size();
  request.sink = [this, choice, answer](const GeneratedToken& token) {
    ++counts_.tokens;
    answer->Add({choice, token.text, token.token, token.logprobs});
    return !answer->cancelled();
  };
  request.ended = [this, model, number, choice, answer](TextEnd end, std::string rest) {
    answer->Add({.choice = choice, .text = std::move(rest), .end = end});
    texts_.erase({model, *number});
  };
  const absl::StatusOr<size_t> added = model->generator->Add(std::move(request));
  if (!added.ok()) return answer->Fail(added.status());
  *number = *added;
  counts_.prompt_tokens += static_cast<int64_t>(prompt);
  texts_[{model, *added}] = {model, answer};
}

void Engine::RemoveCancelled() {
  for (auto text = texts_.begin(); text != texts_.end();) {
    if (!text->second.answer->cancelled()) {
      ++text;
      continue;
    }
    text->first.first->generator->generator()->Remove(text->first.second);
    text = texts_.erase(text);
  }
}

bool Engine::StepAll() {
  bool left = false;
  size_t running = 0, waiting = 0, pages = 0, used = 0;
  for (ServedModel* const model : models_) {
    if (model->generator == nullptr) continue;
    Generator& generator = *model->generator->generator();
    const absl::StatusOr<bool> more = generator.Step();
    if (!more.ok()) {
      for (auto text = texts_.begin(); text != texts_.end();) {
        if (text->first.first == model) {
          text->second.answer->Fail(more.status());
          text = texts_.erase(text);
        } else {
          ++text;
        }
      }
    }
    left = left || (more.ok() && *more);
    running += generator.live();
    waiting += generator.waiting();
    pages += generator.pages();
    used += generator.used_pages();
  }
  counts_.running = running;
  counts_.waiting = waiting;
  counts_.pages = pages;
  counts_.used_pages = used;
  return left;
}

void Engine::Loop() {
  bool left = false;
  while (true) {
    std::deque<std::function<void()>> jobs;
    {
      const absl::MutexLock lock(&mutex_);
      const auto wakes = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left || stops_ || !jobs_.empty(); };
      mutex_.Await(absl::Condition(&wakes));
      jobs.swap(jobs_);
      if (stops_ && jobs.empty()) break;
    }
    for (const std::function<void()>& job : jobs) job();
    RemoveCancelled();
    left = StepAll();
  }
  for (const auto& [number, text] : texts_) text.answer->Fail(absl::UnavailableError("the server is shutting down"));
}

}  // namespace weft
