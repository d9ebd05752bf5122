// `weft evaluate` of models, as a user calls it. Its figures are compared with those that training wrote of the same
// data.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;

class EvaluateTest : public WeftProgramTest {
 protected:
  Json Evaluate(const Arguments& more) const {
    const CommandResult result = Weft(Arguments{"evaluate", "--json"} + more);
    EXPECT_TRUE(Works(result));
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }
  // Returns the metrics that training wrote after its last step.
  Json LastMetrics(const std::string& run) const {
    const std::vector<std::string> lines = absl::StrSplit(Read(run + "/metrics.jsonl"), '\n', absl::SkipEmpty());
    return Json::parse(lines.back());
  }
  void ExpectClassFigures(const Json& figures, const std::string& run, const std::string& labelled) const;
  void ExpectAsTrained(const Json& figures, const std::string& run) const {
    const Json metrics = LastMetrics(run);
    EXPECT_NEAR(figures["loss"].get<double>(), metrics["val_loss"].get<double>(), 2e-5);
    if (metrics.contains("val_accuracy")) {
      EXPECT_NEAR(figures["accuracy"].get<double>(), metrics["val_accuracy"].get<double>(), 1e-9);
    }
  }
};

// Counts with `weft classify`, and computes the figures by their definitions.
void EvaluateTest::ExpectClassFigures(const Json& figures, const std::string& run, const std::string& labelled) const {
  const std::vector<std::string> labels = {"neg", "pos"};
  std::string texts;
  std::vector<std::string> right;
  for (const absl::string_view line : absl::StrSplit(labelled, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    absl::StrAppend(&texts, parts[0], "\n");
    right.push_back(parts[1]);
  }
  Write("texts.txt", texts);
  const CommandResult classified = Weft({"classify", "--model=" + run, "texts.txt"});
  ASSERT_TRUE(Works(classified));
  const std::vector<std::string> predicted = absl::StrSplit(classified.out, '\n');
  for (size_t i = 0; i < labels.size(); ++i) {
    double hits = 0, support = 0, predictions = 0;
    for (size_t j = 0; j < right.size(); ++j) {
      const bool is_right = right[j] == labels[i], is_predicted = predicted[j].rfind(labels[i], 0) == 0;
      hits += is_right && is_predicted;
      support += is_right;
      predictions += is_predicted;
    }
    const Json& row = figures["classes"][i];
    EXPECT_EQ(row["label"], labels[i]);
    EXPECT_EQ(row["support"], support);
    EXPECT_NEAR(row["precision"].get<double>(), predictions == 0 ? 0 : hits / predictions, 1e-12);
    EXPECT_NEAR(row["recall"].get<double>(), hits / support, 1e-12);
    EXPECT_NEAR(row["f1"].get<double>(), 2 * hits / (predictions + support), 1e-12);
    EXPECT_EQ(figures["confusion_matrix"][i][i], hits);
    EXPECT_EQ(figures["confusion_matrix"][i][1 - i], support - hits);
  }
  EXPECT_EQ(figures["macro_average"]["support"], figures["texts"]);
  EXPECT_EQ(figures["weighted_average"]["recall"], figures["accuracy"]);
  const CommandResult text = Weft({"evaluate", "--model=" + run, "validation.tsv"});
  ASSERT_TRUE(Works(text));
  EXPECT_NE(text.out.find("\n\nclass             precision     recall         f1    support\nneg  "),
            std::string::npos);
  EXPECT_NE(text.out.find("\nmacro average"), std::string::npos);
  EXPECT_NE(text.out.find("\nconfusion matrix: a row is a right class"), std::string::npos) << text.out;
}

// 9 of 90 characters are for validation, which holds one window of 8.
TEST_F(EvaluateTest, AGptsLossIsThatOfItsTraining) {
  std::string text;
  while (text.size() < 81) text += "ab cab, ";
  text.resize(81);
  text += "\ncab ab, ";
  ASSERT_EQ(text.size(), 90);
  Write("text.txt", text);
  MakeRun("run");
  Write("validation.txt", "cab ab, ");  // the first token follows a newline
  const Json figures = Evaluate({"--model=run", "validation.txt"});
  ExpectAsTrained(figures, "run");
  const double loss = figures["loss"];
  EXPECT_EQ(figures["tokens"], 8);
  EXPECT_EQ(figures["bytes"], 8);
  EXPECT_NEAR(figures["perplexity"].get<double>(), std::exp(loss), 1e-9);
  EXPECT_NEAR(figures["bits_per_byte"].get<double>(), loss / std::log(2), 1e-9);
  EXPECT_NEAR(figures["byte_perplexity"].get<double>(), std::exp(loss), 1e-9);
  EXPECT_EQ(figures["words"], 2);
  EXPECT_NEAR(figures["word_perplexity"].get<double>(), std::exp(loss * 8 / 2), 1e-6);
  // A window's length changes nothing in a text that it holds.
  EXPECT_EQ(Evaluate({"--model=run", "--stride=3", "validation.txt"}), figures);

  // A text of more windows: the mean over its windows, each of which sees the character before it.
  Write("two.txt", "cab ab, ab c");
  const Json two = Evaluate({"--model=run", "two.txt"}), both = Evaluate({"--model=run", "validation.txt", "two.txt"});
  EXPECT_EQ(two["tokens"], 12);
  EXPECT_EQ(both["tokens"], 20);
  EXPECT_NEAR(both["loss"].get<double>() * 20, loss * 8 + two["loss"].get<double>() * 12, 1e-5);
  EXPECT_GT(two["loss"].get<double>() * 12, loss * 8);
  const CommandResult result = Weft({"evaluate", "--model=run", "validation.txt"});
  ASSERT_TRUE(Works(result));
  EXPECT_EQ(result.out.substr(0, result.out.find('\n')), "tokens         8");
  EXPECT_NE(result.out.find(" nats a token\nperplexity "), std::string::npos) << result.out;
}

// A tokenizer of words has no tokens for white space.
TEST_F(EvaluateTest, ATextWithoutTokensIsNamed) {
  MakeRun("run");  // of 28 tokens
  std::string vocabulary = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n";
  for (char letter = 'a'; letter < 'a' + 20; ++letter) absl::StrAppend(&vocabulary, std::string(1, letter), "\n");
  Write("vocab.txt", vocabulary);
  Write("blank.txt", " \n  \n");
  Write("letter.txt", "a");
  const Arguments evaluate = {"evaluate", "--model=run", "--tokenizer=vocab.txt", "letter.txt"};
  EXPECT_TRUE(Works(Weft(evaluate)));
  EXPECT_TRUE(Fails(Weft(evaluate + Arguments{"blank.txt"}), 2, "blank.txt: there are no tokens in it"));
  Write("spelt.txt", "[SEP] a");
  const Arguments spelt = {"--model=run", "--tokenizer=vocab.txt", "spelt.txt"};
  EXPECT_EQ(Evaluate(spelt)["tokens"], 2);
  EXPECT_EQ(Evaluate(spelt + Arguments{"--special-tokens=false"})["tokens"], 4);
}

TEST_F(EvaluateTest, AClassifiersFiguresAreThoseOfItsTraining) {
  std::string labelled, validation;
  for (int i = 0; i < 60; ++i) {
    std::string& to = i % 3 == 0 ? validation : labelled;
    for (int j = 0; j < i % 11; ++j) to += "so ";
    to += absl::StrCat(i % 7 < 3 ? "good" : "bad", i % 5 == 0 ? "\tpos\n" : "\tneg\n");
  }
  Write("labelled.tsv", labelled);
  Write("validation.tsv", validation);
  ASSERT_TRUE(Works(Weft({"train", "classify", "--data=labelled.tsv", "--validation=validation.tsv", "--vocabulary=300",
                          "--layers=1", "--width=32", "--heads=2", "--feed-forward=64", "--batch=8", "--steps=20",
                          "--eval-every=20", "--out=run"})));
  const Json figures = Evaluate({"--model=run", "validation.tsv"});
  EXPECT_EQ(figures["texts"], 20);
  ExpectAsTrained(figures, "run");
  ExpectClassFigures(figures, "run", validation);
  const Json twice = Evaluate({"--model=run", "--batch=3", "validation.tsv", "validation.tsv"});
  EXPECT_EQ(twice["texts"], 40);
  ExpectAsTrained(twice, "run");
  Write("other.tsv", "good\tpos\nbad\tnone\n");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "other.tsv"}), 2,
                    "other.tsv, line 2: the label 'none' is none of the 2: neg, pos"));
  Write("other.tsv", "good\tpos\n" + std::string(900, 'x') + "\tpos\n");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "other.tsv"}), 2, "other.tsv, line 2: it has "));
  EXPECT_EQ(Evaluate({"--model=run", "--truncate", "other.tsv"})["texts"], 2);
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "--seed=2", "validation.tsv"}), 2,
                    "--seed has no use in evaluating a BERT with a classifier"));
}

