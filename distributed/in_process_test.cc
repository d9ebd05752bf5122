#include "weft/distributed/in_process.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/communicator.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;
using Request = Communicator::Request;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Polls once and returns the requests that have ended.
std::vector<Request> Poll(Communicator* communicator) {
  std::vector<Request> ended;
  communicator->Progress(&ended);
  return ended;
}

// Polls until `count` more requests have ended.
void WaitFor(Communicator* communicator, size_t count) {
  for (std::vector<Request> ended; ended.size() < count; std::this_thread::yield()) communicator->Progress(&ended);
}

struct Pair {
  explicit Pair(const InProcessOptions& options = {}) : network(2, options) {}
  InProcessNetwork network;
  const std::unique_ptr<Communicator> a = network.Connect(0), b = network.Connect(1);
};

TEST(InProcess, HasRankAndSize) {
  InProcessNetwork network(3);
  const auto communicator = network.Connect(2);
  EXPECT_EQ(communicator->rank(), 2);
  EXPECT_EQ(communicator->size(), 3);
}

TEST(InProcess, TellsWhenARankHasSomethingToDo) {
  Pair pair({.latency_seconds = 60});
  int wakes_of_a = 0, wakes_of_b = 0;
  pair.a->SetWake([&] { ++wakes_of_a; });
  pair.b->SetWake([&] { ++wakes_of_b; });
  const Bytes sent(3, std::byte{1});
  Bytes received(3);
  pair.b->Receive(absl::MakeSpan(received), 0, 5);
  EXPECT_EQ(pair.b->NextProgress(), Clock::time_point::max());
  pair.a->Send(sent, 1, 5);
  EXPECT_EQ(wakes_of_b, 1);
  EXPECT_LE(pair.b->NextProgress(), Clock::now());
  EXPECT_EQ(pair.a->NextProgress(), Clock::time_point::max());
  EXPECT_THAT(Poll(pair.b.get()), IsEmpty());  // copies the bytes
  EXPECT_EQ(wakes_of_a, 1);
  EXPECT_LE(pair.a->NextProgress(), Clock::now());
  EXPECT_GT(pair.b->NextProgress(), Clock::now() + std::chrono::seconds(30));  // the bytes arrive after the latency
}

TEST(InProcess, ReceivesMessagesOfOneTagInTheOrderOfSending) {
  Pair pair;
  const Bytes first(3, std::byte{1}), second(3, std::byte{2}), other(3, std::byte{9});
  Bytes got_first(3), got_second(3), got_other(3);
  EXPECT_EQ(pair.a->Send(first, 1, 5), 0);
  EXPECT_EQ(pair.a->Send(second, 1, 5), 1);
  EXPECT_EQ(pair.b->Receive(absl::MakeSpan(got_other), 0, 6), 0);
  EXPECT_EQ(pair.b->Receive(absl::MakeSpan(got_first), 0, 5), 1);
  EXPECT_EQ(pair.b->Receive(absl::MakeSpan(got_second), 0, 5), 2);
  EXPECT_THAT(Poll(pair.b.get()), UnorderedElementsAre(1, 2));
  EXPECT_THAT(Poll(pair.a.get()), UnorderedElementsAre(0, 1));
  EXPECT_EQ(got_first, first);
  EXPECT_EQ(got_second, second);

  pair.a->Send(other, 1, 6);
  EXPECT_THAT(Poll(pair.b.get()), ElementsAre(0));
  EXPECT_THAT(Poll(pair.a.get()), ElementsAre(2));
  EXPECT_EQ(got_other, other);
}

TEST(InProcess, CarriesMessagesToOneselfAndOfNoBytes) {
  InProcessNetwork network(1);
  const auto communicator = network.Connect(0);
  const Bytes sent = {std::byte{7}};
  Bytes got(1);
  communicator->Send(sent, 0, 0);
  communicator->Send({}, 0, 1);
  communicator->Receive(absl::MakeSpan(got), 0, 0);
  communicator->Receive({}, 0, 1);
  WaitFor(communicator.get(), 4);
  EXPECT_EQ(got, sent);
}

