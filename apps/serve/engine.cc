#include "weft/apps/serve/engine.h"

#include "absl/strings/str_cat.h"

namespace weft {

void Answer::Add(Event event) {
  const std::lock_guard lock(mutex_);
  open_ -= event.end.has_value() ? 1 : 0;
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void Answer::Fail(absl::Status status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  changed_.notify_all();
}

absl::StatusOr<bool> Answer::Take(absl::Duration timeout, std::vector<Event>* events) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                    [this] { return !events_.empty() || open_ == 0 || !status_.ok(); });
  if (!status_.ok()) return status_;
  for (Event& event : events_) events->push_back(std::move(event));
  events_.clear();
  return open_ > 0;
}

Engine::Engine(const std::vector<std::unique_ptr<ServedModel>>& models, int64_t queue)
    : models_(models), max_waiting_(static_cast<size_t>(queue)), thread_([this] { Loop(); }) {}

void Engine::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    wakes_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status Engine::Queue(size_t count, Functions* functions, std::function<void()> run) {
  const std::lock_guard lock(mutex_);
  if (stops_) return absl::UnavailableError(kStopping);
  if (count > max_waiting_) {
    return InvalidArgument("the request has ", count, " texts, wanted at most ", max_waiting_);
  }
  const size_t waiting = queued_ + counts_.waiting;
  if (waiting + count > max_waiting_) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue is full: ", waiting, " texts wait, and at most ",
                                                     max_waiting_, " may; try again later"));
  }
  queued_ += count;
  functions->push_back(std::move(run));
  wakes_.notify_all();
  return absl::OkStatus();
}

absl::Status Engine::Continue(ServedModel* model, std::vector<ContinuationRequest> texts,
                              std::shared_ptr<Answer> answer) {
  const size_t count = texts.size();
  const auto shared = std::make_shared<std::vector<ContinuationRequest>>(std::move(texts));
  return Queue(count, &adds_, [this, model, shared, answer] {
    added_ += shared->size();
    for (size_t i = 0; i < shared->size(); ++i) Add(model, std::move((*shared)[i]), i, answer);
  });
}

void Engine::Add(ServedModel* model, ContinuationRequest request, size_t index, const std::shared_ptr<Answer>& answer) {
  const auto number = std::make_shared<size_t>(0);
  const size_t prompt = request.prompt.size();
  request.sink = [this, index, answer](const GeneratedToken& token) {
    ++counts_.tokens;
    Answer::Event event = {token};
    event.prompt = index;
    answer->Add(std::move(event));
    return !answer->cancelled();
  };
  request.ended = [this, model, number, index, answer](TextEnd end, std::string rest) {
    answer->Add({{.prompt = index, .text = std::move(rest)}, end});
    answers_.erase({model, *number});
  };
  const absl::StatusOr<size_t> added = model->generator->Add(std::move(request));
  if (!added.ok()) return answer->Fail(added.status());
  *number = *added;
  counts_.prompt_tokens += static_cast<int64_t>(prompt);
  answers_[{model, *added}] = answer;
}

bool Engine::StepAll() {
  bool more = false;
  size_t running = 0, waiting = 0, pages = 0, used = 0;
  for (const auto& model : models_) {
    if (model->generator == nullptr) continue;
    Generator& generator = *model->generator->generator();
    const absl::StatusOr<bool> stepped = generator.Step();
    if (!stepped.ok()) {
      std::erase_if(answers_, [&](const auto& text) {
        if (text.first.first == model.get()) text.second->Fail(stepped.status());
        return text.first.first == model.get();
      });
    }
    more = more || (stepped.ok() && *stepped);
    running += generator.live();
    waiting += generator.waiting();
    pages += generator.pages();
    used += generator.used_pages();
  }
  counts_.running = running;
  counts_.pages = pages;
  counts_.used_pages = used;
  const std::lock_guard lock(mutex_);
  counts_.waiting = waiting;
  queued_ -= std::exchange(added_, 0);
  return more;
}

void Engine::Loop() {
  bool more = false;
  while (true) {
    Functions functions;
    {
      std::unique_lock lock(mutex_);
      wakes_.wait(lock, [&] { return more || stops_ || !adds_.empty() || !jobs_.empty(); });
      functions.swap(adds_);
      if (!jobs_.empty()) {
        functions.push_back(std::move(jobs_.front()));
        jobs_.pop_front();
        --queued_;
      }
      if (stops_ && functions.empty()) break;
    }
    for (const std::function<void()>& function : functions) function();
    std::erase_if(answers_, [](const auto& text) {
      const bool cancelled = text.second->cancelled();
      if (cancelled) text.first.first->generator->generator()->Remove(text.first.second);
      return cancelled;
    });
    more = StepAll();
  }
  for (const auto& [text, answer] : answers_) answer->Fail(absl::UnavailableError(kStopping));
}

}  // namespace weft
