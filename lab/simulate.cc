// Simulates from event to event: all ranks share one simulated time, which advances to the next end of a task or
// message. A simulation without ranks is that of one rank.
//
// Idle workers take tasks from the policy's queue. Under a policy that shares tasks, workers that find none share those
// of others. A shared task ends for all of its workers at once. All rates are constant between two events.
#include "weft/lab/simulate.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/graph/run/queue_executor.h"

namespace weft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kIdle = std::numeric_limits<size_t>::max();

// The policy's queue. Messages are not in the queue: they start as soon as they are ready, and need no worker. Under a
// policy with an executor of its own (StealingExecutor), tasks that the end of a message made ready come first.
class Queue final : public ReadyQueue {
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
  // Returns the messages that became ready since the last call.
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
struct Running {
  std::optional<uint32_t> task;
  double left = 0;    // remaining seconds of one worker, if no other task uses the memory
  double memory = 0;  // fraction of a worker's time in which it waits for memory
  uint32_t sharers = 1;

  // Returns the factor on its time. `longer`, `slower`: those on waiting for memory and on computing.
  double Stretch(double longer, double slower) const { return memory * longer + (1 - memory) * slower; }
};

// The workers of one rank.
class Workers {
 public:
  Workers(const SimulatedRank& rank, const Policy& policy, const SimulatedMachine& machine)
      : schedule_(*rank.schedule),
        costs_(rank.costs),
        machine_(machine),
        queue_(schedule_, policy, machine.workers),
        counts_(rank.schedule),
        before_(schedule_.size()),
        ran_(schedule_.size(), kIdle),
        asleep_(machine.wake_seconds),
        began_(static_cast<size_t>(machine.workers)),
        runs_(began_.size(), kIdle),
        shares_(policy.shares && !schedule_.parts.empty()),
        done_(counts_.Finish(schedule_.start(), 0, &queue_)) {
    for (uint32_t task = 0; task < schedule_.size() && machine.moved_byte_seconds > 0; ++task) {
      schedule_.ForEachSuccessor(task, [&](uint32_t next) { before_[next].push_back(task); });
    }
  }

  bool done() const { return done_; }        // whether all tasks have ended
  bool running() const { return running_; }  // whether any worker runs a task
  double busy() const { return busy_; }      // sum of the times that workers spent on tasks, in seconds
  double seconds(uint32_t task) const { return costs_[task].seconds; }
  std::vector<uint32_t> TakeMessages() { return queue_.TakeMessages(); }

  // Gives ready tasks to idle workers.
  void Begin() {
    running_ = false;
    for (size_t w = 0; w < began_.size(); ++w) {
      Running& own = began_[w];
      if (runs_[w] == kIdle && (w == 0 || asleep_ <= 0) && (own.task = queue_.Pop(static_cast<int>(w)))) {
        const TaskCost& cost = costs_[*own.task];
        runs_[w] = w;
        own.left =
            cost.seconds + machine_.task_seconds + machine_.moved_byte_seconds * cost.cached * ByOthers(*own.task, w);
        own.memory = std::min(1.0, cost.bytes / (machine_.worker_bandwidth * own.left));
        own.sharers = 1;
      }
      running_ = running_ || own.task.has_value();
    }
    for (size_t w = 0; shares_ && asleep_ <= 0 && w < runs_.size(); ++w) {
      if (runs_[w] == kIdle) runs_[w] = Share();
    }
    const size_t busy = static_cast<size_t>(absl::c_count_if(runs_, [](size_t run) { return run != kIdle; }));
    const std::vector<double>& slowdowns = machine_.slowdowns;
    slower_ = slowdowns.empty() || busy == 0 ? 1 : slowdowns[std::min(busy, slowdowns.size()) - 1];
    longer_ = Waiting();
  }

  // Returns the seconds until the first running task ends or workers wake up, or kNever if no task runs.
  double UntilNextEnd() const {
    double interval = asleep_ > 0 && running_ ? asleep_ : kNever;
    for (const Running& each : began_) {
      if (each.task) interval = std::min(interval, each.left * each.Stretch(longer_, slower_) / each.sharers);
    }
    return interval;
  }

  // Advances time. `seconds`: at most UntilNextEnd().
  void Advance(double seconds) {
    asleep_ -= seconds;
    for (size_t w = 0; w < began_.size(); ++w) {
      Running& each = began_[w];
      if (!each.task) continue;
      busy_ += seconds * each.sharers;
      each.left -= seconds * each.sharers / each.Stretch(longer_, slower_);
      if (each.left > 1e-12) continue;
      const uint32_t task = *each.task;
      each.task.reset();
      std::replace(runs_.begin(), runs_.end(), w, kIdle);
      Finish(task, static_cast<int>(w));
    }
  }

