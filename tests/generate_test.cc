// `weft generate` as a user calls it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/tests/weft_program.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class GenerateTest : public WeftProgramTest {
 protected:
  void SetUp() override { MakeRun("run", {"--checkpoint-every=10"}); }
  CommandResult Generate(const Arguments& more) const { return Weft(Arguments{"generate", "--model=run"} + more); }
  std::string Generated(const Arguments& more) const {
    const CommandResult result = Generate(more);
    EXPECT_TRUE(Works(result));
    return result.out;
  }
};

TEST_F(GenerateTest, ContinuesThePrompt) {
  const std::string text = Generated({"--prompt=line 1", "--length=30"});
  EXPECT_EQ(text.substr(0, 6), "line 1");
  EXPECT_EQ(text.size(), 6 + 30 + 1);
  EXPECT_EQ(Generated({"--prompt=line", "--length=0"}), "line\n");
  EXPECT_EQ(Generated({"--length=25"}).size(), 26);
  EXPECT_EQ(Generated({}).size(), 501);
  EXPECT_EQ(Generated({"--prompt=", "--length=5"}), Generated({"--length=5"}));
}

TEST_F(GenerateTest, OneSeedGivesOneText) {
  const std::string text = Generated({"--prompt=a", "--length=200", "--seed=3"});
  for (const char* threads : {"--threads=1", "--threads=2", "--threads=4"}) {
    EXPECT_EQ(Generated({"--prompt=a", "--length=200", "--seed=3", threads}), text);
  }
  EXPECT_NE(Generated({"--prompt=a", "--length=200", "--seed=4"}), text);
  EXPECT_NE(Generated({"--prompt=a", "--length=200", "--seed=3", "--temperature=0.2"}), text);
  EXPECT_NE(Generated({"--prompt=a", "--length=200", "--seed=3", "--top-k=2"}), text);
}

TEST_F(GenerateTest, WithoutChanceTheLikeliestIsTaken) {
  const std::string text = Generated({"--temperature=0", "--seed=1"});
  EXPECT_EQ(Generated({"--temperature=0", "--seed=2"}), text);
  EXPECT_EQ(Generated({"--top-k=1", "--seed=3"}), text);
}

TEST_F(GenerateTest, DraftsChangeNoText) {
  const Arguments how = {"--prompt=a", "--length=200", "--temperature=0.3"};
  EXPECT_EQ(Generated(how + Arguments{"--draft=6"}), Generated(how));
}

TEST_F(GenerateTest, ASmallModelGuesses) {
  MakeRun("small", {"--layers=1", "--width=8"});
  const Arguments how = {"--prompt=a", "--length=200", "--temperature=0.3"};
  EXPECT_EQ(Generated(how + Arguments{"--draft-model=small"}), Generated(how));
  EXPECT_EQ(Generated(how + Arguments{"--draft-model=small", "--draft=9"}), Generated(how));
  Write("other.txt", "abcdefghijklmnopqrstuvwxyz#" + std::string(100, '.'));
  MakeRun("fewer", {"--data=other.txt"});
  EXPECT_TRUE(Fails(Generate({"--draft-model=fewer"}), 2, "--draft-model: fewer has"));
  EXPECT_TRUE(Fails(Generate({"--draft-model=nothing"}), 2, "--draft-model: "));
}

TEST_F(GenerateTest, ABeamSearchesTheLikeliestText) {
  const Arguments how = {"--prompt=a", "--length=6"};
  EXPECT_EQ(Generated(how + Arguments{"--beam=1"}), Generated(how + Arguments{"--temperature=0"}));
  EXPECT_EQ(Generated(how + Arguments{"--beam=5"}).size(), 8);
  Write("prompts.txt", "a\nline\n");
  EXPECT_EQ(Generated({"--beam=5", "--length=6", "prompts.txt"}).substr(0, 8), Generated(how + Arguments{"--beam=5"}));
  for (const char* flag : {"--top-k", "--presence-penalty", "--draft"}) {
    const std::string error = absl::StrCat(flag, " has no use with --beam");
    EXPECT_TRUE(Fails(Generate({"--beam=5", absl::StrCat(flag, "=2")}), 2, error));
  }
  EXPECT_TRUE(Fails(Generate({"--length-penalty=2"}), 2, "--length-penalty needs --beam"));
  EXPECT_TRUE(Fails(Generate({"--presence-penalty=2.5"}), 2, "--presence-penalty: 2.5 is not in -2 .. 2"));
}

