// Tests the answers of the server, through its own HTTP.
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "weft/tests/serve/server_fixture.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST_F(ServerTest, NamesItsModels) {
  Serve();
  const auto models = Json::parse(Client().Get("/v1/models")->body);
  ASSERT_EQ(models["data"].size(), 3);
  EXPECT_EQ(models["data"][0]["id"], "gpt");
  EXPECT_EQ(models["data"][0]["weft"]["tasks"], Json({"completions", "attention", "chat"}));
  EXPECT_EQ(Json::parse(Client().Get("/v1/models/bert")->body)["weft"]["kind"], "bert");
  EXPECT_EQ(Client().Get("/v1/models/other")->status, 404);
  EXPECT_EQ(Client().Get("/health")->body, R"({"status":"ok"})");
  EXPECT_THAT(Client().Get("/")->body, HasSubstr("<title>"));
}

TEST_F(ServerTest, APortThatIsTakenIsAnError) {
  Serve();
  const auto second = Server::Start({}, {.port = server_->port()});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot listen on 127.0.0.1:"));
}

TEST_F(ServerTest, CompletesTexts) {
  Serve();
  const auto [status, answer] = Post("/v1/completions", {{"model", "gpt"},
                                                         {"prompt", {"the ", "a"}},
                                                         {"max_tokens", 7},
                                                         {"n", 2},
                                                         {"logprobs", 3},
                                                         {"temperature", 0.7}});
  ASSERT_EQ(status, 200) << answer;
  ASSERT_EQ(answer["choices"].size(), 4);
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["usage"], Json({{"prompt_tokens", 5}, {"completion_tokens", 28}, {"total_tokens", 33}}));
  const Json& choice = answer["choices"][3];
  EXPECT_EQ(choice["index"], 3);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 7);
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0].size(), 3);
  std::string text;
  for (const Json& token : choice["logprobs"]["tokens"]) text += token.get<std::string>();
  EXPECT_EQ(choice["text"], text);
  const std::string whole = Complete({{"temperature", 0}});
  EXPECT_EQ(whole.size(), 20);
  for (const char* penalty : {"repetition_penalty", "presence_penalty", "frequency_penalty"}) {
    EXPECT_NE(Complete({{"temperature", 0}, {penalty, 2}}), whole) << penalty;
    EXPECT_EQ(Complete({{"temperature", 0}, {penalty, penalty[0] == 'r' ? 1 : 0}}), whole) << penalty;
  }
  EXPECT_EQ(Complete({{"temperature", 0}, {"stop", whole.substr(5, 2)}}),
            whole.substr(0, whole.find(whole.substr(5, 2))));
  // The server holds back a character that may begin the stop text, but the next token begins after it.
  Json request = {{"prompt", "the "}, {"max_tokens", 4}, {"temperature", 0}, {"logprobs", 0}};
  const Json offsets = Post("/v1/completions", request).second["choices"][0]["logprobs"]["text_offset"];
  EXPECT_EQ(offsets, Json({0, 1, 2, 3}));
  request["stop"] = whole.substr(1, 1) + "never";
  EXPECT_EQ(Post("/v1/completions", request).second["choices"][0]["logprobs"]["text_offset"], offsets);
}

// Decoding drops the space at the beginning of a text, so that "▁a" alone would be "a", which is another token.
TEST_F(ServerTest, LogprobsNameTokensWithTheSpaceBeforeThem) {
  Write("pieces.json", R"({"model": {"type": "BPE", "vocab": {"▁": 0, "a": 1, "b": 2, "▁a": 3, "▁b": 4},
                                     "merges": ["▁ a", "▁ b"]},
                           "pre_tokenizer": {"type": "Metaspace"}, "decoder": {"type": "Metaspace"}})");
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a b ab ba ";
  Write("pieces.txt", text);
  MakeRun("pieces", {"--data=pieces.txt", "--tokenizer=pieces.json", "--context=64"});
  names_ = {"pieces"};
  Serve();
  constexpr int kTokens = 5;  // of the vocabulary
  const auto [status, answer] =
      Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 30}, {"temperature", 1}, {"logprobs", kTokens}});
  ASSERT_EQ(status, 200) << answer;
  const Json& choice = answer["choices"][0];
  std::string joined;
  for (const Json& token : choice["logprobs"]["tokens"]) joined += token.get<std::string>();
  EXPECT_EQ(choice["text"], joined);
  EXPECT_THAT(joined, HasSubstr(" "));
  EXPECT_EQ(choice["logprobs"]["text_offset"].back(),
            joined.size() - choice["logprobs"]["tokens"].back().get<std::string>().size());
  for (const Json& top : choice["logprobs"]["top_logprobs"]) EXPECT_EQ(top.size(), kTokens) << top;
}

