// `weft classify` and `weft fill-mask` as a user calls them.
#include <cmath>
#include <filesystem>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string> LinesOf(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

struct Guess {
  std::string label;
  double probability = -1;
};
std::vector<Guess> Guesses(const CommandResult& result) {
  EXPECT_TRUE(Works(result));
  std::vector<Guess> guesses;
  for (const std::string& line : LinesOf(result.out)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    EXPECT_EQ(parts.size(), 2) << line;
    guesses.push_back({parts[0]});
    EXPECT_TRUE(absl::SimpleAtod(parts.back(), &guesses.back().probability)) << line;
  }
  return guesses;
}

class ClassifyTest : public WeftProgramTest {
 protected:
  // A run that tells texts with "good" from those with "bad".
  void TrainOnTexts(const std::string& pooling) const {
    std::string labelled;
    for (int i = 0; i < 40; ++i) {
      for (int j = 0; j < i % 5; ++j) labelled += "so ";
      labelled += i % 2 == 0 ? "it is good\tpos\n" : "it is bad\tneg\n";
    }
    Write("labelled.tsv", labelled);
    ASSERT_TRUE(Works(Weft({"train", "classify", "--data=labelled.tsv", "--vocabulary=300", "--layers=1", "--width=32",
                            "--heads=2", "--feed-forward=64", "--batch=8", "--context=32", "--steps=60",
                            "--learning-rate=5e-3", "--warmup-steps=5", "--pooling=" + pooling, "--out=" + pooling})));
  }
};

TEST_F(ClassifyTest, TextsGetTheirLabels) {
  const std::string text = "it is good\nso it is bad\nso so so so it is good\n\nit is bad\r\nso so it is good\n";
  Write("texts.txt", text);
  for (const std::string pooling : {"first", "mean"}) {
    TrainOnTexts(pooling);
    const Arguments classify = {"classify", "--model=" + pooling};
    const std::vector<Guess> guesses = Guesses(Weft(classify + Arguments{"texts.txt"}));
    ASSERT_EQ(guesses.size(), 6);
    const std::vector<std::string> wanted = {"pos", "neg", "pos", "", "neg", "pos"};
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i].empty()) {
        EXPECT_EQ(guesses[i].label, wanted[i]) << pooling << " " << i;
      }
      EXPECT_GE(guesses[i].probability, 0.5);
      EXPECT_LE(guesses[i].probability, 1);
    }
    for (const char* flag : {"--batch=1", "--batch=3", "--threads=1", "--threads=4"}) {
      const std::vector<Guess> others = Guesses(Weft(classify + Arguments{flag, "texts.txt"}));
      ASSERT_EQ(others.size(), guesses.size());
      for (size_t i = 0; i < others.size(); ++i) {
        EXPECT_EQ(others[i].label, guesses[i].label) << flag;
        EXPECT_NEAR(others[i].probability, guesses[i].probability, 2e-6) << flag;
      }
    }
    const CommandResult scored = Weft(classify + Arguments{"--scores", "texts.txt"});
    ASSERT_TRUE(Works(scored));
    const std::vector<std::string> lines = LinesOf(scored.out);
    ASSERT_EQ(lines.size(), guesses.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const Json json = Json::parse(lines[i]);
      ASSERT_EQ(json.size(), 2);
      EXPECT_EQ(json.begin().key(), guesses[i].label);
      EXPECT_NEAR(json.begin().value(), guesses[i].probability, 1e-6);
      EXPECT_NEAR(json["pos"].get<double>() + json["neg"].get<double>(), 1, 1e-6);
    }
    const std::string command = fs::absolute("apps/weft").string() + " classify --model=" + Path(pooling) + " <";
    EXPECT_EQ(Guesses(RunCommand({"sh", "-c", command + Path("texts.txt")})).size(), guesses.size());
  }
  // The other commands on a BERT take a run as well.
  EXPECT_TRUE(Works(Weft({"embed", "--model=first", "texts.txt"})));
  EXPECT_TRUE(Fails(Weft({"fill-mask", "--model=first", "texts.txt"}), 2, "first: the model has no head that guesses"));
}

