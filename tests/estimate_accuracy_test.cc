// Compares what `weft estimate` says of 20 random trainings with what these trainings take: resident memory within 5%,
// and seconds a step within 20%. Other programs change both, so the test is run by hand on an idle machine:
//
//   bazel test -c opt //tests:estimate_accuracy_test --test_output=all
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

constexpr int kTrainings = 20;

class EstimateAccuracyTest : public WeftProgramTest {
 protected:
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::string Pick(const std::vector<std::string>& from) {
    return from[static_cast<size_t>(Draw(0, static_cast<int>(from.size()) - 1))];
  }

  // Writes sentences of 3 to 40 random words, labels and pictures of 20 x 20 pixels.
  void WriteData() {
    std::string source, target, labelled, pictures;
    for (int i = 0; i < 1000; ++i) {
      std::string words, reversed;
      for (int j = Draw(3, 40); j > 0; --j) {
        const std::string word = absl::StrCat(Pick({"ba", "co", "du", "fi"}), Pick({"ga", "ho", "ju", "ki"}));
        words = words.empty() ? word : absl::StrCat(words, " ", word);
        reversed = reversed.empty() ? word : absl::StrCat(word, " ", reversed);
      }
      absl::StrAppend(&source, words, "\n");
      absl::StrAppend(&target, reversed, "\n");
      absl::StrAppend(&labelled, words, "\t", i % 3, "\n");
      for (int pixel = 0; pixel < 400; ++pixel) absl::StrAppend(&pictures, Draw(0, 255), ",");
      absl::StrAppend(&pictures, i % 4, "\n");
    }
    Write("source.txt", source);
    Write("target.txt", target);
    Write("labelled.tsv", labelled);
    Write("pictures.csv", pictures);
  }

  // Returns the arguments of a random training after "train".
  Arguments RandomTraining(int index) {
    const std::vector<std::string> kinds = {"gpt", "bert", "translate", "classify", "vit"};
    const std::string kind = kinds[static_cast<size_t>(index) % kinds.size()];
    const int layers = Draw(1, 4);
    Arguments arguments = {kind,
                           absl::StrCat("--width=", 64 * Draw(1, 5)),
                           "--heads=4",
                           absl::StrCat("--batch=", 4 * Draw(2, 8)),
                           absl::StrCat("--micro-batches=", Pick({"1", "1", "2", "3"})),
                           absl::StrCat("--optimizer=", Pick({"adamw", "adamw", "sgd"})),
                           absl::StrCat("--ema=", Pick({"0", "0", "0.99"})),
                           absl::StrCat("--seed=", Draw(1, 1000)),
                           "--warmup-steps=2",
                           "--steps=40",
                           "--eval-every=40"};
    if (kind == "translate") {
      arguments = arguments + Arguments{absl::StrCat("--encoder-layers=", layers), "--decoder-layers=2"};
    } else {
      arguments.push_back(absl::StrCat("--layers=", layers));
    }
    if (kind == "gpt") arguments.push_back(absl::StrCat("--context=", 32 * Draw(1, 4)));
    if (kind == "gpt" || kind == "bert") arguments.push_back("--eval-batches=4");
    if (kind == "bert") arguments = arguments + Arguments{"--data=source.txt", "--vocabulary=400", "--context=64"};
    if (kind == "classify") arguments = arguments + Arguments{"--data=labelled.tsv", "--vocabulary=400"};
    if (kind == "vit") arguments = arguments + Arguments{"--data=pictures.csv", "--patch-size=4"};
    if (kind == "translate") {
      arguments = arguments + Arguments{"--source=source.txt", "--target=target.txt", "--vocabulary=400"};
    }
    return arguments;
  }

  // Returns the mean seconds of the steps in the second half of a run: in the first, graphs run for the first time.
  double StepSeconds(const std::string& run) const {
    std::istringstream lines(Read(run + "/metrics.jsonl"));
    std::vector<double> seconds;
    double tokens = 0;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.contains("tokens_per_second")) {
        seconds.push_back((json["tokens"].get<double>() - tokens) / json["tokens_per_second"].get<double>());
      }
      tokens = json["tokens"];
    }
    double sum = 0;
    for (size_t i = seconds.size() / 2; i < seconds.size(); ++i) sum += seconds[i];
    return sum / static_cast<double>(seconds.size() - seconds.size() / 2);
  }

  std::mt19937 random_{22};
};

TEST_F(EstimateAccuracyTest, TwentyRandomTrainings) {
  WriteData();
  std::printf("%10s %10s %10s %7s %10s %10s %7s  %s\n", "planned", "resident", "was", "off", "step_ms", "was", "off",
              "training");
  int memory_close = 0, time_close = 0;
  for (int i = 0; i < kTrainings; ++i) {
    const Arguments training = RandomTraining(i);
    const std::string run = absl::StrCat("run", i);
    const CommandResult estimated = Weft(Arguments{"estimate", "train"} + training + Arguments{"--json"});
    ASSERT_TRUE(Works(estimated));
    const CommandResult trained = Weft(Arguments{"train"} + training + Arguments{"--out=" + run});
    ASSERT_TRUE(Works(trained));
    const nlohmann::json json = nlohmann::json::parse(estimated.out);
    const double resident = json["resident_bytes"], seconds = json["step_seconds"];
    const double was_resident = static_cast<double>(trained.resident), was_seconds = StepSeconds(run);
    const double memory_off = resident / was_resident - 1, time_off = seconds / was_seconds - 1;
    memory_close += std::fabs(memory_off) <= 0.05;
    time_close += std::fabs(time_off) <= 0.20;
    std::printf("%7.1f MB %7.1f MB %7.1f MB %+6.1f%% %10.2f %10.2f %+6.1f%%  %s\n",
                json["planned_bytes"].get<double>() * 1e-6, resident * 1e-6, was_resident * 1e-6, 100 * memory_off,
                seconds * 1e3, was_seconds * 1e3, 100 * time_off, absl::StrJoin(training, " ").c_str());
    std::fflush(stdout);
  }
  std::printf("resident memory within 5%%: %d of %d; seconds a step within 20%%: %d of %d\n", memory_close, kTrainings,
              time_close, kTrainings);
  EXPECT_EQ(memory_close, kTrainings);
  EXPECT_EQ(time_close, kTrainings);
}

}  // namespace
}  // namespace weft