  // `task`: one of Schedule::ends_later.
  void EndMessage(uint32_t task) {
    queue_.SetMessageEnds(true);
    ran_[task] = began_.size();  // no worker: the network wrote
    Finish(task, 0);
    queue_.SetMessageEnds(false);
  }

 private:
  // Returns the share of a task's predecessors that workers other than `worker` ran. Those of a join count for it.
  double ByOthers(uint32_t task, size_t worker) const {
    double others = 0;
    for (const uint32_t before : before_[task]) {
      others += ran_[before] == kIdle ? ByOthers(before, worker) : ran_[before] != worker;
    }
    return before_[task].empty() ? 0 : others / static_cast<double>(before_[task].size());
  }

  void Finish(uint32_t task, int worker) {
    if (costs_[task].seconds > 0 && !schedule_.EndsLater(task)) ran_[task] = static_cast<size_t>(worker);
    queue_.Finish(task, costs_[task].seconds);
    done_ |= counts_.Finish(task, worker, &queue_);
  }

  // Returns the factor, at least 1, by which each running task's waiting for memory becomes longer. With this factor,
  // all running tasks together use at most the machine's bandwidth.
  double Waiting() const {
    double longer = 1;
    for (int round = 0; round < 50; ++round) {  // Newton's method: the demand is convex and falls with `longer`
      double wanted = 0, slope = 0;
      for (const Running& each : began_) {
        if (!each.task || each.memory == 0) continue;
        const double stretch = each.Stretch(longer, slower_);
        const double bytes = each.sharers * each.memory * machine_.worker_bandwidth / stretch;
        wanted += bytes;
        slope += bytes * each.memory / stretch;
      }
      if (wanted <= machine_.bandwidth * (1 + 1e-9)) break;
      longer += (wanted - machine_.bandwidth) / slope;
    }
    return longer;
  }

  // Lets another worker share the task that would end last, and returns the worker that began it, or kIdle.
  size_t Share() {
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

  const Schedule& schedule_;
  const absl::Span<const TaskCost> costs_;
  const SimulatedMachine& machine_;
  Queue queue_;
  ReadyCounts counts_;
  std::vector<std::vector<uint32_t>> before_;  // by task: its predecessors
  std::vector<size_t> ran_;                    // by task: the worker that ran it; kIdle: none has, or it is a join
  double asleep_;                              // seconds until workers other than the first one take tasks
  std::vector<Running> began_;                 // by worker: the task that it began
  std::vector<size_t> runs_;                   // by worker: the worker that began the task that it runs, or kIdle
  const bool shares_;                          // whether idle workers share tasks
  double longer_ = 1, slower_ = 1;             // factors of Stretch, for the tasks that run
  double busy_ = 0;
  bool done_, running_ = false;
};

using Key = std::tuple<int, int, int>;  // of a message: sender, receiver, tag

struct Rank {
  Rank(const SimulatedRank& rank, const Policy& policy, const SimulatedMachine& machine)
      : workers(rank, policy, machine) {}

  Workers workers;
  std::map<uint32_t, Key> messages;  // by task
  int under_way = 0;                 // messages that have begun and not ended
  double end = 0, communication = 0, hidden = 0;
};

// One side of a message: a task of a simulated rank.
struct Side {
  Rank* rank = nullptr;  // null: the rank is not simulated
  uint32_t task = 0;
  bool begun = false;
};
struct Transfer {
  Side send, receive;
  double bytes = 0;
  bool started = false;
};

// The end of one side of a message.
struct Ending {
  double time = 0;
  Side side;
  bool operator>(const Ending& other) const { return time > other.time; }
};

class Simulator {
 public:
  Simulator(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
            const SimulatedMachine& machine)
      : network_(network), workers_(static_cast<double>(ranks.size()) * machine.workers) {
    for (const SimulatedRank& from : ranks) {
      WEFT_CHECK(from.costs.size() == from.schedule->task_count && policy.queue != nullptr && machine.workers >= 1);
      Rank& rank = ranks_.emplace_back(from, policy, machine);
      for (const RankMessage& message : from.messages) {
        const Key key =
            message.sends ? Key{from.rank, message.peer, message.tag} : Key{message.peer, from.rank, message.tag};
        rank.messages[message.task] = key;
        Transfer& transfer = transfers_[key];
        (message.sends ? transfer.send : transfer.receive) = {&rank, message.task};
        transfer.bytes = message.bytes;
      }
    }
  }