TEST_F(EvaluateTest, AVitsFiguresAreThoseOfItsTraining) {
  std::string pictures, validation;
  for (int i = 0; i < 60; ++i) {
    std::string& to = i % 3 == 0 ? validation : pictures;
    for (int pixel = 0; pixel < 16; ++pixel) absl::StrAppend(&to, (7 * i + pixel * pixel) % (5 + i % 2 * 8), ",");
    absl::StrAppend(&to, i % 4 < 2 ? 0 : i % 4 - 1, "\n");
  }
  Write("pictures.csv", pictures);
  Write("validation.csv", validation);
  ASSERT_TRUE(
      Works(Weft({"train", "vit", "--data=pictures.csv", "--validation=validation.csv", "--patch-size=2", "--layers=1",
                  "--width=32", "--heads=2", "--batch=8", "--steps=20", "--eval-every=20", "--out=run"})));
  const Json figures = Evaluate({"--model=run", "validation.csv"});
  EXPECT_EQ(figures["pictures"], 20);
  ExpectAsTrained(figures, "run");
  ExpectAsTrained(Evaluate({"--model=run", "--batch=7", "validation.csv"}), "run");
  Write("other.csv", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,7\n");
  EXPECT_TRUE(
      Fails(Weft({"evaluate", "--model=run", "other.csv"}), 2, "other.csv: the label 7 is none of the model's 3"));
  Write("other.csv", "1,1,1,1,0\n");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "other.csv"}), 2,
                    "other.csv has pictures of 2 x 2 pixels, but the model takes 4 x 4"));
}

