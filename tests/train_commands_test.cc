// Tests `weft train translate`, `bert`, `classify` and `vit` as a user calls them, on small data: they learn, give the
// same bits for any number of threads, can be resumed, and report mistakes in their data.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "weft/base/cores.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TrainCommandsTest : public WeftProgramTest, public testing::WithParamInterface<std::string> {
 protected:
  TrainCommandsTest() { WriteTrainingData(); }

  CommandResult Run(const std::string& out, const Arguments& more, CommandOptions options = {}) const {
    return Weft(SmallTraining(GetParam()) + Arguments{"--out=" + out} + more, options);
  }
};

INSTANTIATE_TEST_SUITE_P(Commands, TrainCommandsTest, testing::Values("translate", "bert", "classify", "vit"),
                         [](const auto& info) { return info.param; });

TEST_P(TrainCommandsTest, Learns) {
  const CommandResult result =
      Run("run", {"--steps=150", "--learning-rate=5e-3", "--warmup-steps=10", "--eval-every=150"});
  EXPECT_TRUE(Works(result));
  std::smatch losses;
  ASSERT_TRUE(
      std::regex_search(result.err, losses,
                        std::regex("step 0/150  validation loss ([0-9.]+)[^]*step 150/150  validation loss ([0-9.]+)")))
      << result.err;
  EXPECT_LT(std::stod(losses[2]), 0.8 * std::stod(losses[1])) << result.err;
  EXPECT_TRUE(Exists("run/model.safetensors"));
  EXPECT_TRUE(Contains(Read("run/config.json"), "\"command\": \"train " + GetParam() + "\""));
}

TEST_P(TrainCommandsTest, TheNumberOfThreadsDoesNotChangeABit) {
  for (const std::string precision : {"f32", "bf16"}) {
    const auto out = [&](int threads) { return precision + "-" + std::to_string(threads); };
    for (const int threads : {1, 2, 4}) {
      ASSERT_TRUE(Works(Run(out(threads), {"--steps=25", "--eval-every=10", "--precision=" + precision,
                                           "--threads=" + std::to_string(threads)})));
    }
    EXPECT_EQ(Differences(Results(out(1)), Results(out(2))), "") << precision;
    EXPECT_EQ(Differences(Results(out(1)), Results(out(4))), "") << precision;
  }
}

TEST_F(WeftProgramTest, ATrainingOfTinyStepsTakesFewerThreadsAndSaysSo) {
  if (Cores() == 1) GTEST_SKIP() << "this machine has one core";
  const CommandResult fewer = Train({"--out=fewer", "--batch=1", "--layers=1"});
  EXPECT_TRUE(Contains(fewer.err, "runs on 1 of " + std::to_string(Cores()) + " threads: more would make"))
      << fewer.err;
  const CommandResult given = Train({"--out=given", "--batch=1", "--layers=1", "--threads=2"});
  EXPECT_FALSE(Contains(given.err, "more would make")) << given.err;
  EXPECT_EQ(Differences(Results("fewer"), Results("given")), "");
}

TEST_P(TrainCommandsTest, StoppedItGoesOnToTheSameWeights) {
  const Arguments flags = {"--steps=200", "--log-every=1", "--eval-every=50", "--checkpoint-every=100"};
  const CommandResult stopped = Run("stopped", flags, {.signal_after = "step 7/200  loss", .signal = SIGINT});
  EXPECT_TRUE(Fails(stopped, 1, "continue with --resume --out=stopped"));
  EXPECT_TRUE(Works(Weft({"train", GetParam(), "--resume", "--out=stopped"})));
  ASSERT_TRUE(Works(Run("whole", flags)));
  const Files files = Results("stopped");
  EXPECT_EQ(Differences(files, Results("whole")), "");
}

