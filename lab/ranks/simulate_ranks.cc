// All ranks share one simulated time, which advances to the next end of a task or message.
#include "weft/lab/ranks/simulate_ranks.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "weft/core/status.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

using Key = std::tuple<int, int, int>;  // of a message: sender, receiver, tag

// One side of a message: a task of a simulated rank.
struct Side {
  size_t rank = 0;  // index in the list of simulated ranks
  uint32_t task = 0;
  bool exists = false, begun = false;
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

struct Rank {
  std::unique_ptr<SimulatedWorkers> workers;
  std::map<uint32_t, Key> messages;  // by task
  int under_way = 0;                 // messages that have begun and not ended
  double end = 0, communication = 0, hidden = 0;
};

class Simulator {
 public:
  Simulator(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
            const SimulatedMachine& machine)
      : network_(network) {
    for (const SimulatedRank& from : ranks) {
      Rank& rank = ranks_.emplace_back();
      rank.workers = std::make_unique<SimulatedWorkers>(from.schedule, from.costs, policy, machine);
      for (const RankMessage& message : from.messages) {
        const Key key =
            message.sends ? Key{from.rank, message.peer, message.tag} : Key{message.peer, from.rank, message.tag};
        rank.messages[message.task] = key;
        Transfer& transfer = transfers_[key];
        (message.sends ? transfer.send : transfer.receive) = {ranks_.size() - 1, message.task, /*exists=*/true};
        transfer.bytes = message.bytes;
      }
    }
  }

  RanksSimulation Run() {
    double now = 0;
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.workers->done(); })) {
      for (Rank& rank : ranks_) BeginTasks(&rank, now);
      double interval = endings_.empty() ? kNever : std::max(0.0, endings_.top().time - now);
      for (const Rank& rank : ranks_) interval = std::min(interval, rank.workers->UntilNextEnd());
      if (interval == kNever) {
        StartWaiting(now);
        continue;
      }
      now += interval;
      for (Rank& rank : ranks_) Advance(&rank, interval, now);
      for (; !endings_.empty() && endings_.top().time <= now; endings_.pop()) {
        Rank& rank = ranks_[endings_.top().side.rank];
        rank.workers->EndMessage(endings_.top().side.task);
        --rank.under_way;
        rank.end = now;
      }
    }
    const Rank& last =
        *std::max_element(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) { return a.end < b.end; });
    return {.makespan = now, .communication = last.communication, .hidden = last.hidden};
  }

 private:
  void BeginTasks(Rank* rank, double now) {
    for (const uint32_t task : rank->workers->TakeMessages()) {
      const auto message = rank->messages.find(task);
      WEFT_CHECK(message != rank->messages.end());
      const Key key = message->second;
      Transfer& transfer = transfers_.at(key);
      const size_t index = static_cast<size_t>(rank - ranks_.data());
      Side& side = transfer.send.exists && transfer.send.rank == index && transfer.send.task == task ? transfer.send
                                                                                                     : transfer.receive;
      side.begun = true;
      ++rank->under_way;
      StartIfReady(key, now);
      const auto& [from, to, tag] = key;
      StartIfReady({to, from, tag}, now);  // the message back may have waited for this one
    }
    rank->workers->Begin();
  }

  static void Advance(Rank* rank, double interval, double now) {
    if (rank->under_way > 0) rank->communication += interval;
    if (rank->under_way > 0 && rank->workers->running()) rank->hidden += interval;
    if (rank->workers->running()) rank->end = now;
    rank->workers->Advance(interval);
  }

  // Reports whether both sides of a message have begun. If only the receive is simulated, the send counts as begun when
  // the message back has begun.
  bool IsReady(const Key& key, const Transfer& transfer) const {
    if (transfer.send.exists && !transfer.send.begun) return false;
    if (transfer.receive.exists && !transfer.receive.begun) return false;
    if (transfer.send.exists) return true;
    const auto& [from, to, tag] = key;
    const auto back = transfers_.find({to, from, tag});
    return back == transfers_.end() || !back->second.send.exists || back->second.send.begun;
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
    if (transfer->send.exists) {
      double& free = outgoing_free_[from];
      free = arrived = departed = std::max(now, free) + seconds;
    }
    if (transfer->receive.exists) {
      double& free = incoming_free_[to];
      free = arrived = std::max(arrived, free + seconds);
    }
    transfer->started = true;
    if (transfer->send.exists) endings_.push({departed, transfer->send});
    if (transfer->receive.exists) endings_.push({arrived + network_.latency_seconds, transfer->receive});
  }

  // Starts a receive that would otherwise wait forever: the other rank sends earlier than its mirror image.
  void StartWaiting(double now) {
    for (auto& [key, transfer] : transfers_) {
      if (transfer.started || transfer.send.exists || !transfer.receive.begun) continue;
      return Start(key, &transfer, now);
    }
    WEFT_CHECK(false && "the simulated ranks wait for each other in a circle");
  }

  const Network& network_;
  std::vector<Rank> ranks_;
  std::map<Key, Transfer> transfers_;
  std::map<int, double> outgoing_free_, incoming_free_;  // by rank: when the link is free
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
};

}  // namespace

std::vector<RankMessage> MessagesOf(const CompiledGraph& graph) {
  std::vector<RankMessage> messages;
  for (const KernelCall& call : graph.calls) {
    if (call.messages.empty()) continue;
    WEFT_CHECK(call.messages.size() == 1);
    messages.push_back({.task = graph.groups[call.group].first_task,
                        .sends = call.messages[0].sends,
                        .peer = call.messages[0].peer,
                        .tag = call.messages[0].tag,
                        .bytes = static_cast<double>(MessageBytes(graph, call))});
  }
  return messages;
}

RanksSimulation SimulateRanks(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
                              const SimulatedMachine& machine) {
  return Simulator(ranks, network, policy, machine).Run();
}

}  // namespace weft