TEST_F(GenerateTest, LogprobsAreThoseOfTheModel) {
  const std::string out = Generated({"--prompt=a", "--length=20", "--json", "--logprobs=3", "--top-k=2", "--seed=4"});
  const auto json = nlohmann::json::parse(out);
  std::string text = "a";
  for (const auto& token : json["tokens"]) {
    text += token["text"].get<std::string>();
    ASSERT_EQ(token["likeliest"].size(), 3);
    double sum = 0, before = 0;
    for (const auto& likely : token["likeliest"]) {
      EXPECT_LE(likely["logprob"], before);
      before = likely["logprob"];
      sum += std::exp(before);
    }
    EXPECT_LE(sum, 1);
    EXPECT_TRUE(token["id"] == token["likeliest"][0]["id"] || token["id"] == token["likeliest"][1]["id"]) << "top-k";
  }
  EXPECT_EQ(json["text"], text);
  EXPECT_EQ(json["tokens"].size(), 20);
  // The shape is the same without a token.
  const std::string none = "{\"text\":\"a\",\"tokens\":[]}\n";
  EXPECT_EQ(Generated({"--prompt=a", "--length=0", "--json", "--logprobs=3"}), none);
  Write("prompts.txt", "a\na\n");
  EXPECT_EQ(Generated({"--length=0", "--json", "--logprobs=3", "prompts.txt"}), none + none);
  EXPECT_TRUE(Fails(Generate({"--logprobs=3"}), 2, "--logprobs needs --json"));
}

TEST_F(GenerateTest, ALogitBiasExcludesOrForcesAToken) {
  const auto json =
      nlohmann::json::parse(Generated({"--prompt=a", "--length=1", "--temperature=0", "--json", "--logprobs=1"}));
  const std::string likeliest = absl::StrCat(json["tokens"][0]["id"].get<int>());
  const std::string usual = Generated({"--prompt=a", "--length=30", "--temperature=0"});
  EXPECT_NE(Generated({"--prompt=a", "--length=30", "--temperature=0", "--logit-bias={\"" + likeliest + "\": -1e9}"}),
            usual);
  const std::string forced = Generated({"--prompt=a", "--length=4", "--logit-bias={\"" + likeliest + "\": 1000}"});
  EXPECT_EQ(forced, "a" + std::string(4, json["tokens"][0]["text"].get<std::string>()[0]) + "\n");
  EXPECT_TRUE(Fails(Generate({"--logit-bias=[1]"}), 2, "wanted a JSON object"));
  EXPECT_TRUE(Fails(Generate({"--logit-bias={\"a\": 1}"}), 2, "'a': 1 is not the number of a token and a number"));
  const CommandResult beyond = Generate({"--logit-bias={\"9999\": 1}"});
  EXPECT_TRUE(Fails(beyond, 2, "weft generate: --logit-bias: the token 9999 gets the number 1, wanted a token from 0"));
  EXPECT_EQ(beyond.out, "");
}

TEST_F(GenerateTest, RefusesAPromptOutsideTheVocabulary) {
  const CommandResult result = Generate({"--prompt=line é"});
  EXPECT_TRUE(Fails(result, 2, "does not have U+00E9 'é', at byte 5"));
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(Fails(Generate({"--prompt=line \xFF"}), 2, "not UTF-8 at byte 5 (0xFF)"));
}

