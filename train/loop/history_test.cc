#include "weft/train/loop/history.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(TrainingHistoryTest, RemembersTheBestEvaluation) {
  TrainingHistory losses, accuracies;
  EXPECT_TRUE(losses.Evaluated(10, "val_loss", 2));
  EXPECT_FALSE(losses.Evaluated(20, "val_loss", 2));  // an equal loss is not better
  EXPECT_FALSE(losses.Evaluated(30, "val_loss", 3));
  EXPECT_EQ(losses.evaluations_since_best(), 2);
  EXPECT_TRUE(losses.Evaluated(40, "val_loss", 1));
  EXPECT_EQ(losses.evaluations_since_best(), 0);
  EXPECT_EQ(losses.best_step(), 40);
  EXPECT_EQ(losses.best(), 1);
  EXPECT_TRUE(accuracies.Evaluated(10, "ema_val_accuracy", 0.5));
  EXPECT_TRUE(accuracies.Evaluated(20, "ema_val_accuracy", 0.6));
  EXPECT_FALSE(accuracies.Evaluated(30, "ema_val_accuracy", 0.4));
  EXPECT_TRUE(accuracies.Evaluated(40, "val_f1", 0.7));
}

TEST(TrainingHistoryTest, AnUndefinedMetricIsNotBetter) {
  TrainingHistory history;
  EXPECT_FALSE(history.Evaluated(10, "val_pearson", std::nullopt));
  EXPECT_FALSE(history.Evaluated(20, "val_pearson", std::nullopt));
  EXPECT_EQ(history.best(), std::nullopt);
  absl::StatusOr<TrainingHistory> again = TrainingHistory::FromJson(history.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->evaluations_since_best(), 2);
  EXPECT_TRUE(again->Evaluated(30, "val_pearson", -0.5));
  EXPECT_FALSE(again->Evaluated(40, "val_pearson", std::nullopt));
  EXPECT_EQ(again->evaluations_since_best(), 1);
}

TEST(TrainingHistoryTest, ReadsTheNamedMetric) {
  Metrics line;
  EXPECT_EQ(MetricValue(line, "val_loss"), std::nullopt);
  line.validation = {.loss = 1};
  EXPECT_EQ(MetricValue(line, "val_loss"), 1);
  EXPECT_EQ(MetricValue(line, "val_accuracy"), std::nullopt);
  EXPECT_EQ(MetricValue(line, "ema_val_loss"), std::nullopt);
  line.validation = {.loss = 1, .accuracy = 0.2};
  line.ema = {.loss = 3, .accuracy = 0.4};
  EXPECT_EQ(MetricValue(line, "val_accuracy"), 0.2);
  EXPECT_EQ(MetricValue(line, "ema_val_loss"), 3);
  EXPECT_EQ(MetricValue(line, "ema_val_accuracy"), 0.4);
  EXPECT_EQ(MetricValue(line, "val_f1"), std::nullopt);
  line.validation->figures = {{"recall", 0.5}, {"f1", 0.6}};
  line.ema->figures = {{"f1", 0.7}};
  EXPECT_EQ(MetricValue(line, "val_f1"), 0.6);
  EXPECT_EQ(MetricValue(line, "ema_val_f1"), 0.7);
}

// The losses alternate between 1 and 3: their mean is 2 and their standard deviation 1.
TEST(TrainingHistoryTest, TheLimitOfLossesIsDeviationsAboveTheMean) {
  TrainingHistory history;
  for (int i = 0; i < 99; ++i) history.Trained(i % 2 == 0 ? 1 : 3);
  EXPECT_EQ(history.LossLimit(4), std::numeric_limits<double>::infinity());
  history.Trained(3);
  EXPECT_NEAR(history.LossLimit(4), 6, 1e-9);
  EXPECT_EQ(history.LossLimit(0), std::numeric_limits<double>::infinity());
}

TEST(TrainingHistoryTest, CountsSkippedSteps) {
  TrainingHistory history;
  history.Skipped();
  history.Skipped();
  EXPECT_EQ(history.skipped_in_a_row(), 2);
  history.Trained(1);
  history.Skipped();
  EXPECT_EQ(history.skipped_in_a_row(), 1);
  EXPECT_EQ(history.skipped(), 3);
}

TEST(TrainingHistoryTest, SurvivesJson) {
  TrainingHistory history;
  EXPECT_TRUE(history.Evaluated(10, "val_loss", 0.1));
  EXPECT_FALSE(history.Evaluated(20, "val_loss", 0.3));
  history.Trained(1.1);
  history.Trained(0.7);
  history.Skipped();
  history.plateau = {.best = 0.4, .bad = 2, .scale = 0.25};
  history.pending = {.tokens = 7, .training = {{.loss = 0.3, .learning_rate = 0.1, .gradient_norm = 2}}, .skipped = 1};
  const absl::StatusOr<TrainingHistory> again = TrainingHistory::FromJson(history.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), history.ToJson());
  EXPECT_EQ(again->best(), 0.1);
  EXPECT_EQ(again->plateau.bad, 2);
  EXPECT_EQ(again->pending->tokens, 7);
  EXPECT_EQ(again->pending->training->gradient_norm, 2);
  EXPECT_EQ(again->pending->skipped, 1);

  EXPECT_EQ(TrainingHistory::FromJson("{}")->ToJson(), TrainingHistory().ToJson());
  EXPECT_THAT(TrainingHistory::FromJson("[]").status().message(), HasSubstr("object"));
  EXPECT_THAT(TrainingHistory::FromJson(R"({"loss": {"count": 1, "mean": "x", "variance": 0}})").status().message(),
              HasSubstr("unreadable 'loss'"));
  EXPECT_THAT(TrainingHistory::FromJson(R"({"best": 3})").status().message(), HasSubstr("unreadable 'best'"));
}

}  // namespace
}  // namespace weft
