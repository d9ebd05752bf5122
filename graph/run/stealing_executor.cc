// The main loop of a worker runs tasks, releases their successors and steals. A count that reaches 0 is reset at once,
// for the next execution. A single worker needs no counts: it runs the tasks by number, which is a serial order.
#include "weft/graph/run/stealing_executor.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace weft {
namespace {

constexpr uint32_t kNone = 0xffffffff;
// A slice of more than 8 successors is halved until 8 are left. The other halves are offered to other workers.
constexpr uint32_t kMaxSliceLength = 8;
// A deque's initial capacity is one entry for each task, but within these bounds. Full deques grow.
constexpr size_t kMinCapacity = 256, kMaxCapacity = 1 << 16;

// An entry of a deque is a ready task or, with this bit set, a slice of successors whose counts must still be lowered.
constexpr uint64_t kSlice = uint64_t{1} << 63;
constexpr uint64_t SliceEntry(uint32_t begin, uint32_t end) { return kSlice | uint64_t{begin} << 32 | end; }
// With this bit, an entry means: run the parts in this worker's `share`, not the whole task. It is never in a deque.
constexpr uint64_t kShare = uint64_t{1} << 62;

// While no worker is idle, a worker takes parts of about this duration, since larger products are more efficient.
constexpr double kUndividedSeconds = 300e-6;

// A share is a task and a range of its parts, in one word.
constexpr uint64_t ShareWord(TaskPart part) { return uint64_t{part.task} << 32 | part.begin << 16 | part.end; }
constexpr TaskPart PartOf(uint64_t word) {
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word >> 16 & 0xffff),
          static_cast<uint32_t>(word & 0xffff)};
}

}  // namespace

StealingExecutor::StealingExecutor(const Schedule* schedule, int threads)
    : WorkerPool(schedule, threads), counts_(new Count[schedule->size()]) {
  const int outside = schedule->ends_later.empty() ? 0 : 1;
  for (int i = 0; i < threads + outside; ++i) {
    workers_.push_back(std::make_unique<Worker>(std::clamp<size_t>(schedule->size(), kMinCapacity, kMaxCapacity)));
  }
  for (uint32_t t = 0; t < schedule->size(); ++t) {
    counts_[t].waits_for = schedule->waits_for[t];
    counts_[t].left.store(counts_[t].waits_for, std::memory_order_relaxed);
  }
  if (schedule->parts.empty() || threads < Schedule::kMinDividing) return;
  parts_left_.reset(new std::atomic<uint32_t>[schedule->task_count]);
  for (uint32_t t = 0; t < schedule->task_count; ++t) {
    parts_left_[t].store(schedule->PartsOf(t), std::memory_order_relaxed);
  }
}