TEST_F(ClassifyTest, PicturesGetTheirLabels) {
  std::string labelled, pictures;
  for (int i = 0; i < 40; ++i) {
    std::string pixels;
    for (int pixel = 0; pixel < 16; ++pixel)
      pixels += (pixel == 0 ? "" : ",") + std::string((i % 2 == 0 ? pixel : pixel / 4) % 2 == 0 ? "9" : "1");
    labelled += pixels + "," + std::to_string(i % 2) + "\n";
    pictures += pixels + "\n";
  }
  Write("labelled.csv", labelled);
  Write("pictures.csv", pictures);
  ASSERT_TRUE(Works(Weft({"train", "vit", "--data=labelled.csv", "--patch-size=2", "--layers=1", "--width=32",
                          "--heads=2", "--batch=4", "--steps=150", "--learning-rate=5e-3", "--out=run"})));
  const CommandResult result = Weft({"classify", "--model=run", "pictures.csv"});
  const std::vector<Guess> guesses = Guesses(result);
  ASSERT_EQ(guesses.size(), 40);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(guesses[static_cast<size_t>(i)].label, std::to_string(i % 2)) << i;
  EXPECT_EQ(Weft({"classify", "--model=run", "labelled.csv"}).out, result.out) << "a label behind is passed over";
  EXPECT_EQ(Guesses(Weft({"classify", "--model=run", "--batch=7", "pictures.csv", "labelled.csv"})).size(), 80);
  EXPECT_TRUE(Fails(Weft({"classify", "--model=run"}), 2, "a ViT classifies pictures: name a file of them"));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=run", "--truncate", "pictures.csv"}), 2, "--truncate has no use in"));
  Write("small.csv", "1,2,3,4\n");
  EXPECT_TRUE(
      Fails(Weft({"classify", "--model=run", "small.csv"}), 2, "small.csv, line 1: 4 pixels, but the model's have 16"));
  EXPECT_TRUE(Fails(Weft({"embed", "--model=run"}), 2, "run: the model is a ViT, not a BERT"));

  fs::rename(Path("run/preprocessor_config.json"), Path("preprocessor_config.json"));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=run", "pictures.csv"}), 2, "run/preprocessor_config.json: No such"));
  fs::rename(Path("preprocessor_config.json"), Path("run/preprocessor_config.json"));

  // The same without run: as Hugging Face has it.
  fs::create_directory(Path("published"));
  Write("published/config.json", Json::parse(Read("run/config.json"))["model"].dump());
  for (const char* name : {"/model.safetensors", "/preprocessor_config.json"}) {
    fs::copy_file(Path("run") + name, Path("published") + name);
  }
  EXPECT_EQ(Weft({"classify", "--model=published", "pictures.csv"}).out, result.out);
  Write("published/preprocessor_config.json", "{\"image_mean\": [0.5, 0.4]}");
  EXPECT_TRUE(Fails(Weft({"classify", "--model=published", "pictures.csv"}), 2,
                    "published/preprocessor_config.json: image_mean is [0.5,0.4], which is not supported"));
}

TEST_F(ClassifyTest, SaysWhatDoesNotFit) {
  WriteBert("bert");
  MakeRun("gpt");
  EXPECT_TRUE(Fails(Weft({"classify"}), 2, "--model=MODEL is missing"));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=missing"}), 2, "cannot find missing"));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=bert"}), 2, "bert: the model has no classifier; weft train classify"));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=gpt"}), 2, "gpt: the model is a GPT, not a BERT"));
  TrainOnTexts("mean");
  Write("latin1.txt", "it is good\nso \xE9\n");
  const CommandResult result = Weft({"classify", "--model=mean", "latin1.txt"});
  EXPECT_TRUE(Fails(result, 2, "latin1.txt, line 2: not UTF-8 at byte 3"));
  EXPECT_EQ(result.out.substr(0, 4), "pos\t") << "what comes before is classified";
  Write("long.txt", "good " + std::string(90, 'x') + "\n");
  EXPECT_TRUE(
      Fails(Weft({"classify", "--model=mean", "long.txt"}), 2, "but the model's context is 32; truncate would"));
  EXPECT_EQ(Guesses(Weft({"classify", "--model=mean", "--truncate", "long.txt"})).size(), 1);
}

// The numbers of a line, which tabs separate.
std::vector<double> Numbers(const std::string& line) {
  std::vector<double> numbers;
  for (const absl::string_view part : absl::StrSplit(line, '\t')) {
    EXPECT_TRUE(absl::SimpleAtod(part, &numbers.emplace_back())) << line;
  }
  return numbers;
}