TEST_F(GenerateTest, RefusesWeightsThatAreDamagedOrForeign) {
  MakeRun("wider", {"--width=32"});
  const std::string weights = Read("run/model.safetensors");
  const struct {
    std::string contents, message;
  } rows[] = {
      {weights.substr(0, weights.size() / 2), "is no valid safetensors file"},
      {weights.substr(0, 5), "the file has only 5 bytes"},
      {"", "the file has only 0 bytes"},
      {weights + "x", "is no valid safetensors file"},
      {std::string(1000, 'x'), "bad header"},
      {Read("wider/model.safetensors"), "16"},
  };
  for (const auto& [contents, message] : rows) {
    Write("run/model.safetensors", contents);
    const CommandResult result = Generate({});
    EXPECT_TRUE(Fails(result, 2, message));
    EXPECT_TRUE(Contains(result.err, "run/model.safetensors")) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(GenerateTest, TakesTheNewestCheckpointWithoutAModel) {
  const std::string text = Generated({});
  fs::remove(Path("run/model.safetensors"));
  EXPECT_EQ(Generated({}), text);
  fs::remove_all(Path("run/checkpoints"));
  EXPECT_TRUE(Fails(Generate({}), 2, "neither model.safetensors nor a checkpoint"));
}

TEST_F(GenerateTest, RefusesAFolderThatHoldsNoRun) {
  fs::remove(Path("run/tokenizer.json"));
  EXPECT_TRUE(Fails(Generate({}), 2, "run: the folder has none of tokenizer.json"));
  Write("run/tokenizer.json", "{}");
  EXPECT_TRUE(Fails(Generate({}), 2, "run/tokenizer.json: it has neither"));
  Write("run/config.json", "{}x");
  EXPECT_TRUE(Fails(Generate({}), 2, "run/config.json: it is not JSON: line 1, column 3"));
  EXPECT_TRUE(Fails(Weft({"generate", "--model=text.txt"}), 2, "text.txt is not a checkpoint of llama2.c"));
}

TEST_F(GenerateTest, ContinuesEachLineAsIfItWereAlone) {
  Write("prompts.txt", "line 1\na\nof a\nline\n");
  std::string wanted;
  for (const char* prompt : {"line 1", "a", "of a", "line"}) {
    wanted += Generated({absl::StrCat("--prompt=", prompt), "--length=20"});
  }
  for (const char* batch : {"--batch=1", "--batch=3", "--batch=8"}) {
    EXPECT_EQ(Generated({"--length=20", batch, "prompts.txt"}), wanted) << batch;
  }
  const std::string weft = fs::absolute("apps/weft").string() + " generate --length=20 --model=" + Path("run");
  EXPECT_EQ(RunCommand({"sh", "-c", weft + " <" + Path("prompts.txt")}).out, wanted);
}

TEST_F(GenerateTest, JsonTellsTextsWithLineBreaksApart) {
  Write("prompts.txt", "line 1\na\n");
  std::string wanted;
  bool breaks = false;
  for (const char* prompt : {"line 1", "a"}) {
    std::string text = Generated({absl::StrCat("--prompt=", prompt), "--length=60", "--temperature=2"});
    text.pop_back();
    breaks = breaks || Contains(text, "\n");
    wanted += nlohmann::json(text).dump() + "\n";
  }
  EXPECT_TRUE(breaks);
  EXPECT_EQ(Generated({"--json", "--length=60", "--temperature=2", "prompts.txt"}), wanted);
  EXPECT_EQ(Generated({"--json", "--length=0", "--prompt=a"}), "\"a\"\n");
}

TEST_F(GenerateTest, LinesThatCannotBeContinuedAreNamed) {
  Write("prompts.txt", "a\n\nline\n");
  EXPECT_EQ(Generated({"--length=3", "prompts.txt"}), Generated({"--length=3", "--prompt=a"}) +
                                                          Generated({"--length=3", "--prompt="}) +
                                                          Generated({"--length=3", "--prompt=line"}));
  Write("prompts.txt", "a\nline \xFF\n");
  EXPECT_TRUE(Fails(Generate({"prompts.txt"}), 2, "prompts.txt, line 2: not UTF-8 at byte 5 (0xFF)"));
  Write("prompts.txt", "line 1 of a text\n");
  EXPECT_TRUE(
      Fails(Generate({"prompts.txt"}), 2,
            "prompts.txt, line 1: it has 16 tokens, but the model's context is 8; truncate would take its end"));
  EXPECT_EQ(Generated({"--truncate", "--length=0", "prompts.txt"}), "line 1 of a text\n");
  EXPECT_TRUE(Fails(Generate({"--prompt=line 1 of a text"}), 2, "it has 16 tokens"));
}

TEST_F(GenerateTest, EndsBeforeTheStop) {
  const std::string text = Generated({"--prompt=a", "--length=60"}), stop = text.substr(20, 2);
  const size_t end = text.find(stop, 1);
  EXPECT_EQ(Generated({"--prompt=a", "--length=60", "--stop=" + stop}), text.substr(0, end) + "\n");
  const std::string stops = nlohmann::json({"no such text", stop}).dump();
  EXPECT_EQ(Generated({"--prompt=a", "--length=60", "--stop=" + stops}), text.substr(0, end) + "\n");
}

// Writes an untrained Llama of bytes in Hugging Face's layout. The weights of its queries are `query`, if that is not
// 0.
void WriteLlama(const std::string& folder, int64_t rows, float query = 0) {
  fs::create_directories(folder);
  std::ofstream(folder + "/tokenizer.json") << "{\"type\": \"byte\"}";
  std::ofstream(folder + "/config.json")
      << "{\"model_type\":\"llama\",\"vocab_size\":" << rows
      << ",\"max_position_embeddings\":16,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"hidden_size\":8,"
         "\"intermediate_size\":12,\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":true}";
  Tape tape;
  GptConfig config = {.vocabulary = rows, .context = 16, .layers = 1, .heads = 2, .width = 8, .feed_forward = 12};
  config.activation = Activation::kSilu;
  config.bias = false;
  config.norm.kind = NormKind::kRmsNorm;
  config.gated = true;
  config.attention.rotary = RotaryLayout::kHalves;
  config.names = GptConfig::Names::kLlama;
  const Var logits = Gpt(config).Logits(tape.Input("tokens", {kI32, {1, 4}}, {.below = rows}));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 5});
  const Runner runner(*graph, &parameters);  // creates them
  if (query != 0) {
    const absl::Span<float> weights = parameters.Find("model.layers.0.self_attn.q_proj.weight")->span<float>();
    std::fill(weights.begin(), weights.end(), query);
  }
  const absl::Status saved = parameters.Save(folder + "/model.safetensors");
  ASSERT_TRUE(saved.ok()) << saved;
}