void StealingExecutor::Run(Body body) {
  if (workers_.size() > 1) {
    for (const auto& worker : workers_) worker->steals = 0;
    WorkerPool::Run(body);
    while (ending_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    return;
  }
  EnterCaller();
  for (uint32_t task = 0; task < schedule().task_count; ++task) body({task, 0, schedule().PartsOf(task)}, 0);
}

void StealingExecutor::End(uint32_t task) {
  ending_.fetch_add(1, std::memory_order_relaxed);
  Worker& me = *workers_.back();
  const uint32_t next = Release(me, schedule().first_successor[task], schedule().first_successor[task + 1]);
  if (next != kNone) Push(me, next);
  ending_.fetch_sub(1, std::memory_order_release);
}

std::optional<uint64_t> StealingExecutor::steals() const {
  if (threads() == 1) return std::nullopt;
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->steals;
  return sum;
}

void StealingExecutor::Work(int worker) {
  Worker& me = *workers_[worker];
  const Schedule& schedule = this->schedule();
  const uint32_t task_count = schedule.task_count, end = schedule.end, start = schedule.start();
  uint64_t entry =
      worker > 0 ? SliceEntry(0, 0) : SliceEntry(schedule.first_successor[start], schedule.first_successor[start + 1]);
  for (;;) {
    uint32_t task = static_cast<uint32_t>(entry);
    bool has_share = (entry & (kSlice | kShare)) == kShare;
    if ((entry & kSlice) != 0) task = Release(me, static_cast<uint32_t>((entry & ~kSlice) >> 32), task);
    while (task != kNone && !Starts(task)) {
      if (task < task_count) {
        if (parts_left_ == nullptr || schedule.PartsOf(task) == 1) {
          RunTask(task, worker);
        } else if (!(std::exchange(has_share, false) ? RunShare(task, worker) : RunDivisible(task, worker))) {
          break;
        }
      } else if (task == end) {
        Finish();
        return;
      }
      const uint32_t begin = schedule.first_successor[task], stop = schedule.first_successor[task + 1];
      const bool chain = stop - begin == 1 && (schedule.successors[begin] & Schedule::kAlone) != 0;
      task = chain ? schedule.successors[begin] & ~Schedule::kAlone : Release(me, begin, stop);
      task = PreferEnded(me, task);
    }
    if (!FindEntry(worker, &entry)) return;
  }
}

uint32_t StealingExecutor::PreferEnded(Worker& me, uint32_t task) {
  uint64_t entry;
  if (schedule().ends_later.empty() || !workers_.back()->deque.Steal(&entry)) return task;
  if (task != kNone && !Starts(task)) Push(me, task);
  task = static_cast<uint32_t>(entry);
  return (entry & kSlice) != 0 ? Release(me, static_cast<uint32_t>((entry & ~kSlice) >> 32), task) : task;
}

bool StealingExecutor::FindEntry(int worker, uint64_t* entry) {
  Deque& own = workers_[worker]->deque;
  if (own.Pop(entry) || Steal(worker, entry)) return true;
  const bool divides = parts_left_ != nullptr;
  if (divides) idle_.fetch_add(1, std::memory_order_relaxed);
  bool goes_on = true;
  for (int idle_polls = 0; goes_on; ++idle_polls) {
    if (own.Pop(entry) || Steal(worker, entry) || (divides && StealParts(worker, entry))) break;
    goes_on = BackOff(worker, idle_polls);
  }
  if (divides) idle_.fetch_sub(1, std::memory_order_relaxed);
  return goes_on;
}

bool StealingExecutor::StealParts(int worker, uint64_t* entry) {
  const size_t count = static_cast<size_t>(threads());
  for (size_t i = 1; i < count; ++i) {
    std::atomic<uint64_t>& share = workers_[(static_cast<size_t>(worker) + i) % count]->share;
    uint64_t word = share.load(std::memory_order_relaxed);
    const TaskPart part = PartOf(word);
    if (part.begin >= part.end) continue;
    const uint32_t middle = part.begin + (part.end - part.begin) / 2;
    if (!share.compare_exchange_strong(word, ShareWord({part.task, part.begin, middle}), std::memory_order_acq_rel)) {
      continue;
    }
    workers_[worker]->share.store(ShareWord({part.task, middle, part.end}), std::memory_order_release);
    ++workers_[worker]->steals;
    *entry = kShare | part.task;
    OfferWork();
    return true;
  }
  return false;
}

bool StealingExecutor::RunDivisible(uint32_t task, int worker) {
  workers_[worker]->share.store(ShareWord({task, 0, schedule().PartsOf(task)}), std::memory_order_release);
  OfferWork();
  return RunShare(task, worker);
}

bool StealingExecutor::RunShare(uint32_t task, int worker) {
  std::atomic<uint64_t>& share = workers_[worker]->share;
  const uint32_t parts = schedule().PartsOf(task);
  const double large_parts = std::ceil(parts * kUndividedSeconds / schedule().seconds[task]);
  const uint32_t large = static_cast<uint32_t>(std::min<double>(parts, large_parts));  // infinite if a task takes 0 s
  uint32_t ran = 0;
  uint64_t word = share.load(std::memory_order_relaxed);
  for (TaskPart part = PartOf(word); part.begin < part.end; part = PartOf(word)) {
    const uint32_t left = part.end - part.begin;
    const bool alone = idle_.load(std::memory_order_relaxed) == 0;
    const uint32_t taken = alone ? (left < 2 * large ? left : large) : (left + 3) / 4;
    const uint64_t rest = ShareWord({task, part.begin + taken, part.end});
    if (!share.compare_exchange_strong(word, rest, std::memory_order_acq_rel)) continue;
    RunParts({task, part.begin, part.begin + taken}, worker);
    ran += taken;
    word = share.load(std::memory_order_relaxed);
  }
  if (ran == 0 || parts_left_[task].fetch_sub(ran, std::memory_order_acq_rel) != ran) return false;
  parts_left_[task].store(parts, std::memory_order_relaxed);  // for the next execution
  return true;
}

bool StealingExecutor::Steal(int worker, uint64_t* entry) {
  const size_t count = workers_.size();
  for (size_t i = 1; i < count; ++i) {
    const size_t victim = (static_cast<size_t>(worker) + i) % count;
    if (!workers_[victim]->deque.Steal(entry)) continue;
    if (victim < static_cast<size_t>(threads())) ++workers_[worker]->steals;
    return true;
  }
  return false;
}

bool StealingExecutor::Starts(uint32_t task) {
  if (!schedule().EndsLater(task)) return false;
  RunTask(task, 0);
  return true;
}

uint32_t StealingExecutor::Release(Worker& me, uint32_t begin, uint32_t end) {
  while (end - begin > kMaxSliceLength) {
    const uint32_t middle = begin + (end - begin) / 2;
    Push(me, SliceEntry(begin, middle));
    begin = middle;
  }
  const Schedule& schedule = this->schedule();
  uint32_t kept = kNone;  // the last ready successor: successors are in ascending order of criticality
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t task = schedule.successors[i] & ~Schedule::kAlone;
    if (task == schedule.successors[i]) {
      Count& count = counts_[task];
      if (count.left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      count.left.store(count.waits_for, std::memory_order_relaxed);  // for the next execution
    }
    if (Starts(task)) continue;  // at once: in a deque, the task would wait behind longer tasks
    if (kept != kNone) Push(me, kept);
    kept = task;
  }
  return kept;
}

void StealingExecutor::Push(Worker& me, uint64_t entry) {
  me.deque.Push(entry);
  OfferWork();
}

}  // namespace weft