TEST(InProcess, EndsASendOnlyAfterItsReceiveHasBegun) {
  Pair pair;
  const Bytes sent(1);
  Bytes got(1);
  pair.a->Send(sent, 1, 0);
  EXPECT_THAT(Poll(pair.a.get()), IsEmpty());
  pair.b->Receive(absl::MakeSpan(got), 0, 0);
  WaitFor(pair.b.get(), 1);
  EXPECT_THAT(Poll(pair.a.get()), ElementsAre(0));
}

TEST(InProcessDeathTest, ReceivesAsManyBytesAsWereSent) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Pair pair;
  const Bytes sent(8);
  Bytes got(4);
  pair.a->Send(sent, 1, 3);
  EXPECT_DEATH(pair.b->Receive(absl::MakeSpan(got), 0, 3),
               "rank 0 sends 8 bytes to rank 1 with tag 3, but the receive expects 4 bytes");
}

TEST(InProcess, ImitatesLatency) {
  Pair pair({.latency_seconds = 0.05});
  const Bytes sent(1);
  Bytes got(1);
  const Clock::time_point start = Clock::now();
  pair.b->Receive(absl::MakeSpan(got), 0, 0);
  pair.a->Send(sent, 1, 0);
  EXPECT_THAT(Poll(pair.b.get()), IsEmpty());
  EXPECT_THAT(Poll(pair.a.get()), ElementsAre(0));  // the byte has left
  WaitFor(pair.b.get(), 1);
  EXPECT_GE(SecondsSince(start), 0.05);
  EXPECT_LT(SecondsSince(start), 0.5);
}

TEST(InProcess, ImitatesBandwidthOfEachDirection) {
  constexpr double kBytesPerSecond = 10e6, kLatency = 0.02;
  Pair pair({.latency_seconds = kLatency, .bytes_per_second = kBytesPerSecond});
  const Bytes sent(500'000);  // 50 ms each
  std::vector<Bytes> got(4, Bytes(sent.size()));
  const Clock::time_point start = Clock::now();
  // Each side gets two messages. Messages in one direction follow each other; the two directions are independent.
  for (int i = 0; i < 2; ++i) {
    pair.b->Receive(absl::MakeSpan(got[i]), 0, 0);
    pair.a->Send(sent, 1, 0);
    pair.a->Receive(absl::MakeSpan(got[2 + i]), 1, 0);
    pair.b->Send(sent, 0, 0);
  }
  // Rank 1: requests 0 and 2 are receives, 1 and 3 are sends. Rank 0: 0 and 2 are sends, 1 and 3 are receives.
  std::vector<double> a_ends(4), b_ends(4);
  for (int ended = 0; ended < 8;) {
    for (const Request request : Poll(pair.a.get())) a_ends[request] = SecondsSince(start), ++ended;
    for (const Request request : Poll(pair.b.get())) b_ends[request] = SecondsSince(start), ++ended;
  }
  const auto expect = [](double got, double want) {
    EXPECT_GE(got, want - 1e-4);
    EXPECT_LT(got, want + 0.2);
  };
  for (int i = 0; i < 2; ++i) {
    expect(a_ends[2 * i], 0.05 * (i + 1));
    expect(b_ends[2 * i + 1], 0.05 * (i + 1));
    expect(a_ends[2 * i + 1], 0.05 * (i + 1) + kLatency);
    expect(b_ends[2 * i], 0.05 * (i + 1) + kLatency);
  }
  EXPECT_LE(a_ends[0], b_ends[0]);
}

TEST(InProcess, EndsNoMessageAfterAbort) {
  Pair pair;
  EXPECT_FALSE(pair.network.exit_code().has_value());
  pair.a->Abort(3);
  pair.b->Abort(4);
  EXPECT_EQ(pair.network.exit_code(), 3);
  const Bytes sent(1);
  Bytes got(1);
  pair.a->Send(sent, 1, 0);
  pair.b->Receive(absl::MakeSpan(got), 0, 0);
  EXPECT_THAT(Poll(pair.b.get()), IsEmpty());
  EXPECT_THAT(Poll(pair.a.get()), IsEmpty());
}

}  // namespace
}  // namespace weft
