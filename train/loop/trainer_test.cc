// Tests a Trainer on a task that is not one of Weft's own: a weight that learns to be 3.
#include "weft/train/loop/trainer.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "weft/base/file.h"
#include "weft/formats/run_folder.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The loss is (w - 3)² · factor. The 3 is a frozen weight, and the factor is fed. The validation loss is the same with
// the factor 1.
class Learner final : public TrainingTask {
 public:
  Learner() {
    factor_ = tape_.Input("factor", {kF32, {}});
    const Var three = tape_.State("three", {kF32, {}}, Constant(3), ParameterKind::kFrozen);
    program_ = {.tape = &tape_, .loss = Square(tape_.Parameter("w", {kF32, {}}, Zeros()) - three) * factor_};
  }
  absl::Span<const TrainingProgram> programs() const override { return {&program_, 1}; }
  std::string data() const override { return "none"; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch /*micro_batch*/) override {
    return Batch(factor ? factor(step) : 1);
  }
  int64_t validation_batches() const override { return batches; }
  std::vector<std::string> figure_names() const override { return {"pearson"}; }  // which is never defined
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override {
    if (validating) validating(step, index);
    return Batch(1);
  }

  int64_t batches = 2;
  std::function<float(int64_t step)> factor;
  std::function<void(int64_t step, int64_t index)> validating;

 private:
  TrainingBatch Batch(float value) { return {.feeds = {{factor_, value}}, .tokens = 1, .targets = 1}; }

  Tape tape_;
  Var factor_;
  TrainingProgram program_;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    options_ = {.steps = 20, .optimizer = Sgd({}), .eval_every = 5, .checkpoint_every = 5};
    options_.ema = 0.5;
    options_.learning_rate = [](int64_t step) { return step < 10 ? 0.1 : 0.05; };
  }

  // Trains the run `name`, or resumes it.
  absl::Status Train(const std::string& name, Learner* learner, bool resume = false) {
    const std::string folder = testing::TempDir() + "trainer_test_" + name;
    if (!resume) std::filesystem::remove_all(folder);
    absl::StatusOr<RunDirectory> run = RunDirectory::Find({.name = "test", .out = folder, .resume = resume});
    if (!run.ok()) return run.status();
    if (const absl::Status begun = run->Begin({{"command", "train test"}}); !begun.ok()) return begun;
    Parameters parameters;
    const auto trainer = Trainer::Create(options_, learner, &parameters, &*run);
    if (!trainer.ok()) return trainer.status();
    if (resume) {
      if (const absl::StatusOr<bool> resumed = (*trainer)->Resume(); !resumed.ok()) return resumed.status();
    }
    std::FILE* const out = std::tmpfile();
    const absl::Status trained = [&, progress = std::make_unique<Progress>(ProgressOptions{.out = out})] {
      return (*trainer)->Train(progress.get());
    }();
    std::fclose(out);
    if (const auto weight = parameters.Find("w"); weight.ok()) weight_ = *weight->as<float>();
    return trained;
  }
  static std::string Read(const std::string& name, const std::string& file) {
    return ReadFile(testing::TempDir() + "trainer_test_" + name + "/" + file).value_or("missing");
  }
  // The lines of metrics.jsonl without times.
  static std::string Metrics(const std::string& name) {
    std::string lines;
    const std::string all = Read(name, "metrics.jsonl");
    for (size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
      auto json = nlohmann::ordered_json::parse(all.substr(begin, end - begin));
      json.erase("seconds");
      json.erase("tokens_per_second");
      json.erase("memory");
      lines += json.dump() + "\n";
    }
    return lines;
  }
  void ExpectEqualRuns(const std::string& a, const std::string& b) {
    EXPECT_EQ(Metrics(a), Metrics(b));
    for (const std::string& file : {std::string(kLastWeights), std::string(kEmaWeights)}) {
      EXPECT_EQ(Read(a, file), Read(b, file)) << file;
    }
  }

  TrainerOptions options_;
  float weight_ = 0;
};

