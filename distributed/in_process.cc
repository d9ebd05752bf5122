#include "weft/distributed/in_process.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Maximum number of bytes that one call of Progress copies. A copy takes about 0.2 ms, and the rank's other messages
// wait no longer.
constexpr size_t kMaxCopiedBytes = 1 << 20;

Clock::duration Duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A message. One side creates it, the other side completes it, and then the receiver copies the bytes.
struct Transfer {
  absl::Span<const std::byte> source;
  absl::Span<std::byte> target;
  bool begun_by_sender = false;         // which side came first; guarded by the mailbox's mutex
  Clock::time_point departed, arrived;  // times of the last byte
  std::atomic<bool> complete = false;   // true after both sides have written the fields above
  std::atomic<bool> copied = false;
  size_t copied_bytes = 0;  // for the receiver alone
};

using TransferPtr = std::shared_ptr<Transfer>;

// The place where sends and receives of messages to one rank meet.
struct Mailbox {
  std::mutex mutex;
  // By sender and tag: the messages that one side has begun, the same side for all of them.
  absl::flat_hash_map<std::pair<int, int>, std::deque<TransferPtr>> halves;
  std::vector<Clock::time_point> link_free;  // by sender: departure of the last byte so far

  std::mutex wake_mutex;
  std::function<void()> wake;  // guarded by wake_mutex
};

}  // namespace

struct InProcessNetwork::State {
  State(int size, const InProcessOptions& options) : options(options), mailboxes(size) {
    for (Mailbox& mailbox : mailboxes) mailbox.link_free.resize(size);
  }

  // Begins the side of a message that has the bytes `side`: Transfer::source or Transfer::target. Takes the first
  // transfer that the other side has begun. If there is none, adds one.
  template <class Bytes>
  TransferPtr Begin(Bytes Transfer::*side, Bytes bytes, int from, int to, int tag) {
    constexpr bool kSends = std::is_same_v<Bytes, absl::Span<const std::byte>>;
    const std::lock_guard lock(mailboxes[to].mutex);
    std::deque<TransferPtr>& halves = mailboxes[to].halves[{from, tag}];
    const bool completes = !halves.empty() && halves.front()->begun_by_sender != kSends;
    if (!completes) halves.push_back(std::make_shared<Transfer>());
    const TransferPtr transfer = completes ? halves.front() : halves.back();
    (*transfer).*side = bytes;
    if (!completes) {
      transfer->begun_by_sender = kSends;
      return transfer;
    }
    halves.pop_front();
    Complete(from, to, tag, transfer.get());
    if (kSends) Wake(to);
    return transfer;
  }

  // Tells the thread of a rank to call Progress.
  void Wake(int rank) {
    const std::lock_guard lock(mailboxes[rank].wake_mutex);
    if (mailboxes[rank].wake) mailboxes[rank].wake();
  }

  void SetWake(int rank, std::function<void()> wake) {
    const std::lock_guard lock(mailboxes[rank].wake_mutex);
    mailboxes[rank].wake = std::move(wake);
  }

  const InProcessOptions options;
  std::vector<Mailbox> mailboxes;  // by rank, the receiver of its messages
  // Shared while bytes are copied: after Abort, ranks may destroy their bytes.
  std::shared_mutex abort_mutex;
  std::optional<int> exit_code;  // guarded by abort_mutex

 private:
  // Computes the times of a transfer whose two sides are known. The caller holds the mailbox's mutex.
  void Complete(int from, int to, int tag, Transfer* transfer) {
    if (transfer->source.size() != transfer->target.size()) {
      const std::string message =
          absl::StrCat("rank ", from, " sends ", transfer->source.size(), " bytes to rank ", to, " with tag ", tag,
                       ", but the receive expects ", transfer->target.size(), " bytes");
      CheckFailed(__FILE__, __LINE__, message.c_str());
    }
    Clock::time_point& link_free = mailboxes[to].link_free[from];
    const double seconds = options.bytes_per_second > 0 ? transfer->source.size() / options.bytes_per_second : 0;
    link_free = std::max(link_free, Clock::now()) + Duration(seconds);
    transfer->departed = link_free;
    transfer->arrived = link_free + Duration(options.latency_seconds);
    transfer->complete.store(true, std::memory_order_release);
  }
};

