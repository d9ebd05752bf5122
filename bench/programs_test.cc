// train_bench and ceiling as their user calls them.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

CommandResult RunBench(const std::string& command) {
  std::istringstream words("bench/" + command);
  return RunCommand({std::istream_iterator<std::string>(words), {}});
}

void ExpectUsageError(const std::string& program, const std::string& flags) {
  const CommandResult result = RunBench(program + " " + flags);
  EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
  EXPECT_EQ(result.out, "") << flags;
  EXPECT_THAT(result.err, StartsWith(program + ": ")) << flags;
}

TEST(TrainBenchTest, PrintsOneObject) {
  const std::string small = "train_bench --json --layers=1 --heads=2 --width=16 --steps=3 --threads=2 ";
  for (const char* model : {"gpt2", "bert", "babygpt", "charcpu", "minilm-forward"}) {
    const CommandResult result = RunBench(small + "--batch=2 --length=5 --model=" + model);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json row = nlohmann::json::parse(result.out);
    EXPECT_EQ(row.at("model"), model);
    EXPECT_EQ(row.at("batch"), 2);
    EXPECT_EQ(row.at("length"), 5);
    EXPECT_EQ(row.at("precision"), "f32");
    EXPECT_EQ(row.at("threads"), 2);
    for (const char* key : {"median_ms", "best_ms", "first_step_ms", "tokens_per_second", "gflops", "peak_rss_mb",
                            "compile_ms", "nodes", "planned_mb", "lower_bound_mb"}) {
      EXPECT_GT(row.at(key), 0) << key << " of " << model;
    }
    EXPECT_GE(row.at("median_ms"), row.at("best_ms"));
    EXPECT_NEAR(row.at("tokens_per_second"), 10 / row.at("median_ms").get<double>() * 1e3, 1e-3);
    EXPECT_EQ(row.contains("loss"), std::string(model) != "minilm-forward");
  }
}

TEST(TrainBenchTest, SameLossOnAnyNumberOfThreads) {
  const std::string command = "train_bench --json --model=charcpu --layers=1 --batch=2 --steps=3 --threads=";
  const CommandResult one = RunBench(command + "1"), three = RunBench(command + "3");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(three.exit_code, 0) << three.err;
  EXPECT_EQ(nlohmann::json::parse(one.out).at("loss"), nlohmann::json::parse(three.out).at("loss"));
}

TEST(TrainBenchTest, ProfileNamesTheOps) {
  const CommandResult result = RunBench("train_bench --profile --model=charcpu --layers=1 --batch=2 --steps=3");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"median_ms", "core ms", "\nmatmul ", "\nadamw ", "\nscheduling and waiting "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(TrainBenchTest, UsageErrors) {
  for (const char* flags :
       {"--foo", "gpt2", "--model=gtp2", "--batch=-1", "--batch=many", "--length=-1", "--precision=f16",
        "--precision=bf16", "--threads=-1", "--threads=2000", "--steps=2", "--heads=3", "--json --profile"}) {
    ExpectUsageError("train_bench", flags);
  }
  EXPECT_THAT(RunBench("train_bench --heads=3").err, HasSubstr("width 128 is not a multiple of heads 3"));
}

TEST(TrainBenchTest, Help) {
  const CommandResult result = RunBench("train_bench --help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part : {"--model", "--batch", "--length", "--precision", "--threads", "--steps", "--json",
                           "--profile", "minilm-forward", "bf16"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(CeilingTest, PeaksAndTheFloorOfAStep) {
  const CommandResult peaks = RunBench("ceiling --json --seconds=1e-3 --threads=1");
  ASSERT_EQ(peaks.exit_code, 0) << peaks.err;
  const nlohmann::json row = nlohmann::json::parse(peaks.out);
  EXPECT_EQ(row.at("threads"), 1);
  EXPECT_GT(row.at("f32_gflops"), 0);
  EXPECT_TRUE(row.at("bf16_gflops").is_null() || row.at("bf16_gflops") > 0);
  for (const char* key : {"read_gb_per_second", "write_gb_per_second", "copy_gb_per_second"}) EXPECT_GT(row.at(key), 0);
  EXPECT_FALSE(row.contains("floor_ms"));

  for (const char* model : {"charcpu", "minilm-forward"}) {
    const CommandResult floor =
        RunBench(std::string("ceiling --json --seconds=1e-3 --threads=2 --batch=1 --length=8 --model=") + model);
    ASSERT_EQ(floor.exit_code, 0) << floor.err;
    const nlohmann::json step = nlohmann::json::parse(floor.out);
    EXPECT_EQ(step.at("model"), model);
    EXPECT_GT(step.at("products_ms"), 0);
    EXPECT_EQ(step.at("adamw_ms") > 0, std::string(model) == "charcpu");
    EXPECT_NEAR(step.at("floor_ms").get<double>(),
                step.at("products_ms").get<double>() + step.at("adamw_ms").get<double>(), 1e-6);
    double sum = 0;
    for (const nlohmann::json& product : step.at("products")) {
      sum += product.at("count").get<double>() * product.at("ms").get<double>();
    }
    EXPECT_NEAR(step.at("products_ms"), sum, 1e-6);
  }
}

TEST(CeilingTest, PrintsATable) {
  const CommandResult result =
      RunBench("ceiling --seconds=1e-3 --threads=1 --batch=1 --length=8 --model=charcpu --precision=f32");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"f32_gflops ", "floor_ms ", "GFLOP/s\n", "\n1 x [8,128] [128,384]' "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(CeilingTest, UsageErrors) {
  for (const char* flags : {"--foo", "gpt2", "--model=gtp2", "--batch=-1", "--length=x", "--precision=bf16",
                            "--threads=-1", "--seconds=0", "--seconds=nan"}) {
    ExpectUsageError("ceiling", flags);
  }
}

TEST(CeilingTest, Help) {
  const CommandResult result = RunBench("ceiling --help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part : {"--model", "--batch", "--length", "--precision", "--threads", "--json", "--seconds"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

}  // namespace
}  // namespace weft
