#include "weft/distributed/messenger.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/distributed/in_process.h"
#include "weft/graph/run/transport.h"

namespace weft {
namespace {

using Bytes = std::vector<std::byte>;
using ::testing::HasSubstr;

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Records which messages have ended. Each message has a number.
class Ends {
 public:
  explicit Ends(int count) : ends_(count) {}

  Transport::Done done(uint32_t i) {
    return {.call =
                [](void* object, uint32_t i) {
                  Ends& ends = *static_cast<Ends*>(object);
                  ++ends.ends_[i];
                  ++ends.total_;
                },
            .object = this,
            .argument = i};
  }
  void Wait() const {
    while (total_ < static_cast<int>(ends_.size())) Sleep(1e-3);
  }
  int total() const { return total_; }
  int operator[](int i) const { return ends_[i]; }

 private:
  std::vector<std::atomic<int>> ends_;
  std::atomic<int> total_ = 0;
};

class Sizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Messenger, Sizes, testing::Values(1, 2, 3, 5, 8));

// Message i from one rank to another: its tag and bytes are functions of the three numbers.
struct RandomMessage {
  RandomMessage(int from, int to, int i) {
    const RandomStream random = {
        .seed = 1, .stream = static_cast<uint32_t>(from * 100 + to), .step = static_cast<uint32_t>(i)};
    tag = static_cast<int>(random.Below(3, 0));
    bytes.resize(random.Below(10, 1) == 0 ? random.Below(300'000, 2) : random.Below(100, 2));
    for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<std::byte>(b * 7 + i * 13 + from * 31 + to * 37);
  }
  int tag;
  Bytes bytes;
};

TEST_P(Sizes, DeliverRandomMessagesBetweenAllRanks) {
  constexpr int kMessages = 16;  // for each pair of ranks
  const int size = GetParam();
  RunRanks(size, [&](Transport* transport) {
    const int rank = transport->rank();
    ASSERT_EQ(transport->size(), size);
    std::vector<RandomMessage> sent, wanted;
    std::vector<Bytes> got;
    for (int i = 0; i < kMessages; ++i) {
      for (int other = 0; other < size; ++other) {
        sent.emplace_back(rank, other, i);
        wanted.emplace_back(other, rank, i);
        got.emplace_back(wanted.back().bytes.size());
      }
    }
    const int count = static_cast<int>(sent.size());
    Ends sends(count), receives(count);
    // Two threads start messages of the same messenger.
    std::thread sender([&] {
      for (int i = 0; i < count; ++i) {
        transport->Send(sent[i].bytes, i % size, sent[i].tag, sends.done(i));
        if (i % 7 == rank % 7) Sleep(2e-4);
      }
    });
    for (int i = 0; i < count; ++i) {
      transport->Receive(absl::MakeSpan(got[i]), i % size, wanted[i].tag, receives.done(i));
      if (i % 11 == rank) Sleep(2e-4);
    }
    sender.join();
    sends.Wait();
    receives.Wait();
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(sends[i], 1);
      EXPECT_EQ(receives[i], 1);
      EXPECT_EQ(got[i], wanted[i].bytes) << "message " << i << " of rank " << rank;
    }
  });
}

// A byte that runs around all ranks. Each end of a message starts the next message on the messenger's thread.
struct Relay {
  void Receive() {
    transport->Receive(absl::MakeSpan(&byte, 1), (transport->rank() + transport->size() - 1) % transport->size(), 0,
                       {.call = [](void* relay, uint32_t) { static_cast<Relay*>(relay)->Received(); }, .object = this});
  }
  void Received() {
    ++rounds;
    if (rounds < kRounds || transport->rank() != 0) Send();
    if (rounds == kRounds) finished = true;
  }
  void Send() {
    byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
    transport->Send(absl::MakeConstSpan(&byte, 1), (transport->rank() + 1) % transport->size(), 0,
                    {.call =
                         [](void* object, uint32_t) {
                           Relay& relay = *static_cast<Relay*>(object);
                           if (relay.rounds < kRounds) relay.Receive();
                         },
                     .object = this});
  }