// By w ← w - 0.1 · 2 (w - 3), the distance to 3 shrinks by a fifth in each step, and by a tenth from step 10 on.
TEST_F(TrainerTest, TrainsAnyTask) {
  Learner learner;
  ASSERT_TRUE(Train("plain", &learner).ok());
  EXPECT_NEAR(weight_, 3 - 3 * std::pow(0.8, 10) * std::pow(0.9, 10), 1e-5);
  EXPECT_THAT(Metrics("plain"), HasSubstr("{\"step\":1,\"tokens\":1,\"train_loss\":9.0,\"learning_rate\":0.1,"
                                          "\"grad_norm\":6.0}"));
}

// The evaluations before the first step and after step 5 have no correlation.
TEST_F(TrainerTest, AnUndefinedMetricEndsTheTrainingByPatience) {
  options_.metric = "val_pearson";
  options_.save_best = true;
  options_.patience = 2;
  Learner learner;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Train("undefined", &learner).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: warning: val_pearson is undefined after step 0, because all predictions or all labels are equal; "
            "such an evaluation counts as no better one\n");
  EXPECT_THAT(Metrics("undefined"), HasSubstr("\"step\":5"));
  EXPECT_THAT(Metrics("undefined"), Not(HasSubstr("\"step\":6")));
  EXPECT_EQ(Read("undefined", kBestWeights), "missing");
}

TEST_F(TrainerTest, RestoresFilesThatWereRemoved) {
  Learner learner;
  learner.validating = [](int64_t step, int64_t /*index*/) {
    if (step == 10) std::filesystem::remove(testing::TempDir() + "trainer_test_removed/config.json");
  };
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Train("removed", &learner).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("removed/config.json was removed during the training, and is written again\n"));
  EXPECT_EQ(Read("removed", "config.json"), "{\n  \"command\": \"train test\"\n}\n");
}

TEST_F(TrainerTest, ASignalDuringAnEvaluationStopsItAndLosesNoStep) {
  Learner whole, stopped, resumed;
  ASSERT_TRUE(Train("whole", &whole).ok());
  stopped.validating = [](int64_t step, int64_t index) {
    if (step == 10 && index == 0) std::raise(SIGINT);
  };
  const absl::Status status = Train("stopped", &stopped);
  EXPECT_EQ(status.message(), "interrupted after step 10 and saved");
  EXPECT_THAT(Metrics("stopped"), Not(HasSubstr("\"step\":10")));
  ASSERT_TRUE(Train("stopped", &resumed, /*resume=*/true).ok());
  ExpectEqualRuns("whole", "stopped");
}

// Its checkpoint must not ask for the evaluation each time that the run is resumed.
TEST_F(TrainerTest, AnInterruptedLastEvaluationIsMadeUpForOnce) {
  Learner whole, stopped;
  ASSERT_TRUE(Train("whole", &whole).ok());
  stopped.validating = [](int64_t step, int64_t index) {
    if (step == 20 && index == 0) std::raise(SIGINT);
  };
  EXPECT_EQ(Train("last", &stopped).message(), "interrupted after step 20 and saved");
  for (int i = 0; i < 3; ++i) {
    Learner resumed;
    ASSERT_TRUE(Train("last", &resumed, /*resume=*/true).ok());
    ExpectEqualRuns("whole", "last");
  }
}

TEST_F(TrainerTest, AnInterruptedFirstEvaluationSavesNothing) {
  Learner stopped, resumed, whole;
  stopped.validating = [](int64_t /*step*/, int64_t /*index*/) { std::raise(SIGTERM); };
  EXPECT_EQ(Train("first", &stopped).message(), "interrupted before step 1; nothing was saved");
  ASSERT_TRUE(Train("first", &resumed, /*resume=*/true).ok());
  ASSERT_TRUE(Train("whole", &whole).ok());
  ExpectEqualRuns("whole", "first");
}

