// ServerTest is a fixture of tests that serve small models and send requests to them.
//
//   TEST_F(ServerTest, HasNoOtherRoutes) {
//     Serve();
//     EXPECT_EQ(Post("/other", {{"prompt", "a"}}).first, 404);
//   }
#ifndef WEFT_TESTS_SERVE_SERVER_FIXTURE_H_
#define WEFT_TESTS_SERVE_SERVER_FIXTURE_H_

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/apps/serve/server.h"
#include "weft/tests/weft_program.h"

namespace weft {

class ServerTest : public WeftProgramTest {
 protected:
  using Json = nlohmann::json;

  // Serves the models `names_`. "gpt" is a GPT of characters, whose tokenizer has a chat template, "bert" a BERT
  // without a classifier, and "transformer" an encoder-decoder.
  void Serve(ServerOptions options = {}, int64_t threads = 1, int64_t batch = 8) {
    if (!Exists("gpt")) {
      MakeRun("gpt", {"--tokenizer=characters", "--context=64"});
      Write("gpt/chat_template.jinja", "{% for m in messages %}{{ m.content }} {% endfor %}");
      WriteBert("bert");
      WriteTransformer("transformer");
    }
    const TextGeneratorOptions generator = {.runtime = {.batch = batch, .threads = threads}};
    std::vector<std::unique_ptr<ServedModel>> models;
    for (const std::string& name : names_) {
      auto model = OpenServedModel(name, Path(name), generator);
      ASSERT_TRUE(model.ok()) << model.status();
      models.push_back(*std::move(model));
    }
    options.port = 0;
    auto server = Server::Start(std::move(models), options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  httplib::Client Client() const { return httplib::Client("127.0.0.1", server_->port()); }
  int Connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0), buffer = 4096;
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(server_->port()))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  // A request whose answer has several MB, more than the kernel holds for a client that does not read.
  std::string LongBody() const {
    return Json({{"prompt", "a"}, {"n", 200}, {"max_tokens", 60}, {"logprobs", 18}}).dump();
  }
  void SendLong(int socket) const { SendCompletion(socket, LongBody()); }
  void SendCompletion(int socket, const std::string& body) const {
    const std::string head = "POST /v1/completions HTTP/1.1\r\nContent-Length: ";
    const std::string request = absl::StrCat(head, body.size(), "\r\n\r\n", body);
    EXPECT_EQ(send(socket, request.data(), request.size(), MSG_NOSIGNAL), request.size());
  }
  // Posts JSON, and returns the status and the answer.
  std::pair<int, Json> Post(const std::string& path, const Json& body) const { return PostText(path, body.dump()); }
  std::pair<int, Json> PostText(const std::string& path, const std::string& body) const {
    httplib::Client client = Client();
    client.set_read_timeout(60);
    const auto result = client.Post(path, body, "application/json");
    if (!result) return {0, to_string(result.error())};
    return {result->status, Json::parse(result->body, nullptr, /*allow_exceptions=*/false)};
  }
  std::string Complete(const Json& more = Json::object()) const {
    Json body = {{"model", "gpt"}, {"prompt", "the "}, {"max_tokens", 20}};
    body.update(more);
    const auto [status, answer] = Post("/v1/completions", body);
    EXPECT_EQ(status, 200) << answer;
    return status == 200 ? answer["choices"][0]["text"].get<std::string>() : answer.dump();
  }
  std::string Metric(const std::string& name) const {
    const auto result = Client().Get("/metrics");
    for (const absl::string_view line : absl::StrSplit(result->body, '\n')) {
      if (absl::ConsumePrefix(&const_cast<absl::string_view&>(line), name + " ")) return std::string(line);
    }
    return "";
  }

  // The folders of the models to serve; a test may write and name others.
  std::vector<std::string> names_ = {"gpt", "bert", "transformer"};
  std::unique_ptr<Server> server_;
};

}  // namespace weft

#endif  // WEFT_TESTS_SERVE_SERVER_FIXTURE_H_