  Simulation Run() {
    double now = 0;
    while (absl::c_any_of(ranks_, [](const Rank& rank) { return !rank.workers.done(); })) {
      for (Rank& rank : ranks_) BeginTasks(&rank, now);
      double interval = endings_.empty() ? kNever : std::max(0.0, endings_.top().time - now);
      for (const Rank& rank : ranks_) interval = std::min(interval, rank.workers.UntilNextEnd());
      if (interval == kNever) {
        StartWaiting(now);
        continue;
      }
      now += interval;
      for (Rank& rank : ranks_) Advance(&rank, interval, now);
      for (; !endings_.empty() && endings_.top().time <= now; endings_.pop()) {
        const Side& side = endings_.top().side;
        side.rank->workers.EndMessage(side.task);
        --side.rank->under_way;
        side.rank->end = now;
      }
    }
    const Rank& last = *absl::c_max_element(ranks_, [](const Rank& a, const Rank& b) { return a.end < b.end; });
    Simulation result = {.makespan = now, .communication = last.communication, .hidden = last.hidden};
    for (const Rank& rank : ranks_) result.busy += rank.workers.busy();
    if (now > 0) result.utilization = result.busy / (workers_ * now);
    return result;
  }

 private:
  void BeginTasks(Rank* rank, double now) {
    for (const uint32_t task : rank->workers.TakeMessages()) {
      ++rank->under_way;
      const auto message = rank->messages.find(task);
      if (message == rank->messages.end()) {
        endings_.push({now + rank->workers.seconds(task), {rank, task}});
        continue;
      }
      const Key key = message->second;
      Transfer& transfer = transfers_.at(key);
      const bool sends = transfer.send.rank == rank && transfer.send.task == task;
      (sends ? transfer.send : transfer.receive).begun = true;
      StartIfReady(key, now);
      const auto& [from, to, tag] = key;
      StartIfReady({to, from, tag}, now);  // the message back may have waited for this one
    }
    rank->workers.Begin();
  }

  static void Advance(Rank* rank, double interval, double now) {
    if (rank->under_way > 0) rank->communication += interval;
    if (rank->under_way > 0 && rank->workers.running()) rank->hidden += interval;
    if (rank->workers.running()) rank->end = now;
    rank->workers.Advance(interval);
  }

  // Reports whether both sides of a message have begun. If only the receive is simulated, the send counts as begun when
  // the message back has begun.
  bool IsReady(const Key& key, const Transfer& transfer) const {
    if (transfer.receive.rank != nullptr && !transfer.receive.begun) return false;
    if (transfer.send.rank != nullptr) return transfer.send.begun;
    const auto& [from, to, tag] = key;
    const auto back = transfers_.find({to, from, tag});
    return back == transfers_.end() || back->second.send.rank == nullptr || back->second.send.begun;
  }

  void StartIfReady(const Key& key, double now) {
    const auto transfer = transfers_.find(key);
    if (transfer == transfers_.end() || transfer->second.started || !IsReady(key, transfer->second)) return;
    Start(key, &transfer->second, now);
  }

  void Start(const Key& key, Transfer* transfer, double now) {
    const auto& [from, to, tag] = key;
    // The links of a rank that is not simulated are busy with messages of other mirror images, not with this one.
    const double seconds = network_.LinkSeconds(transfer->bytes, from, to);
    double departed = now + seconds, arrived = departed;
    if (transfer->send.rank != nullptr) {
      double& free = outgoing_free_[from];
      free = arrived = departed = std::max(now, free) + seconds;
    }
    if (transfer->receive.rank != nullptr) {
      double& free = incoming_free_[to];
      free = arrived = std::max(arrived, free + seconds);
    }
    transfer->started = true;
    if (transfer->send.rank != nullptr) endings_.push({departed, transfer->send});
    if (transfer->receive.rank != nullptr) endings_.push({arrived + network_.latency_seconds, transfer->receive});
  }

  // Starts a receive that would otherwise wait forever: the other rank sends earlier than its mirror image.
  void StartWaiting(double now) {
    for (auto& [key, transfer] : transfers_) {
      if (transfer.started || transfer.send.rank != nullptr || !transfer.receive.begun) continue;
      return Start(key, &transfer, now);
    }
    WEFT_CHECK(false && "the policy holds back every ready task, or the ranks wait for each other in a circle");
  }

  const Network& network_;
  const double workers_;  // of all ranks
  std::deque<Rank> ranks_;
  std::map<Key, Transfer> transfers_;
  std::map<int, double> outgoing_free_, incoming_free_;  // by rank: when the link is free
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
};

}  // namespace

std::vector<double> SecondsOf(absl::Span<const TaskCost> costs) {
  std::vector<double> seconds;
  for (const TaskCost& cost : costs) seconds.push_back(cost.seconds);
  return seconds;
}

Simulation SimulateRanks(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
                         const SimulatedMachine& machine) {
  return Simulator(ranks, network, policy, machine).Run();
}

Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine) {
  const SimulatedRank rank = {.schedule = &schedule, .costs = {costs.begin(), costs.end()}};
  return SimulateRanks({rank}, Network(), policy, machine);
}

}  // namespace weft