  static constexpr int kRounds = 20;
  Transport* transport;
  std::byte byte{};
  int rounds = 0;
  std::atomic<bool> finished = false;
};

TEST_P(Sizes, StartMessagesWhereOthersEnd) {
  const int size = GetParam();
  if (size == 1) return;  // rank 0 would wait for itself
  std::vector<Relay> relays(size);
  RunRanks(size, [&](Transport* transport) {
    Relay& relay = relays[transport->rank()];
    relay.transport = transport;
    if (transport->rank() == 0) {
      relay.Send();
    } else {
      relay.Receive();
    }
    while (!relay.finished) Sleep(1e-3);
  });
  EXPECT_EQ(static_cast<int>(relays[0].byte), Relay::kRounds * size % 256);
}

TEST(Messenger, WaitsForMessagesAtTheEnd) {
  InProcessNetwork network(2);
  Ends ends(2);
  const Bytes sent(100, std::byte{5});
  Bytes got(100);
  std::thread other([&] {
    Messenger messenger(network.Connect(1));
    Sleep(0.1);
    messenger.Receive(absl::MakeSpan(got), 0, 0, ends.done(1));
  });
  {
    Messenger messenger(network.Connect(0));
    messenger.Send(sent, 1, 0, ends.done(0));
  }
  EXPECT_EQ(ends[0], 1);
  other.join();
  EXPECT_EQ(ends[1], 1);
  EXPECT_EQ(got, sent);
}

// The messenger's thread, seen from the end of a message.
struct ThreadState {
  Transport::Done done() {
    return {.call =
                [](void* object, uint32_t) {
                  ThreadState& state = *static_cast<ThreadState*>(object);
                  sigset_t blocked;
                  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
                  state.blocks_interrupt = sigismember(&blocked, SIGINT) == 1;
                  timespec time;
                  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
                  state.cpu_seconds = time.tv_sec + 1e-9 * time.tv_nsec;
                  state.ended = true;
                },
            .object = this};
  }
  void Wait() const {
    while (!ended) Sleep(1e-3);
  }
  bool blocks_interrupt = false;
  double cpu_seconds = 0;
  std::atomic<bool> ended = false;
};

TEST(Messenger, BlocksSignalsAndLeavesTheCpuToOthers) {
  RunRanks(2, [](Transport* transport) {
    Bytes byte(1);
    ThreadState state;
    if (transport->rank() == 0) {
      Sleep(0.5);
      transport->Send(byte, 1, 0, state.done());
      state.Wait();
      EXPECT_LT(state.cpu_seconds, 0.05);
    } else {
      transport->Receive(absl::MakeSpan(byte), 0, 0, state.done());
      state.Wait();
      EXPECT_LT(state.cpu_seconds, 0.08);
    }
    EXPECT_TRUE(state.blocks_interrupt);
  });
}

TEST(Messenger, StartsMessagesAtOnceAfterALongPause) {
  std::vector<std::unique_ptr<InProcessNetwork>> networks;
  std::vector<std::unique_ptr<Messenger>> messengers;
  for (int i = 0; i < 9; ++i) {
    networks.push_back(std::make_unique<InProcessNetwork>(1));
    messengers.push_back(std::make_unique<Messenger>(networks.back()->Connect(0)));
  }
  Sleep(0.5);
  std::vector<double> seconds;
  for (const auto& messenger : messengers) {
    Bytes sent(1), got(1);
    Ends ends(2);
    const auto start = std::chrono::steady_clock::now();
    messenger->Send(sent, 0, 0, ends.done(0));
    messenger->Receive(absl::MakeSpan(got), 0, 0, ends.done(1));
    ends.Wait();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  EXPECT_LT(seconds[4], 0.01);  // an idle messenger polls every 50 ms
}

// The timeout of tests with heartbeats. The machine may be busy, so the timeout is long.
constexpr double kTimeout = 0.5;  // seconds

TEST(Heartbeats, NameTheRankThatIsSilent) {
  InProcessNetwork network(3);
  testing::internal::CaptureStderr();
  const auto start = std::chrono::steady_clock::now();
  {
    // Rank 2 connects and does nothing. Rank 0 hears from it.
    const auto silent = network.Connect(2);
    Messenger first(network.Connect(0), kTimeout), second(network.Connect(1), kTimeout);
    while (!network.exit_code().has_value()) Sleep(1e-3);
  }
  EXPECT_EQ(network.exit_code(), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("weft: rank 2 has not answered for 0.5 s; ending all ranks\n"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Heartbeats, LetRanksEndAtDifferentTimes) {
  std::deque<InProcessNetwork> networks;
  std::vector<std::thread> threads;
  for (const int size : {2, 3, 5}) {
    for (int late = 0; late < size; ++late) {
      InProcessNetwork& network = networks.emplace_back(size);
      for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&network, rank, late] {
          Messenger messenger(network.Connect(rank), kTimeout);
          if (rank == late) Sleep(1);
        });
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const InProcessNetwork& network : networks) EXPECT_FALSE(network.exit_code().has_value());
}

TEST(Heartbeats, NoticeThatARankHasEndedEarly) {
  InProcessNetwork network(3);
  testing::internal::CaptureStderr();
  Bytes byte(1);
  Ends ends(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Messenger messenger(network.Connect(rank), /*timeout_seconds=*/0.3);
      if (rank == 0) messenger.Receive(absl::MakeSpan(byte), 1, 0, ends.done(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(network.exit_code(), 1);
  EXPECT_EQ(ends.total(), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("weft: rank 2 has ended, but rank 0 has waited for messages for 0.3 s; ending all ranks\n"));
}

TEST(Heartbeats, LetRanksGoOnWhileTheirMessagesEnd) {
  // Rank 2 has ended. Twelve messages, which are started at once, follow each other from rank 1 to rank 0 for 1.2 s.
  constexpr int kMessages = 12;
  InProcessNetwork network(3, {.bytes_per_second = 1e6});
  const Bytes sent(100'000);
  std::vector<Bytes> got(kMessages, Bytes(sent.size()));
  Ends sends(kMessages), receives(kMessages);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Messenger messenger(network.Connect(rank), kTimeout);
      for (int i = 0; i < kMessages; ++i) {
        if (rank == 0) messenger.Receive(absl::MakeSpan(got[i]), 1, 0, receives.done(i));
        if (rank == 1) messenger.Send(sent, 0, 0, sends.done(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(network.exit_code().has_value());
  EXPECT_EQ(receives.total(), kMessages);
}

TEST(Heartbeats, NeedATimeout) {
  InProcessNetwork network(2);
  const auto silent = network.Connect(1);
  {
    Messenger messenger(network.Connect(0));
    Sleep(0.1);
  }
  EXPECT_FALSE(network.exit_code().has_value());
}

TEST(Heartbeats, NeedAnotherRank) {
  InProcessNetwork network(1);
  {
    Messenger messenger(network.Connect(0), /*timeout_seconds=*/0.05);
    Sleep(0.2);
  }
  EXPECT_FALSE(network.exit_code().has_value());
}

}  // namespace
}  // namespace weft
