// Tests what lets a training run without a person beside it: micro-batches, averaged and best weights, early stopping,
// and skipped steps. A stopped and resumed run must end like one that was not stopped.
#include <csignal>
#include <cstdlib>
#include <regex>
#include <string>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class UnattendedTrainingTest : public WeftProgramTest {
 protected:
  // Returns the arguments that train a small model of any kind.
  Arguments AnyTraining(const std::string& name) const {
    if (name != "gpt") return SmallTraining(name);
    return Arguments{"train", "gpt", "--data=text.txt", "--eval-batches=2"} + kTinyModel + Arguments{"--batch=5"};
  }
};

TEST_F(UnattendedTrainingTest, EveryTrainingResumesWithMicroBatchesAndAverages) {
  WriteTrainingData();
  for (const std::string name : {"gpt", "bert", "translate", "classify", "vit"}) {
    SCOPED_TRACE(name);
    const Arguments flags =
        AnyTraining(name) + Arguments{"--micro-batches=3", "--ema=0.9",       "--save-best",
                                      "--steps=300",       "--eval-every=50", "--checkpoint-every=50",
                                      "--log-every=1"};
    const CommandResult stopped =
        Weft(flags + Arguments{"--out=" + name}, {.signal_after = "step 120/300  loss", .signal = SIGTERM});
    EXPECT_TRUE(Fails(stopped, 1, "interrupted after step "));
    EXPECT_TRUE(Works(Weft({"train", name, "--resume", "--out=" + name, "--threads=1"})));
    EXPECT_TRUE(Exists(name + "/ema.safetensors"));
    EXPECT_TRUE(Exists(name + "/best.safetensors"));
    EXPECT_TRUE(Works(Weft(flags + Arguments{"--out=unstopped-" + name})));
    EXPECT_EQ(Differences(Results(name), Results("unstopped-" + name)), "");
    EXPECT_TRUE(Fails(Weft({"train", name, "--resume", "--out=" + name, "--micro-batches=2"}), 2,
                      "a resumed run can't change micro-batches"));
  }
}

TEST_F(UnattendedTrainingTest, MicroBatchesTrainAsTheWholeBatch) {
  const Arguments flags = {"--batch=6", "--steps=40", "--eval-every=40", "--learning-rate=1e-2"};
  MakeRun("whole", flags);
  const std::regex loss("\"val_loss\":([0-9.]+)[^\n]*\n$");
  std::smatch whole;
  const std::string metrics = Read("whole/metrics.jsonl");
  ASSERT_TRUE(std::regex_search(metrics, whole, loss));
  for (const char* count : {"2", "4", "6"}) {
    MakeRun(count, flags + Arguments{std::string("--micro-batches=") + count});
    const std::string lines = Read(std::string(count) + "/metrics.jsonl");
    std::smatch parts;
    ASSERT_TRUE(std::regex_search(lines, parts, loss));
    EXPECT_NEAR(std::atof(parts[1].str().c_str()), std::atof(whole[1].str().c_str()), 1e-3) << count;
  }
  EXPECT_TRUE(Fails(Train({"--batch=2", "--micro-batches=3"}), 2, "--micro-batches: 3 can't share a batch of 2"));
}

TEST_F(UnattendedTrainingTest, PatienceEndsARunThatNoLongerImproves) {
  const Arguments flags = {"--steps=400",       "--eval-every=5",        "--patience=3",
                           "--learning-rate=0", "--min-learning-rate=0", "--checkpoint-every=0"};
  const CommandResult result = Train(flags + Arguments{"--out=run"});
  EXPECT_TRUE(Works(result));
  // The validation windows differ from evaluation to evaluation, so some evaluation is the best of its neighbours.
  EXPECT_TRUE(std::regex_search(result.err, std::regex("no better val_loss in 3 evaluations: the best was [0-9.]+ at "
                                                       "step [0-9]+\nsaved run/model.safetensors\n")))
      << result.err;
  EXPECT_FALSE(Contains(result.err, "step 400/400"));
  const CommandResult resumed = Weft({"train", "gpt", "--resume", "--out=run"});  // it stays ended
  EXPECT_TRUE(Works(resumed));
  EXPECT_TRUE(Contains(resumed.err, "no better val_loss in 3 evaluations")) << resumed.out;
}

TEST_F(UnattendedTrainingTest, StepsWithAHighLossAreSkippedAndCounted) {
  const Arguments flags = {"--steps=300",       "--skip-deviations=1.5", "--log-every=1", "--checkpoint-every=50",
                           "--learning-rate=0", "--min-learning-rate=0"};  // so the losses only vary
  const CommandResult result =
      Train(flags + Arguments{"--out=run"}, {.signal_after = "step 180/300  loss", .signal = SIGKILL});
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--resume", "--out=run"})));
  EXPECT_TRUE(Contains(Read("run/metrics.jsonl"), "\"skipped\":3")) << Read("run/metrics.jsonl");
  MakeRun("unstopped", flags);
  EXPECT_EQ(Differences(Results("run"), Results("unstopped")), "");
}

TEST_F(UnattendedTrainingTest, StepsThatAreNotFiniteAreSkippedUntilTheyAreTooMany) {
  const CommandResult result = Train({"--out=run", "--learning-rate=1e30", "--min-learning-rate=0", "--warmup-steps=0",
                                      "--clip=0", "--checkpoint-every=1", "--eval-every=0", "--max-skipped=4"});
  EXPECT_TRUE(
      Fails(result, 1, "loss nan, gradient norm nan at step 6, after 4 skipped steps (max-skipped); the first"));
  EXPECT_TRUE(Contains(result.err, "step 5/20  skipped: loss nan, gradient norm nan\n")) << result.out;
  EXPECT_TRUE(Contains(Read("run/metrics.jsonl"), "\"skipped\":4}")) << Read("run/metrics.jsonl");
  EXPECT_TRUE(Exists("run/checkpoints/1/state.safetensors"));  // the last state that trained
}

TEST_F(UnattendedTrainingTest, OptionsThatContradictEachOtherAreErrors) {
  EXPECT_TRUE(Fails(Train({"--save-best", "--metric=ema_val_loss"}), 2,
                    "--metric: ema_val_loss needs averaged weights; set ema"));
  EXPECT_TRUE(Fails(Train({"--patience=3", "--eval-every=0"}), 2, "--patience: it needs evaluations; set eval-every"));
  EXPECT_TRUE(Fails(Train({"--save-best", "--eval-every=0"}), 2, "--save-best: it needs evaluations; set eval-every"));
  EXPECT_TRUE(Fails(Train({"--keep=0"}), 2, "--keep: "));
}

}  // namespace
}  // namespace weft