TEST_P(TrainCommandsTest, EpochsAndTheDataAreChecked) {
  if (GetParam() != "bert") {
    const CommandResult result = Run("epochs", {"--epochs=2", "--log-every=0"});
    EXPECT_TRUE(Works(result));
    const std::string metrics = Read("epochs/metrics.jsonl");
    const std::regex evaluation("val_loss");
    EXPECT_EQ(std::distance(std::sregex_iterator(metrics.begin(), metrics.end(), evaluation), {}), 3)
        << "before, after the first and after the second epoch:\n"
        << metrics;
  }
  ASSERT_TRUE(Works(Run("run", {"--steps=5"})));
  for (const char* name : {"a.txt", "text.txt", "labelled.tsv", "pictures.csv"}) Write(name, Read(name) + Read(name));
  Write("b.txt", Read("b.txt") + Read("b.txt"));
  const CommandResult other = Run("run", {"--resume", "--steps=9"});
  EXPECT_TRUE(Fails(other, 2, "data: this run began with other data"));
  const std::string data = GetParam() == "translate" ? "a.txt"
                           : GetParam() == "bert"    ? "text.txt"
                           : GetParam() == "vit"     ? "pictures.csv"
                                                     : "labelled.tsv";
  EXPECT_TRUE(Contains(other.err, "/" + data + " has changed")) << other.err;
}

TEST_P(TrainCommandsTest, WeightsToBeginWithGiveNoDropout) {
  ASSERT_TRUE(Works(Run("first", {"--steps=1", "--attention-dropout=0.3", "--activation-dropout=0.3"})));
  const Arguments more = {"--out=second", "--steps=1", "--init=first"};
  ASSERT_TRUE(Works(Weft(SmallTraining(GetParam()) - "--vocabulary=300" + more)));  // the tokenizer is that of "first"
  EXPECT_TRUE(Contains(Read("first/config.json"), "\"activation_dropout\": 0.3"));
  EXPECT_FALSE(Contains(Read("second/config.json"), "dropout\": 0.3"));
}

// The loss of a first step is linear in the factor. Without dropout, both predictions would be equal.
TEST_P(TrainCommandsTest, RDropAddsTheDivergenceOfTwoPredictions) {
  if (GetParam() == "bert") GTEST_SKIP() << "train bert has no --r-drop";
  const auto loss = [&](const std::string& factor) {
    const std::string out = "r-drop-" + factor;
    EXPECT_TRUE(Works(Run(out, {"--r-drop=" + factor, "--dropout=0.5", "--steps=1"})));
    std::smatch found;
    const std::string metrics = Read(out + "/metrics.jsonl");
    EXPECT_TRUE(std::regex_search(metrics, found, std::regex("\"train_loss\":([0-9.]+)"))) << metrics;
    return std::stod(found[1]);
  };
  const double least = loss("1e-9"), four = loss("4"), eight = loss("8");
  EXPECT_GT(four, least + 1e-3);
  EXPECT_NEAR(eight - least, 2 * (four - least), 1e-5);
  EXPECT_TRUE(Fails(Run("none", {"--r-drop=1", "--dropout=0", "--attention-dropout=0"}), 2,
                    "r-drop: no dropout is above 0, so both predictions would be equal; wanted dropout"));
}

TEST_F(WeftProgramTest, BpeDropoutGivesEachEpochOtherTokens) {
  WriteTrainingData();
  const auto tokens_of_epochs = [&](const std::string& probability) {
    const std::string out = "bpe-dropout-" + probability;
    EXPECT_TRUE(Works(
        Weft(SmallTraining("translate") + Arguments{"--bpe-dropout=" + probability, "--out=" + out, "--epochs=3"})));
    const std::string metrics = Read(out + "/metrics.jsonl");
    const std::regex tokens("\"tokens\":([0-9]+)[^\n]*val_loss");
    std::vector<int> sums;
    for (std::sregex_iterator line(metrics.begin(), metrics.end(), tokens), end; line != end; ++line) {
      sums.push_back(std::stoi((*line)[1]));
    }
    EXPECT_EQ(sums.size(), 4) << metrics;  // before the first epoch and after each
    for (size_t i = sums.size() - 1; i > 0; --i) sums[i] -= sums[i - 1];
    return sums;
  };
  const std::vector<int> usual = tokens_of_epochs("0"), dropped = tokens_of_epochs("0.3");
  EXPECT_EQ(usual[1], usual[2]);
  EXPECT_EQ(usual[1], usual[3]);
  for (const size_t epoch : {1, 2, 3}) EXPECT_GT(dropped[epoch], usual[epoch]);
  EXPECT_FALSE(dropped[1] == dropped[2] && dropped[1] == dropped[3]);
  const Arguments more = {"--tokenizer=characters", "--out=characters"};
  EXPECT_TRUE(Fails(Weft(SmallTraining("translate") - "--vocabulary=300" + more), 2,
                    "bpe-dropout: this kind of tokenizer cannot leave out merges; wanted byte-pair encoding"));
}