// transformers 5.24's pipelines choose the scores by problem_type: the logits, their sigmoids or their softmax. Of one
// label, they show the sigmoid.
TEST_F(ClassifyTest, ScoresFollowTheProblemType) {
  WriteBert("bert");
  const Bert bert({.vocabulary = 6, .context = 20, .layers = 2, .heads = 2, .width = 8, .feed_forward = 12});
  const std::string config = Read("bert/config.json");
  Write("texts.txt", "a ab\n");
  const auto classify = [&](int64_t labels, const std::string& more, const Arguments& arguments = {}) {
    Tape tape;
    const Var tokens = tape.Input("tokens", {kI32, {1, 2}}, {.below = 6});
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {bert.ClassifyText(bert.Encode(tokens), {}, labels)}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 5});
    const Runner runner(*graph, &parameters);  // creates them
    EXPECT_TRUE(parameters.Save(Path("bert/model.safetensors")).ok());
    Write("bert/config.json", config.substr(0, config.size() - 1) + more + "}");
    return Weft(Arguments{"classify", "--model=bert", "texts.txt"} + arguments);
  };
  const CommandResult regression = classify(3, R"(,"problem_type":"regression")");
  ASSERT_TRUE(Works(regression));
  const std::vector<double> logits = Numbers(LinesOf(regression.out)[0]);
  ASSERT_EQ(logits.size(), 3);
  EXPECT_EQ(Json::parse(classify(3, R"(,"problem_type":"regression")", {"--scores"}).out)["LABEL_1"], logits[1]);
  const CommandResult several = classify(3, R"(,"problem_type":"multi_label_classification")", {"--scores"});
  ASSERT_TRUE(Works(several));
  const Json sigmoids = Json::parse(several.out), one = Json::parse(classify(3, "", {"--scores"}).out);
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (size_t i = 0; i < 3; ++i) {
    const std::string label = "LABEL_" + std::to_string(i);
    EXPECT_NEAR(sigmoids[label], 1 / (1 + std::exp(-logits[i])), 1e-6);
    EXPECT_NEAR(one[label], std::exp(logits[i]) / sum, 1e-6);
  }
  Write("labelled.tsv", "a\tLABEL_0\n");
  const Arguments evaluate = {"evaluate", "--model=bert", "labelled.tsv"};
  classify(3, R"(,"problem_type":"multi_label_classification")");
  EXPECT_TRUE(Fails(Weft(evaluate), 2, "problem_type is multi_label_classification, but the examples have one label"));
  Write("labelled.tsv", "a\t0.5\n");
  classify(3, R"(,"problem_type":"regression")");
  EXPECT_TRUE(Fails(Weft(evaluate), 2, "the model predicts 3 numbers, but the examples have one each"));
  EXPECT_TRUE(Fails(classify(3, R"(,"problem_type":"else")"), 2, "problem_type is \"else\", which is not supported"));

  const double number = Numbers(LinesOf(classify(1, R"(,"problem_type":"regression")").out)[0])[0];
  const std::vector<Guess> single = Guesses(classify(1, ""));
  EXPECT_EQ(single[0].label, "LABEL_0");
  EXPECT_NEAR(single[0].probability, 1 / (1 + std::exp(-number)), 1e-6);

  // A label that would break the line or reach the terminal is escaped.
  const std::vector<Guess> escaped = Guesses(classify(2, R"(,"id2label":{"0":"a\tb\u001b","1":"a\nb\u001b"})"));
  EXPECT_THAT(escaped[0].label, testing::MatchesRegex("a.x0[9a]b.x1b"));
  for (const char* type : {"null", "\"regression\"", "\"multi_label_classification\""}) {
    for (const int64_t labels : {1, 2}) {
      const CommandResult original = classify(labels, absl::StrCat(",\"problem_type\":", type), {"--scores"});
      ASSERT_TRUE(Works(Weft({"import", "--model=bert", "--overwrite", "--out=copy"})));
      EXPECT_EQ(Weft({"classify", "--model=copy", "texts.txt", "--scores"}).out, original.out) << type;
      ASSERT_TRUE(Works(Weft({"export", "--model=copy", "--overwrite", "--out=again"})));
      EXPECT_EQ(Weft({"classify", "--model=again", "texts.txt", "--scores"}).out, original.out) << type;
    }
  }
}

TEST_F(ClassifyTest, OtherClassesAreRefused) {
  WriteBert("bert");
  const std::string config = Read("bert/config.json");
  Write("bert/config.json", config.substr(0, config.size() - 1) + R"(,"architectures":["BertLMHeadModel"]})");
  EXPECT_TRUE(Fails(Weft({"classify", "--model=bert"}), 2, "architectures is [\"BertLMHeadModel\"], which is not"));
}

// A model of 7 tokens: [UNK] [CLS] [SEP] [PAD] [MASK] a ##b.
class FillMaskTest : public WeftProgramTest {
 protected:
  FillMaskTest() {
    WriteBert("model");
    Write("model/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\n##b\n");
    std::string config = Read("model/config.json");
    config.replace(config.find("\"vocab_size\":6"), 14, "\"vocab_size\":7");
    Write("model/config.json", config);
    tokens_ = tape_.Input("tokens", {kI32, {1, 6}}, {.below = 7});
    logits_ = bert_.MaskedTokens(bert_.Encode(tokens_));
    const absl::StatusOr<Graph> graph = Compile(tape_, {.fetch = {logits_}, .mode = kEval});
    EXPECT_TRUE(graph.ok()) << graph.status();
    runner_ = std::make_unique<Runner>(*graph, &parameters_);
    EXPECT_TRUE(parameters_.Save(Path("model/model.safetensors")).ok());
  }