// A validation text with one token more than a window has only one window.
TEST_F(EvaluateTest, AMaskedModelsFiguresAreThoseOfItsTraining) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\n");
  std::string text, validation;
  for (int i = 0; i < 300; ++i)
    absl::StrAppend(&text, std::string(1, static_cast<char>('a' + i * i % 5)), i % 10 == 9 ? "\n" : " ");
  for (int i = 0; i < 15; ++i) absl::StrAppend(&validation, std::string(1, static_cast<char>('a' + i * i % 5)), " ");
  Write("text.txt", text);
  Write("validation.txt", validation);
  Write("window.txt", validation.substr(0, 2 * 14));
  const Arguments train = {"train",
                           "bert",
                           "--data=text.txt",
                           "--validation=validation.txt",
                           "--tokenizer=vocab.txt",
                           "--layers=1",
                           "--width=32",
                           "--heads=2",
                           "--feed-forward=64",
                           "--context=16",
                           "--masked=0.4",
                           "--batch=1",
                           "--eval-batches=1",
                           "--steps=30",
                           "--eval-every=30",
                           "--min-learning-rate=0"};
  for (const char* seed : {"--seed=1", "--seed=7"}) {
    ASSERT_TRUE(Works(Weft(train + Arguments{"--out=run", "--overwrite", seed})));
    const Json figures = Evaluate({"--model=run", "--masked=0.4", seed, "window.txt"});
    EXPECT_EQ(figures["masked_tokens"], 6);
    ExpectAsTrained(figures, "run");
  }
  // Windows of 14, and one of the remaining tokens, for any batch size.
  const Json all = Evaluate({"--model=run", "text.txt"}), other = Evaluate({"--model=run", "--batch=4", "text.txt"});
  EXPECT_EQ(all["masked_tokens"], 2 * (300 / 14) + 1);
  EXPECT_NEAR(all["loss"].get<double>(), other["loss"].get<double>(), 1e-5);
  EXPECT_EQ(all["accuracy"], other["accuracy"]);
  Write("short.txt", "a b c");
  EXPECT_EQ(Evaluate({"--model=run", "short.txt"})["masked_tokens"], 1);
  const Json both = Evaluate({"--model=run", "--batch=4", "text.txt", "short.txt"});
  EXPECT_EQ(both["masked_tokens"], all["masked_tokens"].get<int>() + 1);
  EXPECT_NE(both["loss"], all["loss"]);
  Write("none.txt", " \n");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "none.txt"}), 2, "none.txt: there are no tokens in it"));
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=run", "--truncate", "text.txt"}), 2,
                    "--truncate has no use in evaluating a BERT that guesses masked tokens"));
  WriteBert("headless");
  EXPECT_TRUE(Fails(Weft({"evaluate", "--model=headless", "text.txt"}), 2, "headless: the model has no head that"));
}

