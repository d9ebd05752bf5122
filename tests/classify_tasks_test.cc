// `weft train classify --task=...` as a user calls it: each task is trained, stopped and resumed, and its run is used.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> LinesOf(const std::string& text) { return absl::StrSplit(text, '\n'); }

class ClassifyTasksTest : public WeftProgramTest {
 protected:
  ClassifyTasksTest() {
    std::string pairs = "id,first,second,relation\n", words, numbers;
    for (int i = 0; i < 60; ++i) {
      const std::string name = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
      absl::StrAppend(&pairs, i, ",\"a ", name, ", thing\",\"it is ", i % 2 == 0 ? "good" : "bad", "\",",
                      i % 2 == 0 ? "praise" : "blame", "\n");
      for (int j = 0; j <= i % 5; ++j) absl::StrAppend(&words, (i + j) % 2 == 0 ? "runs O\n" : "London B-LOC\n");
      absl::StrAppend(&words, "New B-LOC\nYork I-LOC\n\n");
      Json line = {{"score", 0.5 * (i % 4)}, {"sentence", "so"}};
      for (int j = 0; j < i % 4; ++j) line["sentence"] = line["sentence"].get<std::string>() + " good";
      absl::StrAppend(&numbers, line.dump(), "\n");
    }
    Write("pairs.csv", pairs);
    Write("words.conll", words);
    Write("numbers.jsonl", numbers);
  }

  // Returns the last line of the run's metrics.
  Json LastMetrics(const std::string& run) const {
    const std::vector<std::string> lines = LinesOf(Read(run + "/metrics.jsonl"));
    return Json::parse(lines[lines.size() - 2]);
  }

  // Returns the arguments that train a small model for `task`.
  static Arguments Training(const std::string& task) {
    const Arguments small = {"--vocabulary=300", "--layers=1",           "--width=32",
                             "--heads=2",        "--feed-forward=64",    "--batch=6",
                             "--context=32",     "--learning-rate=5e-3", "--warmup-steps=5"};
    const Arguments data = task == "tokens" ? Arguments{"--data=words.conll"}
                           : task == "pair"
                               ? Arguments{"--data=pairs.csv", "--text-column=first", "--text-pair-column=second",
                                           "--label-column=relation"}
                               : Arguments{"--data=numbers.jsonl", "--text-column=sentence", "--label-column=score"};
    return Arguments{"train", "classify", "--task=" + task} + data + small;
  }
};

// Each tenth example is held out.
TEST_F(ClassifyTasksTest, ALabelMayOccurAmongTheExamplesThatAreHeldOut) {
  std::string lines;
  for (int i = 1; i <= 40; ++i)
    absl::StrAppend(&lines, "text ", i % 7, "\t", i == 20 ? "rare" : i % 2 == 0 ? "a" : "b", "\n");
  Write("rare.tsv", lines);
  const Arguments train = {"train",      "classify",        "--data=rare.tsv", "--out=rare",   "--vocabulary=300",
                           "--layers=1", "--width=16",      "--heads=2",       "--context=24", "--batch=8",
                           "--steps=2",  "--warmup-steps=1"};
  ASSERT_TRUE(Works(Weft(train)));
  EXPECT_EQ(Json::parse(Read("rare/config.json"))["model"]["id2label"].size(), 3);
}

// Expects that `weft evaluate` printed the same figures as the run's last evaluation, which has a program of its own.
void ExpectEqual(const Json& figures, const Json& metrics, const Arguments& names) {
  for (const std::string& name : names) {
    EXPECT_NEAR(figures.value(name, -9.0), metrics.value("val_" + name, -8.0), 1e-5) << name;
  }
}