  std::vector<double> ProbabilitiesAt(size_t position, const std::vector<int32_t>& ids) {
    const absl::StatusOr<Outputs> out = runner_->Run({{tokens_, ids}});
    EXPECT_TRUE(out.ok()) << out.status();
    const absl::Span<const float> row = (*out)[logits_].span<const float>().subspan(7 * position, 7);
    double sum = 0;
    for (const float x : row) sum += std::exp(x);
    std::vector<double> probabilities;
    for (const float x : row) probabilities.push_back(std::exp(x) / sum);
    return probabilities;
  }

  const Bert bert_{{.vocabulary = 7, .context = 20, .layers = 2, .heads = 2, .width = 8, .feed_forward = 12}};
  Tape tape_;
  Var tokens_, logits_;
  Parameters parameters_{{.seed = 5}};
  std::unique_ptr<Runner> runner_;
};

TEST_F(FillMaskTest, PrintsTheLikeliestTokensOfEachMask) {
  Write("texts.txt", "a [MASK] ab\n[MASK] a[MASK]a\n");
  const CommandResult result = Weft({"fill-mask", "--model=model", "--top-k=7", "texts.txt"});
  ASSERT_TRUE(Works(result));
  const std::vector<std::string> lines = LinesOf(result.out);
  ASSERT_EQ(lines.size(), 3);
  const std::vector<double> wanted[] = {ProbabilitiesAt(2, {1, 5, 4, 5, 6, 2}), ProbabilitiesAt(1, {1, 4, 5, 4, 5, 2}),
                                        ProbabilitiesAt(3, {1, 4, 5, 4, 5, 2})};
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json candidates = Json::parse(lines[i]);
    ASSERT_EQ(candidates.size(), 7);
    double last = 1;
    for (const Json& each : candidates) {
      EXPECT_NEAR(each["score"].get<double>(), wanted[i][each["token"].get<size_t>()], 1e-6) << lines[i];
      EXPECT_LE(each["score"].get<double>(), last);
      last = each["score"].get<double>();
      if (each["token"] != 5) continue;
      EXPECT_EQ(each["token_str"], "a");
      const char* const sequences[] = {"a a ab", "a a [MASK] a", "[MASK] a a a"};
      EXPECT_EQ(each["sequence"], sequences[i]);
    }
  }
  EXPECT_EQ(Json::parse(LinesOf(Weft({"fill-mask", "--model=model", "texts.txt"}).out)[0]).size(), 5);
}

TEST_F(FillMaskTest, SaysWhatDoesNotFit) {
  WriteBert("headless");
  Write("plain.txt", "[MASK]\na\n");
  Write("latin1.txt", "[MASK] \xE9\n");
  const std::string many = "a a a a a a a a a a a a a a a a a a a a a";
  Write("late.txt", many + " [MASK]\n");
  Write("early.txt", "[MASK] " + many + "\n");
  const struct {
    Arguments arguments;
    const char* message;
  } rows[] = {
      {{"--model=model", "plain.txt"}, "plain.txt, line 2: there is no [MASK] in it"},
      {{"--model=model", "latin1.txt"}, "latin1.txt, line 1: not UTF-8"},
      {{"--model=model", "early.txt"}, "early.txt, line 1: it has 24 tokens, but the model's context is 20; truncate"},
      {{"--model=model", "--truncate", "late.txt"}, "late.txt, line 1: it has 24 tokens, and truncate would cut away"},
      {{"--model=headless", "plain.txt"}, "headless: the model has no head that guesses masked tokens"},
      {{"--model=model", "--top-k=0"}, "--top-k: 0 is less than 1"},
      {{}, "--model=MODEL is missing"},
  };
  for (const auto& [arguments, message] : rows) {
    EXPECT_TRUE(Fails(Weft(Arguments{"fill-mask"} + arguments), 2, message));
  }
  EXPECT_TRUE(Works(Weft({"fill-mask", "--model=model", "--truncate", "early.txt"})));
}

// A word of byte pairs includes the space before it, so the mask replaces the space, too.
TEST_F(WeftProgramTest, ARunFillsTheMasksOfItsText) {
  ASSERT_TRUE(Works(Weft(SmallTraining("bert") + Arguments{"--steps=5", "--out=run"})));
  Write("texts.txt", "line 7 of a [MASK], with words\n");
  const CommandResult result = Weft({"fill-mask", "--model=run", "--top-k=300", "texts.txt"});
  ASSERT_TRUE(Works(result));
  std::vector<std::string> sequences;
  for (const Json& each : Json::parse(result.out)) {
    if (each["token_str"] == " text") sequences.push_back(each["sequence"]);
  }
  EXPECT_EQ(sequences, std::vector<std::string>{"line 7 of a text, with words"});
}

}  // namespace
}  // namespace weft