// The step whose gradient is infinite changes neither the weight nor its average, and its tokens do not count.
TEST_F(TrainerTest, AStepThatIsNotFiniteIsSkipped) {
  Learner learner;
  learner.factor = [](int64_t step) { return step == 7 ? std::numeric_limits<float>::infinity() : 1; };
  ASSERT_TRUE(Train("skipped", &learner).ok());
  EXPECT_NEAR(weight_, 3 - 3 * std::pow(0.8, 9) * std::pow(0.9, 10), 1e-5);
  EXPECT_THAT(Metrics("skipped"), HasSubstr("{\"step\":8,\"tokens\":7,\"skipped\":1}\n"));
  EXPECT_THAT(Metrics("skipped"), HasSubstr("{\"step\":20,\"tokens\":19,"));
}

TEST_F(TrainerTest, TooManySkippedStepsEndTheRunAndKeepTheLastGoodState) {
  Learner learner;
  learner.factor = [](int64_t step) { return step >= 7 ? std::numeric_limits<float>::infinity() : 1; };
  options_.max_skipped = 4;
  const absl::Status status = Train("ended", &learner);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("after 4 skipped steps (max-skipped)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the last checkpoint is of step 5"));
}

TEST_F(TrainerTest, BestWeightsAreThoseOfTheBestEvaluation) {
  Learner learner;
  learner.factor = [](int64_t step) { return step < 10 ? 1.0f : -1.0f; };  // from step 10 on the weight moves away
  options_.save_best = true;
  options_.patience = 2;
  ASSERT_TRUE(Train("best", &learner).ok());
  Parameters best;
  ASSERT_TRUE(best.Create(std::vector<ParameterSpec>{{"w", {kF32, {}}, Zeros()}}).ok());
  ASSERT_TRUE(best.Load(testing::TempDir() + "trainer_test_best/" + kBestWeights, Parameters::kWeights,
                        Parameters::kMayHaveMore)
                  .ok());
  EXPECT_NEAR(*best.Find("w")->as<float>(), 3 - 3 * std::pow(0.8, 10), 1e-5);
  EXPECT_THAT(Metrics("best"), HasSubstr("\"step\":20"));
  options_.steps = 40;
  Learner again;
  ASSERT_TRUE(Train("best", &again, /*resume=*/true).ok());
  EXPECT_THAT(Metrics("best"), Not(HasSubstr("\"step\":21")));  // the run had ended
}

// With the rate 1 the weight jumps from 0 to 6 and back, and its average comes near 3.
TEST_F(TrainerTest, FilesOfAveragesHaveAllWeights) {
  Learner learner;
  options_.learning_rate = [](int64_t /*step*/) { return 1.0; };
  options_.steps = 11;
  options_.save_best = true;
  options_.metric = "ema_val_loss";
  ASSERT_TRUE(Train("averages", &learner).ok());
  EXPECT_EQ(weight_, 6);
  for (const char* const file : {kEmaWeights, kBestWeights}) {
    Parameters read;
    ASSERT_TRUE(
        read.Create(std::vector<ParameterSpec>{{"w", {kF32, {}}, Zeros()}, {"three", {kF32, {}}, Zeros()}}).ok());
    const absl::Status loaded = read.Load(testing::TempDir() + "trainer_test_averages/" + file);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(*read.Find("three")->as<float>(), 3);
    EXPECT_NEAR(*read.Find("w")->as<float>(), 3, 1.1) << file;
  }
}

TEST_F(TrainerTest, WhatNeedsEvaluationsNeedsValidationData) {
  Learner learner;
  learner.batches = 0;
  ASSERT_TRUE(Train("unevaluated", &learner).ok());
  options_.patience = 3;
  EXPECT_THAT(std::string(Train("unevaluated", &learner).message()),
              HasSubstr("patience needs evaluations, but there are no"));
}

TEST_F(TrainerTest, AMetricThatIsNotMeasuredIsAnError) {
  Learner learner;
  options_.metric = "val_accuracy";
  EXPECT_THAT(std::string(Train("metric", &learner).message()), HasSubstr("this training measures no val_accuracy"));
}

}  // namespace
}  // namespace weft
