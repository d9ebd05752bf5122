// `weft profile` and `weft simulate` as a user calls them, and what docs/scheduling.md shows.
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using testing::HasSubstr;

class SchedulingTest : public WeftProgramTest {};

Arguments Words(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST_F(SchedulingTest, ProfileWritesATrace) {
  const Arguments command = {"profile", "--graph=towers", "--runs=1", "--threads=2", "--out=trace.json"};
  const CommandResult result = Weft(command);
  ASSERT_TRUE(Works(result));
  EXPECT_THAT(result.out, HasSubstr("the trace is in trace.json"));
  const nlohmann::json trace = nlohmann::json::parse(Read("trace.json"));
  int critical = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("args").at("critical") == true) ++critical;
  }
  EXPECT_GE(critical, 32);  // the deepest tower

  const std::string before = Read("trace.json");
  EXPECT_TRUE(Fails(Weft(command), 2, "trace.json is there: --overwrite replaces it"));
  EXPECT_EQ(Read("trace.json"), before);
  EXPECT_TRUE(Works(Weft(command + Arguments{"--overwrite", "--policy=critical-path-measured"})));
  EXPECT_NE(Read("trace.json"), before);
}

TEST_F(SchedulingTest, SimulateSaysWhatMoreWorkersBring) {
  const CommandResult result =
      Weft(Words("simulate --graph=towers --workers=1,2,64 --runs=2 --policy=all --validate --json"));
  ASSERT_TRUE(Works(result));
  std::istringstream lines(result.out);
  std::map<std::string, std::map<int, double>> makespans;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    makespans[row.at("policy")][row.at("workers")] = row.at("makespan_ms");
    EXPECT_GT(row.at("utilization"), 0);
    EXPECT_LE(row.at("utilization"), 1 + 1e-9);
    EXPECT_GE(row.at("makespan_ms").get<double>(), row.at("critical_path_ms").get<double>() * 0.999);
    EXPECT_EQ(row.at("measured_ms").is_null(), row.at("workers") == 64);
  }
  ASSERT_EQ(makespans.size(), 6u);
  EXPECT_NEAR(makespans["serial"][64], makespans["serial"][1], 1e-6 * makespans["serial"][1]);
  EXPECT_LT(makespans["critical-path"][2], makespans["critical-path"][1]);
  EXPECT_LT(makespans["critical-path"][2], makespans["level"][2]);

  const CommandResult table = Weft(Words("simulate --graph=towers --workers=1,64,128 --runs=1"));
  ASSERT_TRUE(Works(table));
  EXPECT_THAT(table.out, HasSubstr("ms on the critical path"));
  EXPECT_THAT(table.out, HasSubstr("128 workers are less than 5% faster than fewer"));
}

TEST_F(SchedulingTest, ThePagesCommandsWork) {
  std::ifstream page("docs/scheduling.md");
  ASSERT_TRUE(page.good());
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, std::regex("bazel run -c opt //(bench:schedule_bench|apps:weft) -- (.*)")))
      continue;
    ++commands;
    CommandResult result;
    if (match[1] == "apps:weft") {
      const Arguments words = Words(std::regex_replace(match[2].str(), std::regex(" > .*"), ""));
      result = Weft(words + (words[0] == "graph" ? kTinyModel : Words("--graph=towers --runs=1")));
    } else {
      result = RunCommand(Words("bench/schedule_bench " + match[2].str() + " --graphs=towers --nodes=100 --repeats=1"));
    }
    EXPECT_TRUE(Works(result)) << line;
  }
  EXPECT_GE(commands, 7);
}

}  // namespace
}  // namespace weft
