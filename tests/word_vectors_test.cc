// `weft word-vectors` as a user calls it, on a model of 6 tokens: [UNK] [CLS] [SEP] [PAD] a ##b.
#include <filesystem>
#include <sstream>

#include "nlohmann/json.hpp"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Vector = std::vector<double>;

class WordVectorsTest : public WeftProgramTest {
 protected:
  void SetUp() override { WriteBert("model"); }

  CommandResult WordVectors(const Arguments& more) const {
    return Weft(Arguments{"word-vectors", "--model=model"} + more);
  }
  std::vector<Json> Vectors(const Arguments& more) const {
    const CommandResult result = WordVectors(Arguments{"--vectors"} + more);
    EXPECT_TRUE(Works(result));
    std::vector<Json> objects;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) objects.push_back(Json::parse(line));
    return objects;
  }
};

// The hidden states of tokens after some of the layers of the model in `folder`, and its table of token embeddings.
struct Reference {
  std::vector<Vector> hidden, table;
};
Reference ReferenceOf(const std::string& folder, const std::vector<int32_t>& ids, int64_t layers) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {1, static_cast<int64_t>(ids.size())}}, {.below = 6});
  const Bert bert({.vocabulary = 6, .context = 20, .layers = layers, .heads = 2, .width = 8, .feed_forward = 12});
  const Var hidden = bert.Encode(tokens), table = tape.FindParameter("embeddings.word_embeddings.weight");
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {hidden, table}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  const std::string weights = folder + "/model.safetensors";
  EXPECT_TRUE(parameters.Load(weights, Parameters::kWeights, Parameters::kMayHaveMore).ok());
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
  EXPECT_TRUE(out.ok()) << out.status();
  const auto rows = [&](Var matrix) {
    std::vector<Vector> result;
    const absl::Span<const float> all = (*out)[matrix].span<const float>();
    for (size_t i = 0; i < all.size(); i += 8) result.emplace_back(all.begin() + i, all.begin() + i + 8);
    return result;
  };
  return {rows(hidden), rows(table)};
}

void ExpectNear(const Vector& got, const Vector& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

Vector Mean(const Vector& a, const Vector& b) {
  Vector mean;
  for (size_t i = 0; i < a.size(); ++i) mean.push_back((a[i] + b[i]) / 2);
  return mean;
}

TEST_F(WordVectorsTest, AreTheHiddenStatesOfTheWordsPieces) {
  Write("texts.txt", "A ab, a\n");  // [CLS] a a ##b [UNK] a [SEP]
  for (const int64_t layer : {1, 2}) {
    const Reference reference = ReferenceOf(Path("model"), {1, 4, 4, 5, 0, 4, 2}, layer);
    const std::string flag = "--layer=" + std::to_string(layer);
    const std::vector<Json> a = Vectors({"--word=a", flag, "texts.txt"});
    ASSERT_EQ(a.size(), 2u);  // the "a" of "ab" is none
    EXPECT_EQ(a[0]["sentence"], "A ab, a");
    EXPECT_EQ(a[0]["word"], "a");
    ExpectNear(a[0]["static"], reference.table[4]);
    ExpectNear(a[0]["contextual"], reference.hidden[1]);
    ExpectNear(a[1]["static"], reference.table[4]);
    ExpectNear(a[1]["contextual"], reference.hidden[5]);
    const std::vector<Json> ab = Vectors({"--word=AB", flag, "texts.txt"});
    ASSERT_EQ(ab.size(), 1u);
    ExpectNear(ab[0]["static"], Mean(reference.table[4], reference.table[5]));
    ExpectNear(ab[0]["contextual"], Mean(reference.hidden[2], reference.hidden[3]));
  }
  EXPECT_EQ(WordVectors({"--word=a", "texts.txt"}).out, WordVectors({"--word=a", "--layer=2", "texts.txt"}).out);
}

TEST_F(WordVectorsTest, PrintsATableOfCosines) {
  Write("texts.txt", "a\r\nab a ab A\r\na");
  const CommandResult result = WordVectors({"--word=a", "texts.txt"});
  ASSERT_TRUE(Works(result));
  std::istringstream lines(result.out);
  std::string header;
  std::getline(lines, header);
  EXPECT_EQ(header, "       static       1     2.1     2.2       3");
  const std::vector<std::string> names = {"1", "2.1", "2.2", "3"}, texts = {"a", "ab a ab A", "ab a ab A", "a"};
  std::vector<Vector> cosines;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name, text;
    Vector row(5);
    lines >> name;
    for (double& x : row) lines >> x;
    std::getline(lines, text);
    EXPECT_EQ(name, names[i]);
    EXPECT_EQ(text, "  " + texts[i]);
    cosines.push_back(row);
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(cosines[i][i + 1], 1);
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(cosines[i][j + 1], cosines[j][i + 1]);
  }
  EXPECT_EQ(cosines[0], cosines[3]);  // the same sentence
  EXPECT_LT(cosines[1][3], 0.9995);   // two positions in one sentence
  Write("empty.txt", "");
  EXPECT_EQ(WordVectors({"--word=a", "empty.txt"}).out, "");
}