TEST_F(GenerateTest, TakesAPublishedFolder) {
  WriteLlama(Path("llama"), 260);  // rows of padding, beyond the 256 bytes
  const CommandResult result = Weft({"generate", "--model=llama", "--prompt=caf\xC3\xA9", "--length=400",
                                     "--temperature=3", "--top-p=0.95", "--slide"});
  EXPECT_TRUE(Works(result));
  EXPECT_EQ(result.out.substr(0, 5), "caf\xC3\xA9");
  EXPECT_TRUE(CheckUtf8(result.out).ok()) << "half characters are not printed";
  fs::create_directory(Path("bytes"));
  fs::rename(Path("llama/tokenizer.json"), Path("bytes/tokenizer.json"));
  EXPECT_TRUE(Fails(Weft({"generate", "--model=llama"}), 2, "llama: the folder has none of tokenizer.json"));
  EXPECT_TRUE(Works(Weft({"generate", "--model=llama", "--tokenizer=bytes", "--length=3"})));
  WriteLlama(Path("small"), 200);
  EXPECT_TRUE(
      Fails(Weft({"generate", "--model=small"}), 2, "small: the tokenizer has 256 tokens, but the model's table 200"));
}

TEST_F(GenerateTest, DrawsNoTokenThatTheTokenizerLacks) {
  WriteLlama(Path("llama"), 500);
  const auto json = nlohmann::json::parse(
      Weft({"generate", "--model=llama", "--prompt=a", "--length=15", "--temperature=9", "--json", "--logprobs=300"})
          .out);
  for (const auto& token : json["tokens"]) {
    EXPECT_LT(token["id"], 256);
    EXPECT_EQ(token["likeliest"].size(), 256);
  }
}

TEST_F(GenerateTest, WeightsThatOverflowAreAnError) {
  WriteLlama(Path("llama"), 256, 3e38f);
  for (const char* const how : {"--temperature=0", "--temperature=1", "--beam=2"}) {
    const CommandResult result = Weft({"generate", "--model=llama", "--prompt=abc", "--length=5", how});
    EXPECT_TRUE(Fails(result, 1, "not finite, because its weights are too large; the first NaN is from ")) << how;
    EXPECT_TRUE(Contains(result.err, "layers.0")) << result.err;
  }
  WriteLlama(Path("nan"), 256, std::nanf(""));
  EXPECT_TRUE(Fails(Weft({"export", "--model=nan", "--out=out"}), 1, "q_proj.weight' f32[8,8] is NaN"));
  EXPECT_FALSE(Exists("out"));
}

TEST_F(GenerateTest, OutputThatIsLostIsAnError) {
  const std::string weft = "echo a | " + fs::absolute("apps/weft").string() + " ", run = " --model=" + Path("run");
  for (const std::string& command : {"generate --length=3" + run, std::string("--version"), "chat" + run}) {
    const CommandResult result = RunCommand({"sh", "-c", weft + command + " >&-"});
    EXPECT_TRUE(Fails(result, 1, "standard output could not be written")) << command;
  }
}

TEST_F(GenerateTest, TellsTheStoryOfStories260K) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string folder = absl::StrCat(data, "/stories260K");
  const std::string story = nlohmann::json::parse(std::ifstream(folder + "/expected.json"))["greedy_text"];
  for (const char* file : {"/checkpoint_legacy.bin", "/checkpoint_v1.bin"}) {
    const CommandResult result =
        Weft({"generate", absl::StrCat("--model=", folder, file), "--prompt=", "--temperature=0", "--length=256"});
    EXPECT_TRUE(Works(result));
    EXPECT_EQ(result.out, story + "\n");
  }
}

}  // namespace
}  // namespace weft