TEST_F(ClassifyTasksTest, EveryTaskResumesToTheSameBytes) {
  for (const std::string task : {"pair", "tokens", "regression"}) {
    SCOPED_TRACE(task);
    const Arguments flags =
        Training(task) + Arguments{"--micro-batches=2",     "--ema=0.9",    "--steps=200", "--eval-every=50",
                                   "--checkpoint-every=50", "--log-every=1"};
    const CommandResult stopped =
        Weft(flags + Arguments{"--out=" + task}, {.signal_after = "step 70/200  loss", .signal = SIGTERM});
    EXPECT_TRUE(Fails(stopped, 1, "interrupted after step "));
    const CommandResult resumed = Weft({"train", "classify", "--resume", "--out=" + task, "--threads=1"});
    EXPECT_TRUE(Works(resumed));
    const CommandResult unstopped = Weft(flags + Arguments{"--out=unstopped-" + task});
    EXPECT_TRUE(Works(unstopped));
    EXPECT_EQ(Differences(Results(task), Results("unstopped-" + task)), "");
    if (task == "tokens") {
      EXPECT_NE(resumed.out.find("precision    recall  f1-score   support"), std::string::npos);
    }
    EXPECT_TRUE(Fails(Weft({"train", "classify", "--resume", "--out=" + task, "--task=sequence"}), 2,
                      "a resumed run can't change task: it has '" + task + "'"));
    const Json last = LastMetrics(task);
    for (const std::string& figure : task == "tokens"       ? Arguments{"val_precision", "val_recall", "val_f1"}
                                     : task == "regression" ? Arguments{"val_pearson", "val_spearman"}
                                                            : Arguments{"val_accuracy"}) {
      EXPECT_GT(last.value(figure, -1.0), 0.95) << figure;
      EXPECT_TRUE(last.contains("ema_" + figure)) << figure;
    }
  }
}

TEST_F(ClassifyTasksTest, RunsOfPairsAreUsed) {
  ASSERT_TRUE(Works(Weft(Training("pair") + Arguments{"--steps=150", "--validation=pairs.csv", "--out=run"})));
  Write("lines.txt", "a red, thing\tit is good\na blue, thing\tit is bad\n");
  const CommandResult result = Weft({"classify", "--model=run", "lines.txt"});
  ASSERT_TRUE(Works(result));
  EXPECT_EQ(LinesOf(result.out)[0].substr(0, 7), "praise\t");
  EXPECT_EQ(LinesOf(result.out)[1].substr(0, 6), "blame\t");
  Write("wrong.txt", "one text\n");
  EXPECT_TRUE(Fails(Weft({"classify", "--model=run", "wrong.txt"}), 2, "wrong.txt, line 1: there are 0 tabs; wanted"));

  const CommandResult figures = Weft({"evaluate", "--model=run", "--json", "--text-column=first",
                                      "--text-pair-column=second", "--label-column=relation", "pairs.csv"});
  ASSERT_TRUE(Works(figures));
  ExpectEqual(Json::parse(figures.out), LastMetrics("run"), {"loss", "accuracy"});
  EXPECT_EQ(Json::parse(figures.out)["pairs"], 60);
  EXPECT_EQ(Json::parse(figures.out)["accuracy"], 1.0);

  // What other programs open does not say that texts are pairs.
  ASSERT_TRUE(Works(Weft({"export", "--model=run", "--out=exported"})));
  EXPECT_EQ(Json::parse(Read("exported/config.json"))["architectures"], Json({"BertForSequenceClassification"}));
  EXPECT_EQ(Weft({"classify", "--model=exported", "--pairs", "lines.txt"}).out, result.out);
  EXPECT_TRUE(Works(Weft({"classify", "--model=exported", "wrong.txt"})));
}

