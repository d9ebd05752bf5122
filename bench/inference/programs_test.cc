// Runs the benchmarks of inference as a user does, on small models.
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::StartsWith;

CommandResult RunProgram(const std::string& command) {
  std::istringstream words("bench/inference/" + command);
  return RunCommand({std::istream_iterator<std::string>(words), {}});
}

TEST(GenerateBenchTest, PrintsOneObject) {
  const std::string small = "generate_bench --json --model=charcpu --layers=1 --length=4 --repeats=1 ";
  for (const char* flags : {"--mode=decode --precision=q8_0 --batch=2", "--mode=prefill --precision=f32 --window=2"}) {
    const CommandResult result = RunProgram(small + flags);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json row = nlohmann::json::parse(result.out);
    for (const char* key : {"tokens_per_second", "weight_gb_per_second", "first_token_ms", "peak_rss_mb"}) {
      EXPECT_GT(row.at(key).get<double>(), 0) << key;
    }
  }
  EXPECT_EQ(RunProgram("generate_bench --precision=q5_2").exit_code, 2);
}

TEST(TranslateBenchTest, SaysWhichModelIsMissing) {
  const CommandResult result = RunProgram("translate_bench --model=/nowhere --source=/nowhere/file");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("translate_bench: cannot find /nowhere"));
  EXPECT_EQ(RunProgram("translate_bench --model=/nowhere").exit_code, 2);
}

TEST(EncodeBenchTest, PrintsOneObject) {
  for (const char* precision : {"f32", "q8_0"}) {
    const CommandResult result =
        RunProgram(std::string("encode_bench --json --batch=1 --length=4 --repeats=1 --precision=") + precision);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(nlohmann::json::parse(result.out).at("texts_per_second").get<double>(), 0);
  }
}

}  // namespace
}  // namespace weft
