#include "weft/train/loop/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

TrainingOptions Options() {
  return {.optimizer = AdamW({.beta2 = 0.98, .weight_decay = 0.1, .clip = 1.0}),
          .schedule = {.peak = 0.5, .floor = 0.25, .warmup = 10},
          .trainer = {.steps = 50}};
}

absl::Status Set(const char* json, TrainingOptions* options) {
  return SetFromJson(Json::parse(json), TrainingHyperparameters(options));
}

TEST(OptionsTest, TheInitialOptimizerKeepsItsSettings) {
  TrainingOptions options = Options();
  const Json before = ToJson(TrainingHyperparameters(&options));
  EXPECT_EQ(before["optimizer"], "adamw");
  EXPECT_EQ(before["beta1"], 0.9);
  EXPECT_EQ(before["beta2"], 0.98);
  EXPECT_FALSE(before.contains("momentum"));
  EXPECT_FALSE(before.contains("nesterov"));
  ASSERT_TRUE(Set(R"({"beta1": 0.5})", &options).ok());
  const Optimizer optimizer = options.optimizer;
  EXPECT_EQ(optimizer.row().name, "adamw");
  EXPECT_EQ(optimizer.settings().beta1, 0.5);
  EXPECT_EQ(optimizer.settings().beta2, 0.98);
  EXPECT_EQ(optimizer.settings().weight_decay, 0.1);
  EXPECT_EQ(optimizer.settings().clip, 1.0);
}

// The order of the keys does not matter: settings are read when all rows are set.
TEST(OptionsTest, AnotherOptimizerHasItsOwnDefaults) {
  for (const char* json : {R"({"optimizer": "sgd", "momentum": 0.5, "groups": "*.bias:decay=0", "clip_value": 3})",
                           R"({"clip_value": 3, "groups": "*.bias:decay=0", "momentum": 0.5, "optimizer": "sgd"})"}) {
    TrainingOptions options = Options();
    ASSERT_TRUE(Set(json, &options).ok());
    ASSERT_TRUE(Validate(options).ok()) << Validate(options);
    const Json after = ToJson(TrainingHyperparameters(&options));
    EXPECT_FALSE(after.contains("beta1"));
    EXPECT_EQ(after["nesterov"], false);
    EXPECT_EQ(after["weight_decay"], 0);
    const Optimizer optimizer = options.optimizer;
    EXPECT_EQ(optimizer.row().name, "sgd");
    EXPECT_EQ(optimizer.settings().momentum, 0.5);
    EXPECT_FALSE(optimizer.settings().beta1.has_value());
    EXPECT_EQ(optimizer.settings().clip, 1.0);
    EXPECT_EQ(optimizer.settings().clip_value, 3);
    ASSERT_EQ(optimizer.settings().groups.size(), 1);
    EXPECT_EQ(optimizer.settings().groups[0].weight_decay, 0);
    TrainingOptions again = Options();  // as a resumed run reads its config.json
    ASSERT_TRUE(SetFromJson(after, TrainingHyperparameters(&again)).ok());
    EXPECT_TRUE(Validate(again).ok()) << Validate(again);
    EXPECT_EQ(ToJson(TrainingHyperparameters(&again)), after);
  }
}

TEST(OptionsTest, EveryOptimizerCanBeChosen) {
  for (const OptimizerRow& row : Optimizers()) {
    TrainingOptions options = Options();
    options.optimizer.name = std::string(row.name);
    EXPECT_TRUE(Validate(options).ok()) << Validate(options);
    EXPECT_EQ(Optimizer(options.optimizer).row().name, row.name);
  }
}

TEST(OptionsTest, Errors) {
  const struct {
    const char *json, *error;
  } kRows[] = {
      {R"({"optimizer": "adamv"})",
       "key 'optimizer': 'adamv' is not one of adamw, adam, sgd, adagrad, lion, muon, adafactor, did you mean "
       "'adamw'?"},
      {R"({"optimizer": "sgd", "beta1": 0.9})", "beta1: the optimizer sgd has no such setting"},
      {R"({"momentum": 0.9})", "momentum: the optimizer adamw has no such setting"},
      {R"({"nesterov": true})", "nesterov: the optimizer adamw has no such setting"},
      {R"({"groups": "x"})", "groups: 'x' has no settings, as in 'x:frozen'"},
      {R"({"schedule": "cosin"})", "schedule: there is no 'cosin', did you mean 'cosine'?"},
      {R"({"learning_rate": 0.125})", "min-learning-rate 0.25 is more than learning-rate 0.125; give both"},
      {R"({"schedule": "plateau", "plateau_factor": 1})", "plateau-factor 1 is not in [0, 1)"},
  };
  for (const auto& [json, error] : kRows) {
    TrainingOptions options = Options();
    absl::Status status = Set(json, &options);
    if (status.ok()) status = Validate(options);
    EXPECT_EQ(status.message(), error) << json;
  }
  TrainingOptions options = Options();
  options.optimizer.name = "adamv";
  EXPECT_EQ(Validate(options).message(), "optimizer: there is no 'adamv', did you mean 'adamw'?");
}

TEST(OptionsTest, TheScheduleHasAName) {
  TrainingOptions options = Options();
  EXPECT_EQ(ToTrainerOptions(options, 0).learning_rate(30), 0.25 + 0.25 * 0.5);  // the middle of a cosine
  EXPECT_FALSE(ToTrainerOptions(options, 0).plateau.has_value());
  ASSERT_TRUE(Set(R"({"schedule": "constant:20,linear", "warmup_steps": 0})", &options).ok());
  EXPECT_EQ(ToTrainerOptions(options, 0).learning_rate(0), 0.5);
  EXPECT_EQ(ToTrainerOptions(options, 0).learning_rate(35), 0.375);
  ASSERT_TRUE(Set(R"({"schedule": "plateau", "plateau_patience": 3})", &options).ok());
  ASSERT_TRUE(ToTrainerOptions(options, 0).plateau.has_value());
  EXPECT_EQ(ToTrainerOptions(options, 0).plateau->patience, 3);
  EXPECT_EQ(ToTrainerOptions(options, 0).plateau->min_scale, 0.5);
}

TEST(OptionsTest, AGivenWarmupMustFitTheTraining) {
  TrainingOptions options = Options();
  EXPECT_TRUE(CheckSchedule(options, 0).ok());
  options.trainer.steps = 5;  // fewer than those of the default warm-up
  EXPECT_TRUE(CheckSchedule(options, 0).ok());
  EXPECT_EQ(ToTrainerOptions(options, 0).learning_rate(4), 0.5 * 5 / 11);
  options.warmup = 6;
  EXPECT_EQ(CheckSchedule(options, 0).message(),
            "warmup-steps: the warm-up of 6 steps is longer than the training of 5 steps");
  options.trainer.steps = 0;
  EXPECT_TRUE(CheckSchedule(options, 0).ok());
  options.epochs = 2;
  EXPECT_EQ(CheckSchedule(options, 2).message(),
            "warmup-steps: the warm-up of 6 steps is longer than the training of 4 steps");
  EXPECT_TRUE(CheckSchedule(options, 3).ok());
}

}  // namespace
}  // namespace weft
