#include "weft/distributed/messenger.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/base/signal_block.h"
#include "weft/distributed/rank_watch.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// If no message starts or ends, the thread first polls without pauses. Then it sleeps for 1/8 of the time since the
// last event, so a wait becomes at most 1/8 longer. It does not yield between polls: beside busy threads, a yield takes
// milliseconds. With yields, long messages took ten times longer in bench/messenger_bench.cc with --busy=2. Two
// messengers with pending messages use 4% of a core.
constexpr auto kSpinTime = microseconds(20);
constexpr auto kMinSleep = microseconds(20);
constexpr auto kMaxSleep = microseconds(500);  // while messages are pending
// MPI must be polled even if no message is pending. A short send ends when its bytes are in a buffer, and only polls
// move them from there.
constexpr auto kMaxIdleSleep = microseconds(50000);
// A poll that takes longer than this has moved bytes of a long message, and more bytes will follow soon.
constexpr auto kMinBusyPoll = microseconds(20);
// By default, Linux may lengthen a sleep by 50 µs.
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
  State(std::unique_ptr<Communicator> owned, double timeout_seconds)
      : communicator(std::move(owned)), watch(communicator.get(), timeout_seconds) {
    const SignalBlock block;  // the new thread inherits it for all its life
    communicator->SetWake([this] {
      const std::lock_guard lock(mutex);
      woken = true;
      changed.notify_one();
    });
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
    // Notifies under the mutex: once the mutex is free, the message may end, and another thread may destroy the
    // messenger.
    const std::lock_guard lock(mutex);
    inbox.push_back(message);
    changed.notify_one();
  }

  // Runs on the messenger's thread until the end.
  void Run() {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
    active = news = Clock::now();
    while (!TakeMessages() || !watch.finished()) {
      for (const Message& message : starting) Start(message);
      ended.clear();
      const Clock::time_point before = Clock::now();
      communicator->Progress(&ended);
      const Clock::time_point now = Clock::now();
      if (!starting.empty()) news = now;
      for (const Communicator::Request request : ended) {
        if (watch.Ended(request, now)) continue;
        news = now;
        End(request);
      }
      if (news == now || now - before > kMinBusyPoll) active = now;
      if (!watch.Tick(now, pending.empty() ? now : news)) return;
    }
  }

  // Moves the inbox to `starting`. If the inbox is empty, waits first. Returns true if no message will follow.
  bool TakeMessages() {
    starting.clear();
    const std::optional<Clock::time_point> next = communicator->NextProgress();
    std::unique_lock lock(mutex);
    if (!ending && stopping && pending.empty() && inbox.empty()) {
      ending = true;
      active = Clock::now();
      watch.SayGoodbye();
    }
    if (inbox.empty() && !woken) Pause(next, &lock);
    woken = false;
    starting.swap(inbox);
    return ending;
  }

  // Waits for a message in the inbox or for a wake, but only until the next poll is due. `next`: the communicator's
  // NextProgress.
  void Pause(std::optional<Clock::time_point> next, std::unique_lock<std::mutex>* lock) {
    const Clock::time_point now = Clock::now();
    Clock::time_point until = now + kMaxIdleSleep;
    if (next) {
      until = std::min(until, *next);
    } else {
      if (now - active < kSpinTime) return;
      const Clock::duration longest = pending.empty() ? kMaxIdleSleep : kMaxSleep;
      until = now + std::max<Clock::duration>(kMinSleep, std::min<Clock::duration>((now - active) / 8, longest));
    }
    if (watch.period() > Clock::duration::zero()) until = std::min(until, now + watch.period());
    changed.wait_until(*lock, until,
                       [this] { return woken || !inbox.empty() || (stopping && !ending && pending.empty()); });
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
  bool woken = false;          // guarded by mutex; the communicator has something to do

  // For the messenger's thread alone.
  const std::unique_ptr<Communicator> communicator;
  RankWatch watch;
  absl::flat_hash_map<Communicator::Request, Done> pending;
  std::vector<Message> starting;
  std::vector<Communicator::Request> ended;
  bool ending = false;       // no message will follow
  Clock::time_point news;    // when a message last started or ended
  Clock::time_point active;  // when a message last started or ended, or bytes moved

  std::thread thread;  // last, since it uses all of the above
};

Messenger::Messenger(std::unique_ptr<Communicator> communicator, double timeout_seconds)
    : state_(std::make_unique<State>(std::move(communicator), timeout_seconds)) {}

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
