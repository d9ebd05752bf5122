// Tests the limits of the server: of connections, of texts that wait, and of the bytes and the time of requests and
// answers.
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "weft/tests/serve/server_fixture.h"

namespace weft {
namespace {

TEST_F(ServerTest, BoundsTheNumbersOfAnAnswer) {
  Serve({.max_tokens = 1 << 20});
  Json body = {{"prompt", "the "}, {"n", 256}, {"max_tokens", 1 << 20}, {"logprobs", 14}};
  EXPECT_EQ(Post("/v1/completions", body).first, 200);  // 256 * 64 * 16 = 262144
  body["logprobs"] = 15;
  const auto [status, answer] = Post("/v1/completions", body);
  EXPECT_EQ(status, 400);
  EXPECT_EQ(answer["error"]["message"],
            "max_tokens: 256 texts of up to 64 tokens with 16 log-probabilities each are more than 262144 numbers");
}

TEST_F(ServerTest, AFullQueueAnswers503) {
  Serve({.queue = 1}, /*threads=*/1, /*batch=*/1);
  EXPECT_EQ(Post("/v1/completions", {{"prompt", "the "}, {"n", 2}}).first, 400);  // would never fit
  const std::string body = Json({{"prompt", "the "}, {"max_tokens", 50}}).dump();
  std::atomic<int> done = 0, refused = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 40; ++i) {
    clients.emplace_back([&] {
      const auto result = Client().Post("/v1/completions", body, "application/json");
      done += result->status == 200;
      if (result->status == 503 && result->get_header_value("Retry-After") == "1") ++refused;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(done, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(done + refused, 40);
}

// A client that does not read its response keeps a connection for a bounded time. Further clients wait meanwhile.
TEST_F(ServerTest, ASlowReaderIsCutOff) {
  Serve({.limits = {.connections = 1, .write = absl::Seconds(2)}});
  httplib::Client client = Client();
  client.set_read_timeout(60);
  const auto read = client.Post("/v1/completions", LongBody(), "application/json");
  ASSERT_TRUE(read) << to_string(read.error());
  const int socket = Connect();
  SendLong(socket);
  const auto other = client.Get("/health");  // waits until the slow reader is cut off
  ASSERT_TRUE(other) << to_string(other.error());
  size_t got = 0;
  char part[4096];
  for (ssize_t count; (count = recv(socket, part, sizeof(part), 0)) > 0;) got += static_cast<size_t>(count);
  EXPECT_GT(got, 0);
  EXPECT_LT(got, read->body.size());
  close(socket);
}

// The unread body of a refused request is not the next request. The server ignores ranges and encodings.
TEST_F(ServerTest, ARefusedRequestEndsItsConnection) {
  Serve({.api_key = "secret"});
  httplib::Client client = Client();
  client.set_keep_alive(true);
  for (int i = 0; i < 3; ++i) {
    const auto refused = client.Post("/v1/completions", std::string(50'000, 'x'), "application/json");
    ASSERT_TRUE(refused) << to_string(refused.error());
    EXPECT_EQ(refused->status, 401);
    EXPECT_EQ(refused->get_header_value("Connection"), "close");
    const auto page = client.Get("/", {{"Range", "bytes=0-,0-,0-,0-"}, {"Accept-Encoding", "br, gzip"}});
    ASSERT_TRUE(page) << to_string(page.error());
    EXPECT_EQ(page->status, 200);
    EXPECT_TRUE(absl::StartsWith(page->body, "<!DOCTYPE html>")) << page->body.substr(0, 50);
  }
}

// One client's connection is idle, the next one does not read its response, and others wait for a thread.
TEST_F(ServerTest, StopsWhileAllConnectionsAreBusy) {
  Serve({.limits = {.connections = 2}});
  httplib::Client client = Client();
  client.set_keep_alive(true);
  EXPECT_EQ(client.Get("/health")->status, 200);
  const std::vector<int> sockets = {Connect(), Connect(), Connect()};
  SendLong(sockets[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const absl::Time begin = absl::Now();
  server_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  for (const int socket : sockets) close(socket);
}

TEST_F(ServerTest, AClientThatLeavesFreesItsPages) {
  Serve({.max_tokens = 1 << 20});
  for (const bool stream : {true, false}) {
    httplib::Client client = Client();
    client.set_read_timeout(0, 200'000);
    const Json body = {{"prompt", "the "}, {"n", 200}, {"max_tokens", 60}, {"stream", stream}};
    const auto result = client.Post("/v1/completions", body.dump(), "application/json");
    client.stop();
    for (int tries = 0; Metric("weft_texts_running") != "0" && tries < 100; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(Metric("weft_texts_running"), "0");
    EXPECT_EQ(Metric("weft_pages_used"), "0");
  }
}

// A closed socket with SO_LINGER 0 sends a reset.
TEST_F(ServerTest, AClientThatResetsItsStreamFreesItsPages) {
  Serve({.limits = {.connections = 1}});
  const std::string whole = Complete({{"seed", 3}});
  for (int i = 0; i < 5; ++i) {
    const int socket = Connect();
    SendCompletion(socket, Json({{"prompt", "the "}, {"n", 20}, {"max_tokens", 60}, {"stream", true}}).dump());
    char part[64];
    EXPECT_GT(recv(socket, part, sizeof(part), 0), 0);
    const linger reset = {.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(socket);
  }
  EXPECT_EQ(Complete({{"seed", 3}}), whole);
  for (int tries = 0; Metric("weft_pages_used") != "0" && tries < 100; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(Metric("weft_texts_running"), "0");
  EXPECT_EQ(Metric("weft_pages_used"), "0");
}

// accept() fails at the limit of open files. The client waits until a file is closed.
TEST_F(ServerTest, AcceptsAgainOnceAFileIsFree) {
  Serve();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::socket(AF_INET, SOCK_STREAM, 0);  // the lowest number of a file that is free
  ASSERT_GE(next, 0);
  close(next);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(next) + 1;
  const absl::Cleanup restore = [&] { setrlimit(RLIMIT_NOFILE, &before); };
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const int socket = Connect();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(socket, next);
  SendCompletion(socket, Json({{"prompt", "the "}, {"max_tokens", 1}}).dump());
  char status[13] = "";
  EXPECT_EQ(recv(socket, status, sizeof(status) - 1, MSG_WAITALL), 12);
  EXPECT_STREQ(status, "HTTP/1.1 200");
  close(socket);
  EXPECT_EQ(Complete().size(), 20);
}

TEST_F(ServerTest, ASlowSenderIsCutOff) {
  Serve({.limits = {.request = absl::Milliseconds(300)}});
  const int socket = Connect();
  const absl::Time begin = absl::Now();
  ssize_t sent = 1;
  while (sent == 1 && absl::Now() < begin + absl::Seconds(5)) {
    sent = send(socket, "G", 1, MSG_NOSIGNAL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(4));
  close(socket);
  EXPECT_EQ(Complete().size(), 20);
}

}  // namespace
}  // namespace weft