// Two tokens have the text "a". More likeliest tokens are asked for than there are.
TEST_F(ServerTest, LogprobsHaveTheBytesOfTokensThatAreNoCharacters) {
  Write("bytes.json", R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
                                    "vocab": {"a": 0, "<0x61>": 1, "<0x82>": 2, "<0xAC>": 3, "<0xE2>": 4, "<0xEF>": 5}},
                          "decoder": {"type": "ByteFallback"}})");
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a\u20ac\u20acaa\u20ac";
  Write("bytes.txt", text);
  MakeRun("bytes", {"--data=bytes.txt", "--tokenizer=bytes.json", "--context=64"});
  Write("bytes/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  names_ = {"bytes"};
  Serve();
  const auto [status, chat] = Post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                                                            {"max_tokens", 1},
                                                            {"logprobs", true},
                                                            {"top_logprobs", 20}});
  ASSERT_EQ(status, 200) << chat;
  const Json& likeliest = chat["choices"][0]["logprobs"]["content"][0]["top_logprobs"];
  EXPECT_EQ(likeliest.size(), 6);
  Json logprobs = Json::object(), bytes = Json::object();
  for (const Json& each : likeliest) {
    const std::string token = each["token"];
    bytes[token] = each["bytes"];
    logprobs.emplace(token[0] == '\\' ? "bytes:" + token : token, each["logprob"]);  // the likelier "a"
  }
  EXPECT_EQ(bytes, Json({{"a", {0x61}}, {"\\x82", {0x82}}, {"\\xac", {0xAC}}, {"\\xe2", {0xE2}}, {"\\xef", {0xEF}}}));
  const Json answer = Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}, {"logprobs", 20}}).second;
  EXPECT_EQ(answer["choices"][0]["logprobs"]["top_logprobs"][0], logprobs);
}

