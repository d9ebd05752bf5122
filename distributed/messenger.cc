#include "weft/distributed/messenger.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weft/core/signal_block.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/rank_watch.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// While messages are pending and none ends, the thread first yields between polls, and then sleeps an eighth of the
// time that it has waited. So a wait gets at most an eighth longer. The maximum keeps data flowing: MPI moves the bytes
// of long messages only when it is polled.
constexpr auto kYieldTime = microseconds(50);
constexpr auto kMinSleep = microseconds(20);
constexpr auto kMaxSleep = microseconds(100);
// While all that is left is to wait for the goodbye of another rank.
constexpr auto kEndingSleep = microseconds(1000);
// By default Linux lets a sleep last 50 µs longer.
constexpr unsigned long kTimerSlackNanoseconds = 1000;

struct Message {
  absl::Span<const std::byte> sent;
  absl::Span<std::byte> received;
  bool sends;
  int peer, tag;
  Transport::Done done;
};

}  // namespace

struct Messenger::State {
  State(std::unique_ptr<Communicator> owned, const MessengerOptions& options)
      : communicator(std::move(owned)), watch(communicator.get(), options.timeout_seconds) {
    const SignalBlock block;  // the new thread inherits it for all its life
    thread = std::thread([this] { Run(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_one();
    thread.join();
  }

  void Add(const Message& message) {
    {
      const std::lock_guard lock(mutex);
      inbox.push_back(message);
    }
    changed.notify_one();
  }

  // Runs on the messenger's thread until the end.
  void Run() {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
    active = Clock::now();
    while (!TakeMessages() || !watch.finished()) {
      for (const Message& message : starting) Start(message);
      ended.clear();
      communicator->Progress(&ended);
      const Clock::time_point now = Clock::now();
      if (!starting.empty()) active = now;
      for (const Communicator::Request request : ended) {
        if (watch.Ended(request, now)) continue;
        active = now;
        End(request);
      }
      if (!watch.Tick(now, pending.empty() ? now : active)) return;
    }
  }

  // Moves the inbox to `starting`, after a pause that fits. Returns true if no message will follow.
  bool TakeMessages() {
    starting.clear();
    std::unique_lock lock(mutex);
    const bool ending = stopping && pending.empty() && inbox.empty();
    if (ending) watch.SayGoodbye();
    if (inbox.empty()) Pause(&lock, ending);
    starting.swap(inbox);
    return ending;
  }

  // Waits for a message in the inbox, but only until the next poll is due.
  void Pause(std::unique_lock<std::mutex>* lock, bool ending) {
    const auto has_message = [this] { return !inbox.empty(); };
    if (ending) {
      if (!watch.finished()) changed.wait_for(*lock, kEndingSleep);
      return;
    }
    if (pending.empty()) {
      const auto has_news = [this] { return !inbox.empty() || stopping; };
      if (watch.period() > Clock::duration::zero()) {
        changed.wait_for(*lock, watch.period(), has_news);
      } else {
        changed.wait(*lock, has_news);
      }
      return;
    }
    const Clock::duration waited = Clock::now() - active;
    if (waited < kYieldTime) {
      lock->unlock();
      std::this_thread::yield();
      lock->lock();
      return;
    }
    changed.wait_for(*lock, std::clamp<Clock::duration>(waited / 8, kMinSleep, kMaxSleep), has_message);
  }

  void Start(const Message& message) {
    const Communicator::Request request = message.sends
                                              ? communicator->Send(message.sent, message.peer, message.tag)
                                              : communicator->Receive(message.received, message.peer, message.tag);
    pending.emplace(request, message.done);
  }

  void End(Communicator::Request request) {
    const auto found = pending.find(request);
    const Done done = found->second;
    pending.erase(found);
    done.call(done.object, done.argument);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Message> inbox;  // guarded by mutex
  bool stopping = false;       // guarded by mutex

  // For the messenger's thread alone.
  const std::unique_ptr<Communicator> communicator;
  RankWatch watch;
  absl::flat_hash_map<Communicator::Request, Done> pending;
  std::vector<Message> starting;
  std::vector<Communicator::Request> ended;
  Clock::time_point active;  // when a message last started or ended

  std::thread thread;  // last, since it uses all of the above
};

Messenger::Messenger(std::unique_ptr<Communicator> communicator, const MessengerOptions& options)
    : state_(std::make_unique<State>(std::move(communicator), options)) {}

Messenger::~Messenger() = default;

int Messenger::rank() const { return state_->communicator->rank(); }
int Messenger::size() const { return state_->communicator->size(); }

void Messenger::Send(absl::Span<const std::byte> bytes, int to, int tag, Done done) {
  state_->Add({.sent = bytes, .sends = true, .peer = to, .tag = tag, .done = done});
}

void Messenger::Receive(absl::Span<std::byte> bytes, int from, int tag, Done done) {
  state_->Add({.received = bytes, .sends = false, .peer = from, .tag = tag, .done = done});
}

}  // namespace weft