TEST_F(WeftProgramTest, ATrainingDoesNotRemoveTheModelWithWhichItBegins) {
  MakeRun("run");
  const Files before = Snapshot("run");
  EXPECT_TRUE(Fails(Train({"--init=run", "--out=run", "--overwrite"}), 2, "--init and --out are the same, run"));
  EXPECT_EQ(Differences(before, Snapshot("run")), "");
}

TEST_F(WeftProgramTest, AWorkingFolderThatIsGoneIsAnErrorOfTheModelsPath) {
  const std::string program = std::filesystem::absolute("apps/weft").string();
  const Arguments shell = {"sh", "-c", "mkdir gone && cd gone && rmdir ../gone && \"$@\"", "sh", program};
  EXPECT_TRUE(Fails(RunCommand(shell + Arguments{"train", "gpt", "--init=run"}, {.folder = folder_}), 2,
                    "weft train gpt: cannot find run: No such file or directory"));
}

TEST_F(WeftProgramTest, OneOfAKindIsInTheSingular) {
  Write("one.txt", "a b c\n");
  Write("one.tsv", "a b c\tx\n");
  WriteTrainingData();
  for (const auto& [name, flags, counted] :
       {std::tuple{"translate", Arguments{"--source=one.txt", "--target=one.txt"}, " on 1 pair of sentences ("},
        {"classify", {"--data=one.tsv", "--validation=one.tsv"}, " on 1 text ("}}) {
    const CommandResult result = Weft(SmallTraining(name) + flags + Arguments{"--steps=1"});
    EXPECT_TRUE(Works(result));
    EXPECT_TRUE(Contains(result.err, counted)) << result.err;
    EXPECT_TRUE(Contains(result.err, ", 1 batch an epoch)")) << result.err;
  }
}

TEST_F(WeftProgramTest, TranslatesWithCharactersAsTokens) {
  std::string source, target;
  for (int i = 0; i < 8; ++i) {
    source += "我爱学习\n我学习\n他爱我\n";
    target += "i love to learn\ni learn\nhe loves me\n";
  }
  Write("a.txt", source);
  Write("b.txt", target);
  const Arguments train = SmallTraining("translate") - "--vocabulary=300" - "--bpe-dropout=0.2" +
                          Arguments{"--tokenizer=characters", "--out=run"};
  ASSERT_TRUE(Works(Weft(train + Arguments{"--steps=4", "--warmup-steps=1"})));
  ASSERT_TRUE(Works(Weft(train + Arguments{"--steps=8", "--warmup-steps=1", "--resume"})));
  EXPECT_TRUE(Contains(Read("run/tokenizer.json"), "</s>"));
  Write("text.txt", "我爱学习\n他学猫\n");  // the cat is unknown
  const CommandResult ids = Weft({"tokenize", "--tokenizer=run", "text.txt"});
  ASSERT_TRUE(Works(ids));
  const std::string first = ids.out.substr(0, ids.out.find('\n'));
  EXPECT_EQ(std::count(first.begin(), first.end(), ','), 3) << ids.out;
  EXPECT_TRUE(Works(Weft({"translate", "--model=run", "text.txt"})));
  Write("a.txt", "猫\n" + source);
  Write("b.txt", "cat\n" + target);
  EXPECT_TRUE(
      Fails(Weft(train + Arguments{"--init=run", "--overwrite"}), 2, "--tokenizer: characters learns new ids, but "));
  EXPECT_TRUE(Fails(Weft(train + Arguments{"--vocabulary=300", "--overwrite"}), 2, "vocabulary"));
}

struct BadData {
  std::string file, contents;
  Arguments flags;
  std::string error;
};

