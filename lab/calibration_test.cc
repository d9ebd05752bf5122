#include "weft/lab/calibration.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/measured.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using testing::HasSubstr;

TEST(CalibrationTest, FindsTheRatesThatMadeTheTimesWhateverAFewOutliersSay) {
  std::vector<TileSample> samples;
  for (int i = 1; i <= 60; ++i) {
    const double flops = 1e6 * i, bytes = 1e5 * (1 + i * 7 % 11);
    const double seconds = 2e-6 + 1e-11 * flops + 1e-10 * bytes;
    samples.push_back({.kind = "matmul f32",
                       .flops = flops,
                       .bytes = bytes,
                       .model_seconds = seconds / 2,
                       .seconds = i % 10 == 0 ? 5 * seconds : seconds});
    samples.push_back({.kind = "add f32", .bytes = bytes, .model_seconds = bytes, .seconds = 3e-10 * bytes});
  }
  const Calibration calibration = Calibration::Fit(samples);
  EXPECT_NEAR(calibration.Seconds({.kind = "matmul f32", .flops = 1e8, .bytes = 1e4}), 1e-3 + 3e-6, 2e-6);
  EXPECT_NEAR(calibration.Seconds({.kind = "add f32", .flops = 1e9, .bytes = 1e6}), 3e-4, 1e-7);

  const EstimateErrors errors = CompareEstimates(samples, &calibration);
  EXPECT_LT(errors.median_off, 1e-3);
  ASSERT_EQ(errors.kinds.size(), 2u);
  EXPECT_EQ(errors.kinds[0].calls, 60);
  EXPECT_GT(errors.kinds[0].seconds, errors.kinds[1].seconds);

  const absl::StatusOr<Calibration> again = Calibration::FromJson(calibration.ToJson(), "here");
  ASSERT_TRUE(again.ok()) << again.status();
  for (const TileSample& sample : samples) EXPECT_EQ(again->Seconds(sample), calibration.Seconds(sample));
  const TileSample unknown = {.kind = "exp f32", .model_seconds = 1};
  EXPECT_EQ(again->Seconds(unknown), calibration.Seconds(unknown));
}

// The unweighted least squares, on which outliers have the greatest effect, give a negative rate.
TEST(CalibrationTest, OutliersDoNotHideTheRatesOfTheOthers) {
  std::vector<TileSample> samples;
  for (int i = 1; i <= 40; ++i) {
    const double bytes = 1e4 * i, seconds = 1e-6 + 1e-10 * bytes;
    samples.push_back({.kind = "k", .bytes = bytes, .seconds = i > 30 ? 20 * seconds : seconds});
  }
  const Calibration calibration = Calibration::Fit(samples);
  EXPECT_NEAR(calibration.Seconds({.kind = "k", .bytes = 1e5}), 1.1e-5, 1e-7);
}

TEST(CalibrationTest, RatesAreNeverNegativeAndOneSampleIsEnough) {
  // Time falls with the bytes: only a constant fits.
  std::vector<TileSample> samples;
  for (int i = 1; i <= 9; ++i) samples.push_back({.kind = "k", .bytes = 1e3 * i, .seconds = 1e-5 / i});
  const Calibration falling = Calibration::Fit(samples);
  EXPECT_GE(falling.Seconds({.kind = "k", .bytes = 1e9}), 0);
  const Calibration one = Calibration::Fit({{.kind = "k", .flops = 1e6, .bytes = 1e3, .seconds = 1e-5}});
  EXPECT_NEAR(one.Seconds({.kind = "k", .flops = 1e6, .bytes = 1e3}), 1e-5, 1e-12);
  EXPECT_EQ(Calibration::Fit({}).Seconds({.kind = "k", .model_seconds = 2}), 2);
}

// The use of a calibration: priorities of a graph that was never run.
TEST(CalibrationTest, GivesEveryTaskOfAGraphItsTime) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {512, 512}}), w = tape.Parameter("w", {kF32, {512, 512}}, Gaussian(0.1f));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Sum(Tanh(MatMul(x, w)))}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<TileTime> times(graph->compiled().tiles.size(), {.end = 5000});
  const std::vector<TileSample> samples = Samples(*graph, CallSeconds(*graph, times));
  const Calibration calibration = Calibration::Fit(samples);
  EXPECT_LT(CompareEstimates(samples, &calibration).median_off, 1e-6);
  const std::vector<double> estimates = calibration.TaskSeconds(*graph), tasks = TaskSeconds(*graph, times);
  double estimate = 0, measured = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    EXPECT_EQ(estimates[t] > 0, graph->compiled().tasks[t].group != Task::kJoin);
    estimate += estimates[t];
    measured += tasks[t];
  }
  EXPECT_NEAR(estimate, measured, 1e-6 * measured);
  EXPECT_EQ(WithTimes(*graph, estimates).compiled().tasks.size(), tasks.size());
}