TEST_F(ClassifyTasksTest, RunsLabelWords) {
  ASSERT_TRUE(Works(Weft(Training("tokens") + Arguments{"--steps=150", "--validation=words.conll", "--metric=val_f1",
                                                        "--save-best", "--out=run"})));
  Write("lines.txt", "London runs New York\n\nruns  London\n");
  const CommandResult result = Weft({"classify", "--model=run", "lines.txt"});
  ASSERT_TRUE(Works(result));
  EXPECT_EQ(result.out, "London\tB-LOC\nruns\tO\nNew\tB-LOC\nYork\tI-LOC\n\n\nruns\tO\nLondon\tB-LOC\n\n");
  const CommandResult scored = Weft({"classify", "--model=run", "--scores", "lines.txt"});
  ASSERT_TRUE(Works(scored));
  const Json first = Json::parse(LinesOf(scored.out)[0]);
  ASSERT_EQ(first.size(), 4);
  EXPECT_EQ(first[3]["word"], "York");
  EXPECT_EQ(first[3]["label"], "I-LOC");
  EXPECT_GT(first[3]["score"].get<double>(), 0.9);

  const CommandResult figures = Weft({"evaluate", "--model=run", "--json", "words.conll"});
  ASSERT_TRUE(Works(figures));
  ExpectEqual(Json::parse(figures.out), LastMetrics("run"), {"loss", "accuracy", "precision", "recall", "f1"});
  EXPECT_EQ(Json::parse(figures.out)["words"], 300);
  EXPECT_EQ(Json::parse(figures.out)["f1"], 1.0);
  EXPECT_EQ(Json::parse(figures.out)["entities"]["LOC"]["support"], 150);
  ASSERT_TRUE(Works(Weft({"export", "--model=run", "--out=exported"})));
  EXPECT_EQ(Json::parse(Read("exported/config.json"))["architectures"], Json({"BertForTokenClassification"}));
  EXPECT_EQ(Weft({"classify", "--model=exported", "lines.txt"}).out, result.out);
  EXPECT_TRUE(
      Fails(Weft({"classify", "--model=run", "--pairs"}), 2, "run: the model labels words, and takes no pairs"));
}

TEST_F(ClassifyTasksTest, RunsPredictNumbers) {
  ASSERT_TRUE(Works(Weft(Training("regression") +
                         Arguments{"--steps=300", "--dropout=0", "--validation=numbers.jsonl", "--out=run"})));
  Write("lines.txt", "so\nso good good good\n");
  const CommandResult result = Weft({"classify", "--model=run", "lines.txt"});
  ASSERT_TRUE(Works(result));
  const std::vector<std::string> lines = LinesOf(result.out);
  ASSERT_EQ(lines.size(), 3);
  double low = 9, high = 9;
  EXPECT_TRUE(absl::SimpleAtod(lines[0], &low) && absl::SimpleAtod(lines[1], &high)) << result.out;
  EXPECT_NEAR(low, 0, 0.2);
  EXPECT_NEAR(high, 1.5, 0.2);
  EXPECT_EQ(Weft({"classify", "--model=run", "--scores", "lines.txt"}).out,
            absl::StrCat("{\"LABEL_0\":", lines[0], "}\n{\"LABEL_0\":", lines[1], "}\n"));

  const CommandResult figures =
      Weft({"evaluate", "--model=run", "--json", "--text-column=sentence", "--label-column=score", "numbers.jsonl"});
  ASSERT_TRUE(Works(figures));
  ExpectEqual(Json::parse(figures.out), LastMetrics("run"), {"loss", "pearson", "spearman"});
  EXPECT_EQ(Json::parse(figures.out)["texts"], 60);
  EXPECT_GT(Json::parse(figures.out)["pearson"].get<double>(), 0.95);
  EXPECT_LT(Json::parse(figures.out)["loss"].get<double>(), 0.05);
  ASSERT_TRUE(Works(Weft({"export", "--model=run", "--out=exported"})));
  const Json config = Json::parse(Read("exported/config.json"));
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["id2label"].size(), 1);
  EXPECT_EQ(Weft({"classify", "--model=exported", "lines.txt"}).out, result.out);
}