// Without marks for the beginning or the rest of a word, pieces can't be told from words: the "a" of "ba" would count.
TEST_F(WordVectorsTest, RefusesTokenizersThatDoNotMarkWords) {
  std::filesystem::remove(Path("model/vocab.txt"));
  Write("texts.txt", "ba\n");
  const char* const byte_level =
      "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\u0120\":2,\"\u0120a\":3},\"merges\":[\"\u0120 a\"]},"
      "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
      "\"decoder\":{\"type\":\"ByteLevel\"}}";
  for (const char* tokenizer :
       {byte_level, "{\"type\":\"character\",\"characters\":[\" \",\"a\",\"b\",\"c\",\"d\"]}"}) {
    Write("model/tokenizer.json", tokenizer);
    const CommandResult result = WordVectors({"--word=a", "texts.txt"});
    EXPECT_TRUE(Fails(result, 2, "model: its tokenizer gives a word other pieces after a space"));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(WordVectorsTest, SaysWhatDoesNotFit) {
  Write("texts.txt", "a\nab\n");
  Write("empty_line.txt", "a\n\na\n");
  Write("latin1.txt", "a\na \xE9\n");
  Write("long.txt", "a\nab ab ab ab ab ab ab ab ab ab ab ab ab a\n");
  std::filesystem::create_directory(Path("folder"));
  const struct {
    Arguments arguments;
    const char* message;
  } rows[] = {
      {{"--word=a", "texts.txt"}, "texts.txt, line 2: it does not have the word 'a'"},
      {{"--word=a", "empty_line.txt"}, "empty_line.txt, line 2: it does not have the word 'a'"},
      {{"--word=a", "latin1.txt"}, "latin1.txt, line 2: not UTF-8 at byte 2 (0xE9)"},
      {{"--word=a", "long.txt"}, "long.txt, line 2: it has 29 tokens, but the model's context is 20; truncate would"},
      {{"--word=a", "--truncate", "long.txt"}, "long.txt, line 2: it does not have the word 'a' before the cut"},
      {{"--word=a", "missing.txt"}, "missing.txt: No such file"},
      {{"--word=a", "folder"}, "folder: it is a folder"},
      {{"--word=c", "texts.txt"}, "--word: model's vocabulary has no pieces for 'c'"},
      {{"--word= ", "texts.txt"}, "--word: model's vocabulary has no pieces for ' '"},
      {{"--word=\xFF", "texts.txt"}, "--word: not UTF-8 at byte 0 (0xFF)"},
      {{"texts.txt"}, "--word=WORD is missing"},
      {{"--word=a", "--layer=3", "texts.txt"}, "--model: the model has 2 layers, not 3"},
      {{"--word=a", "--layer=-1", "texts.txt"}, "--layer: -1 is less than 0"},
      {{"--word=a", "--model=", "texts.txt"}, "--model"},
      {{"--word=a", "--model=missing", "texts.txt"}, "missing"},
      {{"--word=a", "--model=folder", "texts.txt"}, "cannot open folder/config.json: No such file"},
  };
  for (const auto& [arguments, message] : rows) {
    const CommandResult result = WordVectors(arguments);
    EXPECT_TRUE(Fails(result, 2, message));
    EXPECT_EQ(result.out, "") << message;
  }
  const CommandResult cut = WordVectors({"--word=ab", "--truncate", "long.txt"});
  EXPECT_TRUE(Fails(cut, 2, "long.txt, line 1: it does not have the word 'ab'"));
  Write("model/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\nc\n");
  EXPECT_TRUE(Fails(WordVectors({"--word=a"}), 2, "model: the tokenizer has 7 tokens, but the model's table 6"));
}

}  // namespace
}  // namespace weft