TEST_F(WeftProgramTest, DataThatCannotBeTrainedOnAreNamed) {
  const std::string good = "a b c\nd e f\n";
  std::string long_line;
  for (int i = 0; i < 300; ++i) long_line += i % 2 == 0 ? " x" : " y";
  const BadData kBad[] = {
      {"b.txt", "x y\n", {"translate", "--source=a.txt", "--target=b.txt"}, "a.txt has 2 lines, but "},
      {"b.txt", "x\n\n", {"translate", "--source=a.txt", "--target=b.txt"}, "b.txt, line 2: the line is empty"},
      {"b.txt", "x\n\xff\n", {"translate", "--source=a.txt", "--target=b.txt"}, "b.txt: "},
      {"b.txt", "", {"translate", "--source=a.txt", "--target=b.txt"}, "b.txt: the file is empty"},
      {"b.txt",
       "x\n" + long_line + "\n",
       {"translate", "--source=a.txt", "--target=b.txt", "--context=9"},
       "b.txt, line 2: "},
      {"b.txt", good, {"translate", "--source=a.txt"}, "--target: no file was given"},
      {"b.txt",
       good,
       {"translate", "--source=a.txt", "--target=b.txt", "--validation-source=a.txt"},
       "it needs validation-target"},
      {"b.txt",
       good,
       {"translate", "--source=a.txt", "--target=b.txt", "--tokenizer=vocab.txt"},
       "the tokenizer has no begin token"},
      {"c.tsv", "no label\n", {"classify", "--data=c.tsv"}, "c.tsv, line 1: there is no tab"},
      {"c.tsv",
       "a\t1\n",
       {"classify", "--data=c.tsv", "--validation=d.tsv"},
       "d.tsv, line 2: the label '7' is none of the 1: 1"},
      {"c.tsv", long_line + "\t1\n", {"classify", "--data=c.tsv", "--context=8"}, "truncate such lines"},
      {"c.tsv", "a\t1\n", {"classify", "--data=c.tsv", "--init=nothing"}, "/nothing: No such file"},
      {"c.csv", "1,2,3\n", {"vit", "--data=c.csv"}, "c.csv, line 1: 2 pixels before the label are not a square"},
      {"c.csv", "1,2,3,4,0\n", {"vit", "--data=c.csv", "--patch-size=3"}, "patch_size"},
      {"t.txt", "too short", {"bert", "--data=t.txt", "--context=128"}, "the text is too short for a context of"},
  };
  Write("a.txt", good);
  Write("vocab.txt", "[UNK]\na\n");
  Write("d.tsv", "a\t1\nb\t7\n");
  for (const auto& [file, contents, flags, error] : kBad) {
    Write(file, contents);
    EXPECT_TRUE(Fails(Weft(Arguments{"train"} + flags + Arguments{"--out=run"}), 2, error));
    EXPECT_FALSE(Exists("run")) << error;
  }
}

// Every fifth picture is held out. A class may occur there alone, but not in a file of validation pictures alone.
TEST_F(WeftProgramTest, AClassMayOccurAmongThePicturesThatAreHeldOut) {
  std::string pictures;
  for (int i = 0; i < 20; ++i) pictures += "1,9,9,1," + std::to_string(i == 9 ? 2 : i % 2) + "\n";
  Write("pictures.csv", pictures);
  Write("validation.csv", "1,9,9,1,3\n");
  const Arguments train = SmallTraining("vit") + Arguments{"--steps=1"};
  ASSERT_TRUE(Works(Weft(train + Arguments{"--out=run"})));
  const CommandResult scores = Weft({"classify", "--model=run", "--scores", "pictures.csv"});
  ASSERT_TRUE(Works(scores));
  EXPECT_TRUE(Contains(scores.out, "\"2\":")) << scores.out;
  EXPECT_TRUE(Fails(Weft(train + Arguments{"--validation=validation.csv", "--out=other"}), 2,
                    "validation.csv: the label 3 is none of the 3 that "));
}