TEST(CalibrationTest, AFileMayHaveTheNetwork) {
  Calibration calibration;
  EXPECT_FALSE(calibration.network());
  calibration.set_network({.latency_seconds = 25e-6, .bytes_per_second = 1.25e9});
  const auto read = Calibration::FromJson(calibration.ToJson(), "costs.json");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->network());
  EXPECT_EQ(ToString(*read->network()), "25us,10Gbit");
  EXPECT_FALSE(read->has_costs());
}

TEST(CalibrationTest, AFileMaySayWhatThreadsLoseBySharing) {
  Calibration calibration;
  calibration.set_sharing(
      {{.threads = 1, .flops = 2e11, .bytes = 3e10},
       {.threads = 16, .flops = 1e12, .bytes = 9e10, .wake_seconds = 2e-5, .moved_byte_seconds = 1e-10}});
  const auto read = Calibration::FromJson(calibration.ToJson(), "costs.json");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->sharing().size(), 2u);
  EXPECT_EQ(read->sharing()[1].threads, 16);
  EXPECT_EQ(read->sharing()[1].moved_byte_seconds, 1e-10);
  EXPECT_EQ(read->ToJson(), calibration.ToJson());
  const auto with = [](const std::string& rows) {
    return Calibration::FromJson(R"({"weft_calibration": 1, "ops": {}, "others": 1, "sharing": )" + rows + "}", "f")
        .ok();
  };
  const std::string figures = R"("flops": 1, "bytes": 1, "wake_seconds": 0, "moved_byte_seconds": 0})";
  EXPECT_TRUE(with(R"([{"threads": 1, )" + figures + "]"));
  EXPECT_FALSE(with(R"([{"threads": 1.5, )" + figures + "]"));
  EXPECT_FALSE(with(R"([{"threads": 2, )" + figures + R"(, {"threads": 2, )" + figures + "]"));
  EXPECT_FALSE(with(R"([{"threads": 1, "flops": 1, "bytes": 1, "wake_seconds": 0}])"));
  EXPECT_FALSE(with(R"([{"threads": 2, )" + figures + "]"));
  EXPECT_FALSE(with(R"([{"threads": 1, )" + figures +
                    R"(, {"threads": 2, "flops": 0, "bytes": 1, "wake_seconds": 0, "moved_byte_seconds": 0}])"));
  EXPECT_FALSE(with("[]"));
  EXPECT_FALSE(with("[3]"));
  EXPECT_FALSE(with("{}"));
}

TEST(CalibrationTest, SaysWhatIsWrongWithAFile) {
  const auto error = [](const std::string& text) {
    return std::string(Calibration::FromJson(text, "costs.json").status().message());
  };
  EXPECT_THAT(error("{"), HasSubstr("costs.json is not a calibration: it is not JSON: line 1, column 2"));
  EXPECT_THAT(error("{}"), HasSubstr("\"weft_calibration\" is not 1"));
  EXPECT_THAT(error(R"({"weft_calibration": 1, "others": 1})"), HasSubstr("\"ops\" is not an object"));
  EXPECT_THAT(error(R"({"weft_calibration": 1, "ops": {}, "others": "x"})"), HasSubstr("\"others\""));
  EXPECT_THAT(error(R"({"weft_calibration": 1, "ops": {}, "others": 1e308})"), HasSubstr("\"others\""));
  EXPECT_THAT(error(R"({"weft_calibration": 1, "others": 1, "ops": {"exp f32": {"tile_seconds": -1}}})"),
              HasSubstr("\"exp f32\" needs tile_seconds"));
  EXPECT_THAT(error(R"({"weft_calibration": 1, "ops": {}, "others": 1, "network": "fast"})"),
              HasSubstr("\"network\": 'fast' is not LATENCY,BANDWIDTH"));
}

}  // namespace
}  // namespace weft
