#include "weft/tests/ranks/mpi_rank.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/ranks.h"

namespace weft {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kLongBytes = 100'000'000;
constexpr int kTags[] = {0, 1, 2, 77, 32766, 32767};  // MPI guarantees tags up to 32767
constexpr size_t kSizes[] = {0, 1, 3, 4096, 70'000};  // a long message waits for its receiver
constexpr int kRepeats = 3;                           // messages with the same tag and sender

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "mpi_test: %s\n", message.c_str());
  std::exit(3);
}

// Returns bytes that depend on sender, receiver, tag and repetition.
Bytes Contents(size_t size, int from, int to, int tag, int repeat) {
  uint64_t state = ((uint64_t{31} * from + to) * 1'000'003 + tag) * 11 + repeat;
  Bytes bytes(size);
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

// Messages of one rank that have not ended.
class Messages {
 public:
  explicit Messages(Communicator* communicator) : communicator_(*communicator) {}

  void Send(const Bytes& bytes, int to, int tag) { Add(communicator_.Send(bytes, to, tag)); }
  void Receive(Bytes* bytes, int from, int tag) { Add(communicator_.Receive(absl::MakeSpan(*bytes), from, tag)); }
  void Wait() {
    while (!left_.empty()) {
      std::vector<Communicator::Request> ended;
      communicator_.Progress(&ended);
      for (const Communicator::Request each : ended) {
        if (left_.erase(each) != 1) Fail("a request ended that had not been started");
      }
      if (ended.empty()) std::this_thread::yield();
    }
  }

 private:
  void Add(Communicator::Request request) {
    if (request != next_++) Fail("requests are not numbered in order");
    left_.insert(request);
  }

  Communicator& communicator_;
  Communicator::Request next_ = 0;
  std::set<Communicator::Request> left_;
};

// Exchanges messages of all sizes with all other ranks under all tags, as one batch.
void Exchange(const Communicator& communicator, Messages* messages) {
  struct Pair {
    int other, tag, repeat;
    Bytes sent, received;
  };
  std::vector<Pair> pairs;
  const int rank = communicator.rank();
  for (int other = 0; other < communicator.size(); ++other) {
    for (const int tag : kTags) {
      for (int repeat = 0; other != rank && repeat < kRepeats; ++repeat) {
        const size_t size = kSizes[(rank + other + tag + repeat) % std::size(kSizes)];
        pairs.push_back({other, tag, repeat, Contents(size, rank, other, tag, repeat), Bytes(size)});
      }
    }
  }
  for (const Pair& pair : pairs) messages->Send(pair.sent, pair.other, pair.tag);
  // Receives start in another order than sends. Only messages with the same tag keep their order.
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.tag > b.tag; });
  for (Pair& pair : pairs) messages->Receive(&pair.received, pair.other, pair.tag);
  messages->Wait();
  for (const Pair& pair : pairs) {
    if (pair.received != Contents(pair.received.size(), pair.other, rank, pair.tag, pair.repeat)) {
      Fail("rank " + std::to_string(rank) + " received other bytes than were sent under tag " +
           std::to_string(pair.tag));
    }
  }
}

void SendAround(const Communicator& communicator, size_t size, Messages* messages) {
  const int rank = communicator.rank(), next = (rank + 1) % communicator.size();
  const int previous = (rank + communicator.size() - 1) % communicator.size();
  const Bytes sent = Contents(size, rank, next, 5, 0);
  Bytes received(size);
  messages->Receive(&received, previous, 5);
  messages->Send(sent, next, 5);
  messages->Wait();
  if (received != Contents(size, previous, rank, 5, 0)) Fail("a long message arrived with other bytes");
}

// Runs a messenger that waits at most a second for signs of life of the other ranks.
int RunMessenger(absl::string_view name, std::unique_ptr<Communicator> communicator) {
  Messenger messenger(std::move(communicator), /*timeout_seconds=*/1);
  Ranks(&messenger).AllGather("");
  if (name == "stop" && messenger.rank() == 1) std::raise(SIGSTOP);
  if (name == "stop" || messenger.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  if (messenger.rank() == 0) std::printf("rank 0 ends\n");
  return 0;
}

// Connects the ranks, except rank 1, with a timeout of a second.
int ConnectWithoutRank1() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (rank != nullptr && absl::string_view(rank) == "1") std::raise(SIGSTOP);
  const auto messenger = ConnectMessenger(/*timeout_seconds=*/1);
  std::printf("connected\n");
  return 0;
}

}  // namespace

int RunRank(absl::string_view name) {
  if (name == "hang") return ConnectWithoutRank1();
  absl::StatusOr<std::unique_ptr<Communicator>> connected = ConnectLaunchedRanks();
  if (!connected.ok()) Fail(std::string(connected.status().message()));
  if (*connected == nullptr) return std::puts("one rank has no communicator"), 0;
  if (name == "stop" || name == "late") return RunMessenger(name, *std::move(connected));
  Communicator& communicator = **connected;
  Messages messages(&communicator);
  if (name == "abort" || name == "kill") {
    if (communicator.rank() == 1) name == "kill" ? static_cast<void>(std::raise(SIGKILL)) : communicator.Abort(1);
    Bytes byte(1);
    messages.Receive(&byte, 1, 0);
    messages.Wait();
    return 0;
  }
  if (name == "long") {
    const char* const size = std::getenv("WEFT_LONG_BYTES");  // for trials by hand, such as 3000000000
    SendAround(communicator, size == nullptr ? kLongBytes : std::strtoull(size, nullptr, 10), &messages);
  }
  Exchange(communicator, &messages);
  std::thread([&] { Exchange(communicator, &messages); }).join();  // threads take turns
  if (communicator.rank() == 0) std::printf("%d ranks exchanged messages\n", communicator.size());
  return 0;
}

}  // namespace weft