// The communicator of one rank.
class InProcessNetwork::Connection final : public Communicator {
 public:
  Connection(State* network, int rank) : network_(network), rank_(rank) {}
  ~Connection() override { network_->SetWake(rank_, nullptr); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(network_->mailboxes.size()); }

  Request Send(absl::Span<const std::byte> bytes, int to, int tag) override {
    WEFT_CHECK(to >= 0 && to < size() && tag >= 0);
    sends_.push_back({next_, to, network_->Begin(&Transfer::source, bytes, rank_, to, tag)});
    return next_++;
  }

  Request Receive(absl::Span<std::byte> bytes, int from, int tag) override {
    WEFT_CHECK(from >= 0 && from < size() && tag >= 0);
    receives_.push_back({next_, from, network_->Begin(&Transfer::target, bytes, from, rank_, tag)});
    return next_++;
  }

  void Progress(std::vector<Request>* ended) override {
    const std::shared_lock lock(network_->abort_mutex);
    if (network_->exit_code.has_value()) return;
    Copy();
    const Clock::time_point now = Clock::now();
    const auto end = [&](std::vector<Pending>* all, Clock::time_point Transfer::*time) {
      std::erase_if(*all, [&](const Pending& pending) {
        const Transfer& transfer = *pending.transfer;
        if (!transfer.copied.load(std::memory_order_acquire) || now < transfer.*time) return false;
        ended->push_back(pending.request);
        return true;
      });
    };
    end(&sends_, &Transfer::departed);
    end(&receives_, &Transfer::arrived);
  }

  void SetWake(std::function<void()> wake) override { network_->SetWake(rank_, std::move(wake)); }

  std::optional<Clock::time_point> NextProgress() const override {
    Clock::time_point next = Clock::time_point::max();
    for (const Pending& send : sends_) {
      if (send.transfer->copied.load(std::memory_order_acquire)) next = std::min(next, send.transfer->departed);
    }
    for (const Pending& receive : receives_) {
      const Transfer& transfer = *receive.transfer;
      if (!transfer.complete.load(std::memory_order_acquire)) continue;
      if (!transfer.copied.load(std::memory_order_relaxed)) return Clock::time_point();  // long ago: copy now
      next = std::min(next, transfer.arrived);
    }
    return next;
  }

  void Abort(int exit_code) override {
    const std::unique_lock lock(network_->abort_mutex);
    if (!network_->exit_code.has_value()) network_->exit_code = exit_code;
  }

 private:
  struct Pending {
    Request request;
    int peer;
    TransferPtr transfer;
  };

  // Copies at most kMaxCopiedBytes of the messages that this rank receives.
  void Copy() {
    size_t budget = kMaxCopiedBytes;
    for (const Pending& pending : receives_) {
      Transfer& transfer = *pending.transfer;
      if (!transfer.complete.load(std::memory_order_acquire) || transfer.copied.load(std::memory_order_relaxed)) {
        continue;
      }
      const size_t bytes = std::min(budget, transfer.source.size() - transfer.copied_bytes);
      if (bytes > 0) {
        std::memcpy(transfer.target.data() + transfer.copied_bytes, transfer.source.data() + transfer.copied_bytes,
                    bytes);
      }
      transfer.copied_bytes += bytes;
      budget -= bytes;
      if (transfer.copied_bytes < transfer.source.size()) return;
      transfer.copied.store(true, std::memory_order_release);
      network_->Wake(pending.peer);
    }
  }

  State* const network_;
  const int rank_;
  Request next_ = 0;
  std::vector<Pending> sends_, receives_;  // in the order of their starts
};

InProcessNetwork::InProcessNetwork(int size, const InProcessOptions& options)
    : state_(std::make_unique<State>(size, options)) {}

InProcessNetwork::~InProcessNetwork() = default;

std::unique_ptr<Communicator> InProcessNetwork::Connect(int rank) {
  WEFT_CHECK(rank >= 0 && rank < static_cast<int>(state_->mailboxes.size()));
  return std::make_unique<Connection>(state_.get(), rank);
}

std::optional<int> InProcessNetwork::exit_code() const {
  const std::shared_lock lock(state_->abort_mutex);
  return state_->exit_code;
}

void RunRanks(int size, const std::function<void(Transport*)>& run, const InProcessOptions& options) {
  InProcessNetwork network(size, options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Messenger messenger(network.Connect(rank));
      run(&messenger);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weft
