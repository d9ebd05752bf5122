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

}  // namespace
}  // namespace weft