TEST_F(EvaluateTest, SaysWhatIsMissing) {
  MakeRun("gpt");
  WriteTransformer("transformer");
  std::filesystem::create_directory(Path("mamba"));
  Write("mamba/config.json", "{\"model_type\": \"mamba\", \"ffn_dim\": 8}");
  Write("latin1.txt", "line \xE9\n");
  Write("unknown.txt", "line \xC3\xA9\n");
  const struct {
    Arguments arguments;
    const char* message;
  } rows[] = {
      {{}, "--model=DIR is missing, or --translations=FILE and --references=FILE"},
      {{"--translations=text.txt"}, "--references=FILE is missing, to evaluate translations"},
      {{"--translations=text.txt", "--model=gpt"}, "--translations has no use in evaluating a GPT"},
      {{"--model=missing", "text.txt"}, "cannot find missing"},
      {{"--model=mamba", "text.txt"}, "mamba/config.json: model_type is \"mamba\""},
      {{"--model=gpt"}, "to evaluate a GPT, name a file of data"},
      {{"--model=gpt", "--source=text.txt"}, "--source has no use in evaluating a GPT"},
      {{"--model=gpt", "missing.txt"}, "missing.txt: No such file"},
      {{"--model=gpt", "--stride=9", "text.txt"}, "--stride: 9 is not between 0 and the model's context of 8"},
      {{"--model=gpt", "latin1.txt"}, "latin1.txt: not UTF-8 at byte 5"},
      {{"--model=gpt", "unknown.txt"}, "unknown.txt: "},
      {{"--model=transformer", "--references=text.txt"}, "--source=FILE is missing, to evaluate a Transformer"},
      {{"--model=transformer", "--source=text.txt"}, "--references=FILE is missing, to evaluate a Transformer"},
      {{"--model=transformer", "--source=text.txt", "--references=text.txt", "text.txt"},
       "the file text.txt has no use in evaluating a Transformer"},
  };
  for (const auto& [arguments, message] : rows) {
    const CommandResult result = Weft(Arguments{"evaluate"} + arguments);
    EXPECT_TRUE(Fails(result, 2, message));
    EXPECT_EQ(result.out, "") << message;
  }
}