TEST_F(ServerTest, TheFilesOfAModelGiveTheDefaultLength) {
  Serve();
  Write("gpt/generation_config.json", R"({"max_new_tokens": 5})");
  Serve({.max_tokens = 9});
  const auto tokens = [&](const std::string& path, Json body) {
    body["model"] = "gpt";
    const auto [status, answer] = Post(path, body);
    EXPECT_EQ(status, 200) << answer;
    return answer["usage"]["completion_tokens"];
  };
  EXPECT_EQ(tokens("/v1/completions", {{"prompt", "the "}}), 5);
  EXPECT_EQ(tokens("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "the end"}}}}}), 5);
  EXPECT_EQ(tokens("/v1/completions", {{"prompt", "the "}, {"max_tokens", 7}}), 7);
  Serve({.max_tokens = 3});
  EXPECT_EQ(tokens("/v1/completions", {{"prompt", "the "}}), 3);
}

// OpenServedModel reads the family of a model from config.json. This folder has no file of weights.
TEST_F(ServerTest, AVitIsRefusedByItsConfiguration) {
  std::filesystem::create_directory(Path("vit"));
  Write("vit/config.json", R"({"model_type": "vit"})");
  const auto served = OpenServedModel("vit", Path("vit"), {});
  EXPECT_THAT(std::string(served.status().message()), HasSubstr("an encoder-decoder, but this is a ViT"));
}

TEST_F(ServerTest, StreamsTheSameText) {
  Serve();
  const auto stream = [&](const std::string& path, Json body) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    return Client().Post(path, body.dump(), "application/json")->body;
  };
  const Json body = {{"model", "gpt"}, {"prompt", "the "}, {"max_tokens", 20}, {"seed", 3}};
  std::string text, last;
  for (const absl::string_view event : absl::StrSplit(stream("/v1/completions", body), "\n\n", absl::SkipEmpty())) {
    ASSERT_TRUE(absl::StartsWith(event, "data: "));
    last = std::string(event.substr(6));
    if (last == "[DONE]") break;
    const Json chunk = Json::parse(last);
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(text, Complete({{"seed", 3}}));

  const Json chat = {{"model", "gpt"}, {"messages", {{{"role", "user"}, {"content", "the end"}}}}, {"max_tokens", 9}};
  const auto [status, answer] = Post("/v1/chat/completions", chat);
  ASSERT_EQ(status, 200) << answer;
  std::string content;
  int64_t tokens = 0;
  for (const absl::string_view event :
       absl::StrSplit(stream("/v1/chat/completions", chat), "\n\n", absl::SkipEmpty())) {
    const Json chunk = Json::parse(event.substr(6), nullptr, false);
    if (chunk.is_discarded()) continue;
    if (chunk.contains("usage")) tokens = chunk["usage"]["completion_tokens"];
    for (const Json& choice : chunk["choices"]) content += choice["delta"].value("content", "");
  }
  EXPECT_EQ(answer["choices"][0]["message"]["content"], content);
  EXPECT_EQ(tokens, 9);
}

// No other server on CPUs promises this: a request's answer depends on the request alone.
TEST_F(ServerTest, ARequestHasTheSameAnswerInAnyCompanyAndOnAnyNumberOfThreads) {
  const auto body = [](size_t i) {
    return Json({{"prompt", std::string("the end of all ").substr(i % 9)}, {"seed", i}, {"max_tokens", 5 + i % 30}});
  };
  constexpr size_t kRequests = 100, kOthers = 50;
  std::vector<std::string> alone;
  Serve({}, /*threads=*/1, /*batch=*/1);
  for (size_t i = 0; i < kRequests; ++i) alone.push_back(Complete(body(i)));
  for (const int64_t threads : {1, 2, 4}) {
    Serve({}, threads, /*batch=*/16);
    std::vector<std::string> together(kRequests);
    std::vector<std::thread> clients;
    for (size_t i = 0; i < kRequests; ++i) {
      clients.emplace_back([&, i] { together[i] = Complete(body(i)); });
    }
    for (size_t i = 0; i < kOthers; ++i) {
      clients.emplace_back([&, i] { Complete({{"prompt", "other"}, {"seed", i}, {"n", 1 + i % 3}, {"stop", "e"}}); });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(together, alone) << threads;
  }
}

TEST_F(ServerTest, EmbedsClassifiesAndTranslates) {
  Serve();
  const auto [status, answer] = Post("/v1/embeddings", {{"model", "bert"}, {"input", {"a", "a b"}}});
  ASSERT_EQ(status, 200) << answer;
  EXPECT_EQ(answer["data"][1]["embedding"].size(), 8);
  const auto coded = Post("/v1/embeddings", {{"model", "bert"}, {"input", "a"}, {"encoding_format", "base64"}}).second;
  EXPECT_EQ(coded["data"][0]["embedding"].get<std::string>().size(), 44);  // 8 numbers of 4 bytes
  const auto model = OpenServedModel("bert", Path("bert"), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const BertEncoder& encoder = *(*model)->encoder;
  const Json ids = encoder.tokenizer().Wrap(*encoder.Tokens("a b")).ids;
  for (const Json& input : {ids, Json::array({ids, ids})}) {
    const Json same = Post("/v1/embeddings", {{"model", "bert"}, {"input", input}}).second;
    EXPECT_EQ(same["data"].back()["embedding"], answer["data"][1]["embedding"]) << input;
  }
  const Json unknown = Post("/v1/embeddings", {{"model", "bert"}, {"input", {{1}, {1, 100000}}}}).second;
  EXPECT_THAT(unknown["error"]["message"].get<std::string>(), HasSubstr("input: text 1: it has the token 100000"));
  const auto translated = Post("/translate", {{"model", "transformer"}, {"text", "a b\nc"}});
  ASSERT_EQ(translated.first, 200) << translated.second;
  EXPECT_EQ(translated.second["translations"].size(), 2);
  EXPECT_EQ(translated.second["translations"][1]["source"], "c");
  EXPECT_EQ(Post("/translate", {{"model", "transformer"}, {"text", "a b\r\nc"}}).second, translated.second);
  const auto attention = Post("/attention", {{"model", "transformer"}, {"text", "a b"}});
  ASSERT_EQ(attention.first, 200) << attention.second;
  EXPECT_EQ(attention.second["cross"].size(), 2);
}

TEST_F(ServerTest, ClassifiesTheWordsOfAText) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += i % 2 == 0 ? "runs O\nLondon B-LOC\n\n" : "London B-LOC\n\n";
  Write("words.conll", words);
  ASSERT_TRUE(Works(
      Weft({"train", "classify", "--task=tokens", "--data=words.conll", "--out=tagger", "--vocabulary=300",
            "--layers=1", "--width=16", "--heads=2", "--context=24", "--batch=8", "--steps=2", "--warmup-steps=1"})));
  names_ = {"tagger"};
  Serve();
  const auto [status, answer] = Post("/v1/classify", {{"input", " London runs\t so "}});
  ASSERT_EQ(status, 200) << answer;
  const Json& got = answer["results"][0]["words"];
  ASSERT_EQ(got.size(), 3) << answer;
  EXPECT_EQ(got[1]["word"], "runs");
  EXPECT_EQ(got[1]["labels"].size(), 2);
}

// The texts of one batch would have other last digits than a text alone.
TEST_F(ServerTest, ClassifiesManyTextsAsAlone) {
  WriteTrainingData();
  ASSERT_TRUE(Works(Weft(SmallTraining("classify") + Arguments{"--out=classifier"})));
  names_ = {"classifier"};
  Serve();
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(absl::StrCat("the ", i, " end"));
  const auto [status, answer] = Post("/v1/classify", {{"input", texts}});
  ASSERT_EQ(status, 200) << answer;
  ASSERT_EQ(answer["results"].size(), texts.size());
  for (const size_t i : {0, 7, 8, 19}) {
    EXPECT_EQ(Post("/v1/classify", {{"input", texts[i]}}).second["results"][0], answer["results"][i]) << i;
  }
}

// Each text of a request to classify is a job of its own, and the tokens of generated texts are computed between them.
TEST_F(ServerTest, AStreamGoesOnWhileTextsAreClassified) {
  WriteTrainingData();
  ASSERT_TRUE(Works(Weft(SmallTraining("classify") + Arguments{"--out=classifier"})));
  names_ = {"gpt", "classifier"};
  Serve();
  constexpr int kRequests = 4;
  std::atomic<int> classified = 0;
  std::thread classification;
  httplib::Request request;
  request.method = "POST";
  request.path = "/v1/completions";
  request.body = Json({{"model", "gpt"}, {"prompt", "the "}, {"max_tokens", 10}, {"stream", true}}).dump();
  request.content_receiver = [&](const char*, size_t, uint64_t, uint64_t) {
    if (classification.joinable()) return true;
    classification = std::thread([&] {
      const std::vector<std::string> texts(256, "the end of a sentence of some length");
      for (; classified < kRequests; ++classified) {
        EXPECT_EQ(Post("/v1/classify", {{"model", "classifier"}, {"input", texts}}).first, 200);
      }
    });
    return true;
  };
  const httplib::Result result = Client().send(request);
  EXPECT_LT(classified, kRequests);  // 10 tokens wait for 10 of the 1024 texts at most
  ASSERT_TRUE(classification.joinable());
  classification.join();
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->status, 200);
}

TEST_F(ServerTest, ErrorsNameTheField) {
  Serve({.max_tokens = 30});
  const Json wrong[] = {
      {{"prompt", 1}},
      {{"temperature", "hot"}},
      {{"temperature", 101}},
      {{"max_tokens", 31}},
      {{"max_tokens", 0}},
      {{"n", 1000}},
      {{"top_p", 2}},
      {{"stop", {1, 2}}},
      {{"logit_bias", {{"x", 1}}}},
      {{"logit_bias", {{"1000", 1}}}},
      {{"seed", 0.5}},
      {{"presence_penalty", 2.5}},
      {{"frequency_penalty", "1"}},
      {{"stream_options", {{"include_usage", true}}}},  // without stream
      {{"suffix", "x"}},
      {{"prompt", {1, 2, 1000}}},
  };
  for (const Json& fields : wrong) {
    Json body = {{"model", "gpt"}, {"prompt", "the "}};
    body.update(fields);
    const auto [status, answer] = Post("/v1/completions", body);
    EXPECT_EQ(status, 400) << body;
    EXPECT_EQ(answer["error"]["param"], fields.begin().key()) << answer;
    EXPECT_EQ(answer["error"]["type"], "invalid_request_error");
  }
  const auto message = [&](const std::string& path, const Json& body) {
    return Post(path, body).second["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(message("/v1/completions", {{"model", "gtp"}, {"prompt", ""}}),
            "there is no model 'gtp', did you mean 'gpt'?, wanted one of gpt, bert, transformer");
  EXPECT_THAT(message("/v1/completions", {{"model", "bert"}, {"prompt", ""}}), HasSubstr("'bert' can't do this"));
  EXPECT_THAT(message("/v1/chat/completions", {{"model", "gpt"}, {"messages", {{{"role", 1}}}}}),
              HasSubstr("messages[0]: wanted an object"));
  EXPECT_THAT(message("/v1/completions", {{"prompt", std::string(65, 'a')}}),
              HasSubstr("but the model's context is 64"));
  for (const char* text : {"", "{", "[]", "{\"prompt\": \"\\ud800\"}", "{\"a\": 1, \"a\": 2}"}) {
    EXPECT_EQ(PostText("/v1/completions", text).first, 400) << text;
  }
  EXPECT_EQ(message("/v1/completions", {{"prompt", ""}, {"temperature", "hot"}}),
            "temperature: got \"hot\", wanted a number");
  EXPECT_EQ(PostText("/v1/completions", std::string(2 << 20, ' ')).first, 413);
  EXPECT_EQ(PostText("/v1/completions", R"({"model": "gtp"})").second["error"]["code"], "model_not_found");
  EXPECT_EQ(PostText("/models", "{}").second["error"]["code"], "unknown_url");
}

TEST_F(ServerTest, AKeyIsWanted) {
  Serve({.api_key = "secret"});
  EXPECT_EQ(Post("/v1/completions", {{"prompt", "the "}}).first, 401);
  EXPECT_EQ(Client().Get("/v1/models")->status, 401);
  EXPECT_EQ(Client().Get("/health")->status, 200);
  EXPECT_EQ(Client().Get("/v1/models", {{"Authorization", "Bearer secre"}})->status, 401);
  EXPECT_EQ(Client().Get("/v1/models", {{"Authorization", "Bearer secret"}})->status, 200);
}

TEST_F(ServerTest, PagesOfOtherSitesGetNoAnswer) {
  const auto status = [&](const httplib::Headers& headers) {
    const int got = Client().Get("/v1/models", headers)->status;
    const auto posted = Client().Post("/v1/completions", headers, R"({"prompt": "a"})", "application/json");
    EXPECT_EQ(posted->status, got);
    return got;
  };
  Serve();
  for (const char* host : {"localhost", "LOCALHOST:80", "a.localhost:80", "127.0.0.1:8080", "10.0.0.1", "[::1]:80"}) {
    EXPECT_EQ(status({{"Host", host}}), 200) << host;
    EXPECT_EQ(status({{"Host", host}, {"Origin", absl::StrCat("http://", host)}}), 200) << host;
    EXPECT_EQ(status({{"Host", host}, {"Origin", "http://evil.example"}}), 403) << host;
    EXPECT_EQ(status({{"Host", host}, {"Origin", "null"}}), 403) << host;
  }
  for (const char* host : {"evil.example", "127.evil.example:80", "localhost.evil.example", "[::1].evil.example"}) {
    EXPECT_EQ(status({{"Host", host}}), 403) << host;
  }
  Serve({.api_key = "secret"});
  EXPECT_EQ(status({{"Host", "a.example"}, {"Origin", "http://b.example"}, {"Authorization", "Bearer secret"}}), 200);
  EXPECT_THAT(std::string(Server::Start({}, {.api_key = "a%41"}).status().message()), HasSubstr("api-key: it has"));
}

}  // namespace
}  // namespace weft
