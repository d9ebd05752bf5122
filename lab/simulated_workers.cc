// Idle workers take tasks from the policy's queue. Under a policy that shares tasks, workers that find none share those
// of others. A shared task ends for all of its workers at once. All rates are constant between two events.
#include "weft/lab/simulated_workers.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "weft/core/status.h"

namespace weft {

// The policy's queue. Messages are not in the queue: they start as soon as they are ready, and need no worker. Under a
// policy with an executor of its own (StealingExecutor), tasks that the end of a message made ready come first.
class SimulatedWorkers::Queue final : public ReadyQueue {
 public:
  Queue(const Schedule& schedule, const Policy& policy, int workers)
      : schedule_(schedule), queue_(policy.queue(&schedule, workers)), prefers_ended_(policy.executor != nullptr) {}

  void Push(uint32_t task, int worker) override {
    if (schedule_.EndsLater(task)) return messages_.push_back(task);
    if (message_ends_ && prefers_ended_) return ended_.push_back(task);
    queue_->Push(task, worker);
  }
  std::optional<uint32_t> Pop(int worker) override {
    if (ended_.empty()) return queue_->Pop(worker);
    const uint32_t task = ended_.front();
    ended_.pop_front();
    return task;
  }
  void Finish(uint32_t task, double seconds) override { queue_->Finish(task, seconds); }
  // Sets whether the end of a message makes the following tasks ready.
  void SetMessageEnds(bool message_ends) { message_ends_ = message_ends; }
  std::vector<uint32_t> TakeMessages() { return std::exchange(messages_, {}); }

 private:
  const Schedule& schedule_;
  const std::unique_ptr<ReadyQueue> queue_;
  const bool prefers_ended_;
  bool message_ends_ = false;
  std::deque<uint32_t> ended_;
  std::vector<uint32_t> messages_;
};

// A task that a worker began, which other workers may share.
struct SimulatedWorkers::Running {
  std::optional<uint32_t> task;
  double left = 0;    // remaining seconds of one worker, if no other task uses the memory
  double memory = 0;  // fraction of a worker's time in which it waits for memory
  uint32_t sharers = 1;

  double Stretch(double longer) const { return 1 + memory * (longer - 1); }
};

SimulatedWorkers::SimulatedWorkers(const Schedule* schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                                   const SimulatedMachine& machine)
    : schedule_(*schedule), costs_(costs), machine_(machine), counts_(schedule) {
  WEFT_CHECK(costs.size() == schedule->task_count && policy.queue != nullptr && machine.workers >= 1);
  queue_ = std::make_unique<Queue>(*schedule, policy, machine.workers);
  began_.resize(static_cast<size_t>(machine.workers));
  runs_.resize(began_.size(), kIdle);
  shares_ = policy.shares && !schedule->parts.empty();
  done_ = counts_.Finish(schedule->start(), 0, queue_.get());
}

SimulatedWorkers::~SimulatedWorkers() = default;

// Returns the factor, at least 1, by which each running task's waiting for memory becomes longer. With this factor, all
// running tasks together use at most the machine's bandwidth.
double SimulatedWorkers::Waiting() const {
  double longer = 1;
  for (int round = 0; round < 50; ++round) {  // Newton's method: the demand is convex and falls with `longer`
    double wanted = 0, slope = 0;
    for (const Running& each : began_) {
      if (!each.task || each.memory == 0) continue;
      const double stretch = each.Stretch(longer);
      const double bytes = each.sharers * each.memory * machine_.worker_bandwidth / stretch;
      wanted += bytes;
      slope += bytes * each.memory / stretch;
    }
    if (wanted <= machine_.bandwidth * (1 + 1e-9)) break;
    longer += (wanted - machine_.bandwidth) / slope;
  }
  return longer;
}

void SimulatedWorkers::Begin() {
  running_ = false;
  for (size_t w = 0; w < began_.size(); ++w) {
    Running& own = began_[w];
    if (runs_[w] == kIdle && (own.task = queue_->Pop(static_cast<int>(w)))) {
      const TaskCost& cost = costs_[*own.task];
      runs_[w] = w;
      own.left = cost.seconds + machine_.task_seconds;
      own.memory = std::min(1.0, cost.bytes / (machine_.worker_bandwidth * own.left));
      own.sharers = 1;
    }
    running_ = running_ || own.task.has_value();
  }
  for (size_t w = 0; shares_ && w < runs_.size(); ++w) {
    if (runs_[w] == kIdle) runs_[w] = Share();
  }
  longer_ = Waiting();
}

// Lets another worker share the task that would end last, and returns the worker that began it, or kIdle.
size_t SimulatedWorkers::Share() {
  size_t last = kIdle;
  for (size_t w = 0; w < began_.size(); ++w) {
    const Running& each = began_[w];
    if (!each.task || each.sharers >= schedule_.SharersOf(*each.task, machine_.workers)) continue;
    const double part = costs_[*each.task].seconds / schedule_.PartsOf(*each.task);
    // Each of the task's workers needs at least one part of what is left. The factor allows for rounding.
    if (each.left < (each.sharers + 1) * part * (1 - 1e-9)) continue;
    if (last == kIdle || each.left * began_[last].sharers > began_[last].left * each.sharers) last = w;
  }
  if (last != kIdle) ++began_[last].sharers;
  return last;
}

double SimulatedWorkers::UntilNextEnd() const {
  double interval = std::numeric_limits<double>::infinity();
  for (const Running& each : began_) {
    if (each.task) interval = std::min(interval, each.left * each.Stretch(longer_) / each.sharers);
  }
  return interval;
}

void SimulatedWorkers::Advance(double seconds) {
  for (size_t w = 0; w < began_.size(); ++w) {
    Running& each = began_[w];
    if (!each.task) continue;
    busy_ += seconds * each.sharers;
    each.left -= seconds * each.sharers / each.Stretch(longer_);
    if (each.left > 1e-12) continue;
    const uint32_t task = *each.task;
    each.task.reset();
    std::replace(runs_.begin(), runs_.end(), w, kIdle);
    queue_->Finish(task, costs_[task].seconds);
    done_ |= counts_.Finish(task, static_cast<int>(w), queue_.get());
  }
}

void SimulatedWorkers::EndMessage(uint32_t task) {
  queue_->Finish(task, costs_[task].seconds);
  queue_->SetMessageEnds(true);
  done_ |= counts_.Finish(task, 0, queue_.get());
  queue_->SetMessageEnds(false);
}

std::vector<uint32_t> SimulatedWorkers::TakeMessages() { return queue_->TakeMessages(); }

}  // namespace weft