TEST_F(EvaluateTest, PublishedModels) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  // The loss of a model on its own most likely continuation is low.
  const std::string stories = absl::StrCat("--model=", data, "/stories260K/checkpoint_v1.bin");
  const CommandResult story =
      Weft({"generate", stories, "--temperature=0", "--prompt=Once upon a time", "--length=150"});
  ASSERT_TRUE(Works(story));
  Write("story.txt", story.out);
  const Json figures = Evaluate({stories, "story.txt"});
  EXPECT_LT(figures["loss"].get<double>(), 0.9);
  EXPECT_GT(figures["tokens"].get<int64_t>(), 100);
  Write("words.txt", "mat on cat the sat. upon day, a Once a time was There\n");
  EXPECT_GT(Evaluate({stories, "words.txt"})["loss"].get<double>(), 2);

  // PyTorch's numbers in f64: transformers' LlamaForCausalLM computes the logits of each window of 512 tokens, and each
  // token's loss counts in the first window that predicts it.
  std::string plays;
  std::getline(std::ifstream(absl::StrCat(data, "/tinyshakespeare/input.txt")), plays, '\0');
  plays.resize(3000);
  absl::c_replace(plays, '\n', ' ');
  Write("plays.txt", plays);
  const struct {
    const char* stride;
    double loss, perplexity, word_perplexity, byte_perplexity, bits_per_byte;
  } rows[] = {
      {"--stride=0", 3.772838835763026, 43.5033886805583, 349264.56050301326, 9.534339931852738, 3.2531330633408317},
      {"--stride=256", 3.7393308209982994, 42.06982849761382, 311834.1393676584, 9.345298544273453, 3.224240752944541},
      {"--stride=100", 3.741367010397428, 42.15557790781694, 313989.6140297202, 9.35667834543307, 3.225996458752788},
  };
  for (const auto& row : rows) {
    const Json play = Evaluate({stories, row.stride, "plays.txt"});
    EXPECT_EQ(play["tokens"], 1793);
    EXPECT_EQ(play["bytes"], 3000);
    EXPECT_EQ(play["words"], 530);
    EXPECT_NEAR(play["loss"].get<double>(), row.loss, 2e-6);
    EXPECT_NEAR(play["perplexity"].get<double>() / row.perplexity, 1, 2e-6);
    EXPECT_NEAR(play["word_perplexity"].get<double>() / row.word_perplexity, 1, 1e-5);
    EXPECT_NEAR(play["byte_perplexity"].get<double>() / row.byte_perplexity, 1, 2e-6);
    EXPECT_NEAR(play["bits_per_byte"].get<double>(), row.bits_per_byte, 2e-6);
  }

  const std::string names = absl::StrCat(data, "/aren-transliteration");
  std::string source, greedy;
  const Json items = Json::parse(std::ifstream(names + "/expected.json"))["items"];
  for (const Json& item : items) {
    absl::StrAppend(&source, item["source"].get<std::string>(), "\n");
    absl::StrAppend(&greedy, item["greedy"].get<std::string>(), "\n");
  }
  Write("source.txt", source);
  Write("greedy.txt", greedy);
  const Json same = Evaluate({"--model=" + names, "--beam=1", "--source=source.txt", "--references=greedy.txt"});
  EXPECT_EQ(same["precisions"][0], 100);
  EXPECT_EQ(same["brevity_penalty"], 1);

  const char* minilm = std::getenv("WEFT_MINILM");
  if (minilm == nullptr) return;
  const std::string model = absl::StrCat("--model=", minilm);
  EXPECT_TRUE(Fails(Weft({"evaluate", model, "story.txt"}), 2, "the model has no head that guesses masked tokens"));
  EXPECT_TRUE(Fails(Weft({"classify", model, "story.txt"}), 2, "the model has no classifier"));
  EXPECT_TRUE(Fails(Weft({"fill-mask", model, "story.txt"}), 2, "the model has no head that guesses masked tokens"));
}

}  // namespace
}  // namespace weft
