// `weft embed` as a user calls it.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class EmbedTest : public WeftProgramTest {};

TEST_F(EmbedTest, PaddingChangesNothing) {
  WriteBert("model");
  const Bert bert({.vocabulary = 6, .context = 20, .layers = 2, .heads = 2, .width = 8, .feed_forward = 12});
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {1, 5}}, {.below = 6});
  const Var embedding = bert.SentenceEmbedding(bert.Encode(tokens));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {embedding}, .mode = kEval});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(parameters.Load(Path("model/model.safetensors")).ok());
  const std::vector<int32_t> ids = {1, 4, 4, 5, 2};  // [CLS] a a ##b [SEP]
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
  ASSERT_TRUE(out.ok()) << out.status();
  const absl::Span<const float> wanted = (*out)[embedding].span<const float>();

  Write("texts.txt", "A ab\n\na\n");
  const CommandResult result = Weft({"embed", "--model=model", "texts.txt"});
  ASSERT_TRUE(Works(result));
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  const std::vector<double> got = Json::parse(lines[0]);
  ASSERT_EQ(got.size(), wanted.size());
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-6);
    squares += got[i] * got[i];
  }
  EXPECT_NEAR(squares, 1, 1e-5);
}

TEST_F(EmbedTest, SaysWhatDoesNotFit) {
  WriteBert("model");
  Write("long.txt", "a\n" + std::string(40, 'a') + "\na a a a a a a a a a a a a a a a a a a\n");
  Write("model/modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  Write("model/sentence_bert_config.json", R"({"max_seq_length":21})");
  const CommandResult result = Weft({"embed", "--model=model", "long.txt"});
  EXPECT_TRUE(Fails(result, 2, "long.txt, line 3: it has 21 tokens, but the model's context is 20; truncate would"));
  const CommandResult cut = Weft({"embed", "--model=model", "--truncate", "long.txt"});
  EXPECT_TRUE(Works(cut));
  // sentence-transformers cuts to the model's positions if no other length is given.
  for (const char* const length : {"null", "20"}) {
    Write("model/sentence_bert_config.json", absl::StrCat(R"({"max_seq_length":)", length, "}"));
    EXPECT_EQ(Weft({"embed", "--model=model", "long.txt"}).out, cut.out) << length;
  }
  std::filesystem::remove(Path("model/modules.json"));
  EXPECT_EQ(Weft({"embed", "--model=model", "long.txt"}).out, cut.out);
  EXPECT_TRUE(Fails(Weft({"embed"}), 2, "--model=MODEL is missing"));
  EXPECT_TRUE(Fails(Weft({"embed", "--model=missing"}), 2, "missing"));
  Write("model/vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\na\n##b\n");
  EXPECT_EQ(Weft({"embed", "--model=model", "long.txt"}).err,
            "note: model/vocab.txt: line 5 repeats the token 'a', whose id is now 4 and not 3\n");
  Write("model/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\nc\n");
  EXPECT_TRUE(Fails(Weft({"embed", "--model=model"}), 2, "the tokenizer has 7 tokens, but the model's table 6"));
  WriteBert("model", /*context=*/2);
  EXPECT_TRUE(Fails(Weft({"embed", "--model=model", "--truncate"}), 2, "the model's context is 2, but the format's"));
  Write("model/config.json", "{\"model_type\":\"xlnet\"}");
  EXPECT_TRUE(
      Fails(Weft({"embed", "--model=model"}), 2, "model_type is \"xlnet\", which is not supported; wanted one of "));
}

TEST_F(EmbedTest, PoolsAsTheFolderSays) {
  WriteBert("model");
  Write("texts.txt", "a ab\n");
  const CommandResult mean = Weft({"embed", "--model=model", "texts.txt"});
  std::filesystem::create_directories(Path("model/1_Pooling"));
  const auto embed = [&](const std::string& pooling, const std::string& more = "") {
    Write("model/modules.json",
          "[{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
          "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}" +
              more + "]");
    Write("model/1_Pooling/config.json", "{\"word_embedding_dimension\":8," + pooling + "}");
    return Weft({"embed", "--model=model", "texts.txt"});
  };
  EXPECT_EQ(embed("\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":false").out, mean.out);
  EXPECT_EQ(embed("\"pooling_mode\":\"mean\"").out, mean.out);
  const CommandResult first = embed("\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false");
  EXPECT_TRUE(Works(first));
  EXPECT_NE(first.out, mean.out);
  EXPECT_TRUE(Fails(embed("\"pooling_mode_max_tokens\":true,\"pooling_mode_mean_tokens\":true"), 2,
                    "model/1_Pooling/config.json: 'pooling_mode_max_tokens' is true, but no key that is known"));
  EXPECT_TRUE(Fails(embed("\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true"), 2, "several are set"));
  EXPECT_TRUE(Fails(embed("\"pooling_mode_mean_sqrt_len_tokens\":true,\"pooling_mode_mean_tokens\":true"), 2,
                    "several are set"));
  EXPECT_TRUE(Fails(embed("\"pooling_mode\":\"max\""), 2, "pooling_mode is \"max\", which is not supported"));
  EXPECT_TRUE(Fails(embed("\"pooling_mode\":\"cls\"", ",{\"path\":\"2\",\"type\":\"x.models.Dense\"}"), 2,
                    "model/modules.json: the module {\"path\":\"2\",\"type\":\"x.models.Dense\"} is not supported"));
  Write("model/modules.json", "[7]");
  EXPECT_TRUE(Fails(Weft({"embed", "--model=model", "texts.txt"}), 2, "the module 7 is not supported"));
}

// sentence-transformers 6.2 puts the prompt before a text, lowercases both, and cuts the tokens.
TEST_F(EmbedTest, PreparesTextsAsTheFolderSays) {
  WriteBert("model");
  Write("model/tokenizer_config.json", "{\"do_lower_case\":false}");
  const auto embed = [&](const std::string& text, const Arguments& more = {}) {
    Write("text.txt", text + "\n");
    return Weft(Arguments{"embed", "--model=model", "text.txt"} + more);
  };
  const std::string one = embed("a").out, two = embed("a a").out, three = embed("ab a a").out, upper = embed("A").out;
  const std::string lower = embed("ab").out, unknown = embed("[UNK]").out;
  Write("model/sentence_bert_config.json", R"({"max_seq_length":4,"do_lower_case":true})");
  EXPECT_EQ(embed("ab a a").out, three) << "only folders with modules.json use the file";
  Write("model/modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  EXPECT_EQ(embed("a a a a").out, two);
  EXPECT_NE(upper, one);
  EXPECT_EQ(embed("A").out, one);
  EXPECT_EQ(embed("AB").out, lower);
  EXPECT_EQ(embed("[UNK]").out, unknown);  // and not "[unk]"
  Write("model/sentence_bert_config.json", R"({"max_seq_length":1})");
  EXPECT_TRUE(Fails(embed("a"), 2, "model: the maximum number of tokens is 1, but the special tokens are 2"));
  Write("model/sentence_bert_config.json", R"({"model_args":{"x":1}})");
  EXPECT_TRUE(Fails(embed("a"), 2, "sentence_bert_config.json: model_args is {\"x\":1}, which is not supported"));
  Write("model/sentence_bert_config.json", R"({"model_args":{"attn_implementation":"sdpa"},"max_seq_length":4})");
  EXPECT_EQ(embed("a a a a").out, two);
  Write("model/sentence_bert_config.json", "{}");
  Write("model/tokenizer_config.json", R"({"do_lower_case":false,"model_max_length":4})");
  EXPECT_EQ(embed("a a a a").out, two);
  Write("model/tokenizer_config.json", R"({"do_lower_case":false,"model_max_length":1e30})");
  EXPECT_EQ(embed("ab a a").out, three);

  const auto settings = [&](const std::string& json) { Write("model/config_sentence_transformers.json", json); };
  settings(R"({"prompts":{"query":"ab ","document":"", "passage":null},"default_prompt_name":"query"})");
  EXPECT_EQ(embed("a a").out, three);
  EXPECT_EQ(embed("a a", {"--prompt-name=document"}).out, two);
  EXPECT_EQ(embed("a a", {"--prompt-name=passage"}).out, two);
  EXPECT_TRUE(Fails(embed("a", {"--prompt-name=other"}), 2, "prompts has no text 'other'; it is {\"query\":\"ab \","));
  settings(R"({"prompts":{"query":"ab "},"default_prompt_name":null})");
  EXPECT_EQ(embed("a a").out, two);
  EXPECT_EQ(embed("a a", {"--prompt-name=query"}).out, three);
  for (const char* const prompts : {"[]", "null", R"(["ab "])"}) {
    settings(absl::StrCat(R"({"prompts":)", prompts, "}"));
    EXPECT_TRUE(Fails(embed("a"), 2, "config_sentence_transformers.json: prompts is ")) << prompts;
  }
  settings(R"({"truncate_dim":4})");
  EXPECT_TRUE(Fails(embed("a"), 2, "config_sentence_transformers.json: truncate_dim is 4, which is not supported"));
}

TEST_F(EmbedTest, GivesMiniLmsEmbeddings) {
  const char *minilm = std::getenv("WEFT_MINILM"), *data = std::getenv("WEFT_DATA");
  if (minilm == nullptr || data == nullptr) GTEST_SKIP() << "WEFT_MINILM or WEFT_DATA is not set";
  const Json items = Json::parse(std::ifstream(absl::StrCat(data, "/minilm-l6-v2/expected.json")))["items"];
  std::string text;
  for (const Json& item : items) absl::StrAppend(&text, item["text"].get<std::string>(), "\n");
  Write("texts.txt", text);
  const CommandResult result = Weft({"embed", absl::StrCat("--model=", minilm), "texts.txt"});
  ASSERT_TRUE(Works(result));
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), items.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<double> got = Json::parse(lines[i]), wanted = items[i]["sentence_embedding"];
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t c = 0; c < got.size(); ++c) ASSERT_NEAR(got[c], wanted[c], 1e-4) << items[i]["text"];
  }
  // Its max_seq_length is 256.
  text.clear();
  for (int i = 0; i < 400; ++i) absl::StrAppend(&text, "word", i % 7, " is here ");
  Write("texts.txt", text);
  const CommandResult cut = Weft({"embed", absl::StrCat("--model=", minilm), "texts.txt"});
  ASSERT_TRUE(Works(cut));
  const std::vector<double> got = Json::parse(cut.out);
  const double wanted[] = {-0.052415, -0.047154, -0.032294, -0.058571,
                           -0.003560, 0.031859,  0.033336,  -0.078519};  // sentence-transformers 6.2
  for (size_t c = 0; c < std::size(wanted); ++c) EXPECT_NEAR(got[c], wanted[c], 1e-5);
}

}  // namespace
}  // namespace weft
