// Idle workers take tasks from the policy's queue. All rates are constant between two events.
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

// The task that a worker runs.
struct SimulatedWorkers::Worker {
  std::optional<uint32_t> task;
  double left = 0;    // remaining seconds, if no other task uses the memory
  double memory = 0;  // fraction of the task's time in which it waits for memory

  double Stretch(double longer) const { return 1 + memory * (longer - 1); }
};

SimulatedWorkers::SimulatedWorkers(const Schedule* schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                                   const SimulatedMachine& machine)
    : schedule_(*schedule), costs_(costs), machine_(machine), counts_(schedule) {
  WEFT_CHECK(costs.size() == schedule->task_count && policy.queue != nullptr && machine.workers >= 1);
  queue_ = std::make_unique<Queue>(*schedule, policy, machine.workers);
  workers_.resize(static_cast<size_t>(machine.workers));
  done_ = counts_.Finish(schedule->start(), 0, queue_.get());
}

SimulatedWorkers::~SimulatedWorkers() = default;

// Returns the factor, at least 1, by which each running task's waiting for memory becomes longer. With this factor, all
// running tasks together use at most the machine's bandwidth.
double SimulatedWorkers::Waiting() const {
  double longer = 1;
  for (int round = 0; round < 50; ++round) {  // Newton's method: the demand is convex and falls with `longer`
    double wanted = 0, slope = 0;
    for (const Worker& worker : workers_) {
      if (!worker.task || worker.memory == 0) continue;
      const double stretch = worker.Stretch(longer), bytes = worker.memory * machine_.worker_bandwidth / stretch;
      wanted += bytes;
      slope += bytes * worker.memory / stretch;
    }
    if (wanted <= machine_.bandwidth * (1 + 1e-9)) break;
    longer += (wanted - machine_.bandwidth) / slope;
  }
  return longer;
}

void SimulatedWorkers::Begin() {
  running_ = false;
  for (size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (!worker.task && (worker.task = queue_->Pop(static_cast<int>(w)))) {
      const TaskCost& cost = costs_[*worker.task];
      worker.left = cost.seconds + machine_.task_seconds;
      worker.memory = std::min(1.0, cost.bytes / (machine_.worker_bandwidth * worker.left));
    }
    running_ = running_ || worker.task.has_value();
  }
  longer_ = Waiting();
}

double SimulatedWorkers::UntilNextEnd() const {
  double interval = std::numeric_limits<double>::infinity();
  for (const Worker& worker : workers_) {
    if (worker.task) interval = std::min(interval, worker.left * worker.Stretch(longer_));
  }
  return interval;
}

void SimulatedWorkers::Advance(double seconds) {
  for (size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (!worker.task) continue;
    busy_ += seconds;
    worker.left -= seconds / worker.Stretch(longer_);
    if (worker.left > 1e-12) continue;
    const uint32_t task = *worker.task;
    worker.task.reset();
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