TEST_F(WeftProgramTest, TensorsThatTheModelLacksAreLeftOutOnlyIfAskedFor) {
  WriteBert("bert");  // with two layers
  Write("bert/config.json", R"({"model_type":"bert","vocab_size":6,"max_position_embeddings":20,"num_hidden_layers":1,)"
                            R"("num_attention_heads":2,"hidden_size":8,"intermediate_size":12})");
  Write("c.tsv", "a\tyes\nab\tno\n");
  const Arguments flags = {"train", "classify", "--data=c.tsv", "--init=bert", "--steps=1", "--out=run"};
  EXPECT_TRUE(Fails(Weft(flags), 2, "unexpected 'encoder.layer.1."));
  EXPECT_FALSE(Exists("run"));
  const CommandResult result = Weft(flags + Arguments{"--ignore-extra-tensors"});
  ASSERT_TRUE(Works(result));
  EXPECT_TRUE(Contains(result.err, "/bert: 'encoder.layer.1.")) << result.err;
}

TEST_F(WeftProgramTest, AClassifierBeginsWithPublishedWeights) {
  WriteBert("bert");
  std::string text;
  for (int i = 0; i < 20; ++i) text += i % 2 == 0 ? "a\tyes\n" : "ab\tno\n";
  Write("c.tsv", text);
  const Arguments flags = {"train", "classify", "--data=c.tsv", "--init=bert", "--steps=3", "--out=run"};
  EXPECT_TRUE(Fails(Weft(flags + Arguments{"--layers=3"}), 2, "--layers: 3 was given, but the weights of "));
  EXPECT_TRUE(Works(Weft(flags + Arguments{"--learning-rate=0", "--min-learning-rate=0"})));
  EXPECT_TRUE(Exists("run/vocab.txt"));
  EXPECT_TRUE(Contains(Read("run/model.safetensors"), "classifier.weight"));
  Write("bert/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\nc\n");
  EXPECT_TRUE(Fails(Weft(flags + Arguments{"--overwrite"}), 2, "the tokenizer has 7 tokens, but the model's table 6"));
}

// The key "model" sets options of the model, and no key of it is ignored.
TEST_F(WeftProgramTest, ShorterWindowsLeaveAModelWithoutATableOfPositionsItsContext) {
  const std::pair<std::string, std::string> kept[] = {{"halves", "\"n_positions\": 16,"},
                                                      {"none", "\"n_positions\": 8,"}};
  for (const auto& [rotary, positions] : kept) {
    MakeRun("base", {"--context=16", "--rotary=" + rotary, "--overwrite"});
    MakeRun("tuned", {"--init=base", "--context=8", "--overwrite"});
    ASSERT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=tuned", "--steps=22"})));
    EXPECT_NE(Read("tuned/config.json").find("\n  \"context\": 8,"), std::string::npos);
    EXPECT_NE(Read("tuned/config.json").find(positions), std::string::npos) << rotary;
  }
}

TEST_F(WeftProgramTest, AConfigurationsModelIsRead) {
  Write("text.txt", std::string(400, 'a') + std::string(400, 'b'));
  const Arguments flags = Arguments{"train",     "gpt",         "--data=text.txt", "--steps=0", "--sample-length=0",
                                    "--out=run", "--overwrite", "--config=c.json", "--heads=2", "--context=8",
                                    "--batch=2"};
  Write("c.json", R"({"model": {"width": 16, "n_layer": 1, "rotary": "halves"}})");
  EXPECT_TRUE(Works(Weft(flags)));
  EXPECT_TRUE(Contains(Read("run/config.json"), "\"layers\": 1,"));
  EXPECT_TRUE(Contains(Read("run/config.json"), "\"rotary\": \"halves\""));
  const std::pair<const char*, const char*> kBad[] = {
      {R"({"model": {"widht": 16}})", "c.json: model: unknown key 'widht', did you mean 'width'?"},
      {R"({"model": {"n_layer": 4}, "layers": 1})", "key 'layers' is 1, but by the key 'model' it is 4"},
      {R"({"model": {"model_type": "gpt2", "n_embed": 16}})", "n_embed"},
      {R"({"init_from": "nothing"})", "/nothing: No such file"},
  };
  for (const auto& [json, error] : kBad) {
    Write("c.json", json);
    EXPECT_TRUE(Fails(Weft(flags), 2, error));
  }
}

}  // namespace
}  // namespace weft
