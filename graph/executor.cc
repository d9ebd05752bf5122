#include "weft/graph/executor.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "oneapi/tbb/global_control.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr uint32_t kOpen = 0x80000000;
constexpr uint32_t kSliceLength = 8;  // of successors that are looked at one by one; longer slices are halved
// Looks around before a worker yields its core, before it sleeps for a while, and before it leaves.
constexpr int kSpins = 200, kYields = 2000, kSleeps = 20;
constexpr size_t kMostEntries = 1 << 16;  // that a deque has room for from the start

// An entry of a deque: a ready task, or a slice of successors whose counts are still to be lowered.
constexpr uint64_t kSlice = uint64_t{1} << 63;
constexpr uint64_t SliceEntry(uint32_t begin, uint32_t end) { return kSlice | uint64_t{begin} << 32 | end; }

// Long enough that a worker with nothing to do doesn't take the ends of the others' deques from them all the time.
void Pause() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#endif
}

// Waits a little, and longer the more often it was done.
void Wait(int times) {
  if (times < kSpins) return Pause();
  if (times < kSpins + kYields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// TBB runs no more workers than it finds cores unless it is told to, and of several such controls the least one counts:
// so there is one for the whole program, and it only grows.
void AllowThreads(size_t threads) {
  static std::mutex mutex;
  static tbb::global_control* control = nullptr;
  static size_t allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const std::lock_guard lock(mutex);
  if (threads <= allowed) return;
  delete control;
  control = new tbb::global_control(tbb::global_control::max_allowed_parallelism, threads);
  allowed = threads;
}

}  // namespace

// The calls that no worker has answered yet, of all executors. The task that TBB is given has no state of its own: what
// it is to do lies here, so that an executor can be gone when its turn comes, and so that all that passes between the
// two threads passes under this mutex, where ThreadSanitizer sees it.
struct Executor::Calls {
  std::mutex mutex;
  Worker *first = nullptr, *last = nullptr;  // in line

  void Append(Worker* worker) {
    (first == nullptr ? first : last->next) = worker;
    last = worker;
  }
  Worker* TakeFirst() {
    Worker* const taken = first;
    if (taken != nullptr) first = std::exchange(taken->next, nullptr);
    return taken;
  }
};

Executor::Calls& Executor::AllCalls() {
  static Calls* calls = new Calls;
  return *calls;
}

Executor::Executor(const Schedule* schedule, int threads)
    : schedule_(*schedule),
      threads_(threads),
      arena_(threads, /*reserved_for_masters=*/1),
      counts_(new Count[schedule->size()]) {
  WEFT_CHECK(threads >= 1);
  AllowThreads(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(std::clamp<size_t>(schedule->size(), 256, kMostEntries)));
    workers_.back()->executor = this;
    workers_.back()->number = i;
  }
  for (uint32_t t = 0; t < schedule_.size(); ++t) {
    counts_[t].waits_for = schedule_.waits_for[t];
    counts_[t].left.store(counts_[t].waits_for, std::memory_order_relaxed);
  }
}

Executor::~Executor() {
  for (bool all_gone = false; !all_gone; std::this_thread::yield()) {
    Calls& calls = AllCalls();
    const std::lock_guard lock(calls.mutex);
    Worker* worker = std::exchange(calls.first, nullptr);
    while (worker != nullptr) {
      Worker* const next = std::exchange(worker->next, nullptr);
      worker->executor == this ? void(worker->called = worker->again = false) : calls.Append(worker);
      worker = next;
    }
    all_gone = std::none_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->called; });
  }
}

void Executor::Run(Body body) {
  workers_[0]->entered = true;
  if (threads_ == 1) {
    for (uint32_t task = 0; task < schedule_.task_count; ++task) body(task, 0);
    return;
  }
  body_ = &body;
  done_.store(false, std::memory_order_relaxed);
  shared_.store(false, std::memory_order_relaxed);
  for (int i = 1; i < threads_; ++i) workers_[i]->entered = false;
  inside_.store(kOpen, std::memory_order_release);
  const uint32_t start = schedule_.start();
  Work(0, SliceEntry(schedule_.first_successor[start], schedule_.first_successor[start + 1]));
  inside_.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int times = 0; inside_.load(std::memory_order_acquire) != 0; ++times) Wait(times);
}