// All files of one training give the same run as their contents in one file.
TEST_F(ClassifyTasksTest, DataMayBeSeveralFiles) {
  WriteTrainingData();
  const std::string all = Read("labelled.tsv");
  const size_t cut = all.find('\n', all.size() / 2) + 1;
  Write("one.tsv", all.substr(0, cut));
  Write("two.tsv", all.substr(cut));
  Arguments flags = SmallTraining("classify") + Arguments{"--steps=5"};
  ASSERT_TRUE(Works(Weft(flags + Arguments{"--out=whole"})));
  ASSERT_TRUE(Works(Weft(flags + Arguments{"--out=parts", "--data=one.tsv,two.tsv"})));
  EXPECT_EQ(Differences(Results("whole"), Results("parts")), "");
  const CommandResult figures = Weft({"evaluate", "--model=parts", "--json", "one.tsv", "two.tsv"});
  ASSERT_TRUE(Works(figures));
  EXPECT_EQ(Json::parse(figures.out)["texts"], 40);
}

// Runs of earlier versions have no options of a task or format.
TEST_F(ClassifyTasksTest, RunsWithoutATaskAreResumed) {
  WriteTrainingData();
  const Arguments flags = SmallTraining("classify") + Arguments{"--checkpoint-every=5"};
  ASSERT_TRUE(Works(Weft(flags + Arguments{"--steps=10", "--out=whole"})));
  ASSERT_TRUE(Works(Weft(flags + Arguments{"--steps=5", "--out=old"})));
  Json config = Json::parse(Read("old/config.json"));
  for (const char* key : {"task", "format", "header", "text_column", "text_pair_column", "label_column"}) {
    EXPECT_EQ(config.erase(key), 1) << key;
  }
  Write("old/config.json", config.dump());
  ASSERT_TRUE(Works(Weft({"train", "classify", "--resume", "--out=old", "--steps=10"})));
  EXPECT_EQ(Read("old/model.safetensors"), Read("whole/model.safetensors"));
}

TEST_F(ClassifyTasksTest, SaysWhatDoesNotFit) {
  Write("unknown.conll", "London B-LOC\nruns X\n");
  Write("unequal.conll", "London B-LOC\nruns V O\n");
  Write("text.jsonl", "{\"sentence\": \"a\", \"score\": 1}\n{\"sentence\": \"b\", \"score\": \"many\"}\n");
  Write("long.conll", "London B-LOC\n" + std::string(100, 'x') + " O\n");
  const struct {
    std::string task;
    Arguments flags;
    std::string message;
  } kCases[] = {
      {"pair", {"--label-column=label"}, "pairs.csv, line 1: there is no column 'label'; the columns are id, first"},
      {"pair", {"--label-column=7"}, "pairs.csv, line 1: there is no column 7; the columns are 1 to 4"},
      {"pair", {"--format=lines"}, "--format: lines has no columns"},
      {"tokens", {"--validation=unknown.conll"}, "unknown.conll, line 2: the label 'X' is none of the 3: B-LOC, I-LOC"},
      {"tokens", {"--data=unequal.conll"}, "unequal.conll, line 2: 3 columns, but line 1 has 2 columns"},
      {"tokens", {"--validation=long.conll"}, "long.conll, line 1: "},
      {"tokens", {"--format=csv"}, "--format: csv has no labelled words"},
      {"regression", {"--save-best", "--metric=val_f1"}, "--metric: this training measures no val_f1"},
      {"pair", {"--save-best", "--metric=val_pearson"}, "--metric: this training measures no val_pearson"},
      {"tokens", {"--pooling=mean"}, "--pooling: mean has no use in the task tokens"},
      {"regression", {"--data=text.jsonl"}, "text.jsonl, line 2: the label 'many' is not a finite decimal number"},
      {"regression", {"--label-column=stars"}, "numbers.jsonl, line 1: there is no key \"stars\"; the keys are score"},
  };
  for (const auto& [task, flags, message] : kCases) {
    EXPECT_TRUE(Fails(Weft(Training(task) + flags + Arguments{"--out=run"}), 2, message));
    EXPECT_FALSE(Exists("run"));
  }
  EXPECT_TRUE(Fails(Weft({"train", "classify", "--task=words", "--data=words.conll"}), 2, "--task: 'words'"));
}

}  // namespace
}  // namespace weft