int Executor::workers_entered() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w->entered; }));
}

void Executor::CallWorkers() {
  if (shared_.exchange(true, std::memory_order_relaxed)) return;
  Calls& calls = AllCalls();
  const std::lock_guard lock(calls.mutex);
  for (int i = 1; i < threads_; ++i) {
    Worker& worker = *workers_[i];
    if (std::exchange(worker.called, true)) {
      worker.again = true;
      continue;
    }
    calls.Append(&worker);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_BEGIN();  // TBB's task object: its library passes it on unseen
    arena_.enqueue(AnswerCall);
    ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_END();
  }
}

void Executor::AnswerCall() {
  Calls& calls = AllCalls();
  std::unique_lock lock(calls.mutex);
  Worker* const me = calls.TakeFirst();
  if (me == nullptr) return;
  do {
    lock.unlock();
    me->executor->Enter(me->number);
    lock.lock();
  } while (std::exchange(me->again, false));
  me->called = false;
}

void Executor::Enter(int worker) {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  do {
    if ((inside & kOpen) == 0) return;
  } while (!inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed));
  workers_[worker]->entered = true;
  Work(worker, SliceEntry(0, 0));
  inside_.fetch_sub(1, std::memory_order_release);
}

void Executor::Work(int worker, uint64_t entry) {
  Worker& me = *workers_[worker];
  const Body& body = *body_;
  const uint32_t task_count = schedule_.task_count, end = schedule_.end;
  for (;;) {
    uint32_t task = static_cast<uint32_t>(entry);
    if ((entry & kSlice) != 0) task = Release(me, static_cast<uint32_t>((entry & ~kSlice) >> 32), task);
    while (task != kNone) {
      if (task < task_count) {
        body(task, worker);
      } else if (task == end) {
        done_.store(true, std::memory_order_release);
        return;
      }
      const uint32_t begin = schedule_.first_successor[task], stop = schedule_.first_successor[task + 1];
      const bool chain = stop - begin == 1 && (schedule_.successors[begin] & Schedule::kAlone) != 0;
      task = chain ? schedule_.successors[begin] & ~Schedule::kAlone : Release(me, begin, stop);
    }
    if (!FindEntry(worker, &entry)) return;
  }
}

// False once the run is done or, for a worker that was called, when nothing was found for long. It says so before its
// last look, so that whoever shares later calls it again.
bool Executor::FindEntry(int worker, uint64_t* entry) {
  constexpr int kLooks = kSpins + kYields + kSleeps;
  for (int times = 0; !workers_[worker]->deque.Pop(entry) && !Steal(worker, entry); ++times) {
    if (done_.load(std::memory_order_acquire) || (worker > 0 && times > kLooks)) return false;
    if (worker > 0 && times == kLooks) shared_.store(false, std::memory_order_relaxed);
    Wait(times);
  }
  return true;
}

bool Executor::Steal(int worker, uint64_t* entry) {
  for (int i = 1; i < threads_; ++i) {
    if (workers_[(worker + i) % threads_]->deque.Steal(entry)) return true;
  }
  return false;
}

// Lowers the counts of a slice of successors. Returns the most critical one that became ready; shares the others.
uint32_t Executor::Release(Worker& me, uint32_t begin, uint32_t end) {
  while (end - begin > kSliceLength) {
    const uint32_t middle = begin + (end - begin) / 2;
    Share(me, SliceEntry(begin, middle));
    begin = middle;
  }
  uint32_t kept = kNone;
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t task = schedule_.successors[i] & ~Schedule::kAlone;
    if (task == schedule_.successors[i]) {
      Count& count = counts_[task];
      if (count.left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      count.left.store(count.waits_for, std::memory_order_relaxed);  // for the next run
    }
    if (kept != kNone) Share(me, kept);
    kept = task;
  }
  return kept;
}

void Executor::Share(Worker& me, uint64_t entry) {
  me.deque.Push(entry);
  if (!shared_.load(std::memory_order_relaxed)) CallWorkers();
}

}  // namespace weft
