// Runs the commands that measure, draw and predict a schedule as a user does, and the commands of docs/scheduling.md.
#include <algorithm>
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
  EXPECT_GE(critical, 84);  // the deepest tower, forward and backward

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
    EXPECT_GE(row.at("makespan_ms").get<double>(), row.at("bound_ms").get<double>() * 0.999);
    EXPECT_GE(row.at("bound_ms").get<double>(), row.at("critical_path_ms").get<double>() * 0.999);
    EXPECT_EQ(row.at("measured_ms").is_null(), row.at("workers") == 64);
  }
  ASSERT_EQ(makespans.size(), 8u);
  EXPECT_NEAR(makespans["serial"][64], makespans["serial"][1], 1e-6 * makespans["serial"][1]);
  EXPECT_LT(makespans["critical-path"][2], makespans["critical-path"][1]);
  EXPECT_LT(makespans["critical-path"][2], makespans["level"][2]);

  const CommandResult table = Weft(Words("simulate --graph=towers --workers=1,64,128 --runs=1"));
  ASSERT_TRUE(Works(table));
  EXPECT_THAT(table.out, HasSubstr("ms on the critical path"));
  EXPECT_THAT(table.out, HasSubstr("128 workers are less than 5% faster than the number before them"));
}

TEST_F(SchedulingTest, ReportDrawsAPage) {
  const Arguments command = Words("report --schedule --graph=towers --runs=1 --threads=2");
  const CommandResult result = Weft(command);
  ASSERT_TRUE(Works(result));
  EXPECT_THAT(result.out, HasSubstr("the page is report.html"));
  const std::string page = Read("report.html");
  EXPECT_THAT(page, HasSubstr("A training step of towers in f32 on 2 workers"));
  EXPECT_THAT(page, testing::Not(HasSubstr("/*DATA*/")));
  EXPECT_THAT(page, testing::Not(HasSubstr("http")));  // it needs nothing else
  EXPECT_TRUE(Fails(Weft(command), 2, "report.html is there: --overwrite replaces it"));
  EXPECT_TRUE(Fails(Weft(Words("report --graph=towers")), 2, "--graph: it needs --schedule"));
}

TEST_F(SchedulingTest, TasksThatWereSavedAreSimulatedAgain) {
  const CommandResult saved =
      Weft(Words("simulate --graph=towers --workers=2,4 --runs=1 --save-tasks=tasks.json --json"));
  ASSERT_TRUE(Works(saved));
  const CommandResult loaded = Weft(Words("simulate --tasks=tasks.json --workers=2,4 --json"));
  ASSERT_TRUE(Works(loaded));
  std::istringstream first(saved.out), second(loaded.out);
  int rows = 0;
  for (std::string a, b; std::getline(first, a) && std::getline(second, b); ++rows) {
    const double path = nlohmann::json::parse(a).at("critical_path_ms");
    EXPECT_NEAR(nlohmann::json::parse(b).at("critical_path_ms"), path, 1e-9 * path);
  }
  EXPECT_EQ(rows, 2);
  const CommandResult apart = Weft(Words("simulate --graph=towers --workers=64 --runs=1 --no-reuse"));
  EXPECT_TRUE(Works(apart));
  EXPECT_TRUE(Fails(Weft(Words("simulate --graph=towers --overwrite")), 2, "--overwrite: it needs --save-tasks"));
}

TEST_F(SchedulingTest, SaysWhatIsWrong) {
  Write("text.json", "no tasks");
  Write("other.json", "{\"layers\": 2}");
  ASSERT_EQ(symlink("nowhere", Path("link").c_str()), 0);
  const std::pair<const char*, const char*> errors[] = {
      {"simulate --workers=0", "--workers: '0' is not a whole number from 1 to 4096"},
      {"simulate --workers=2,x", "--workers: 'x' is not a whole number"},
      {"simulate --workers=2,", "--workers: '' is not a whole number"},
      {"simulate --policy=critical", "critical-path"},
      {"profile --policy=levle", "level"},
      {"simulate --tasks=text.json", "text.json is not a file of tasks: it is not JSON"},
      {"simulate --tasks=other.json", "other.json is not a file of tasks: \"weft_tasks\" is null, not 1"},
      {"simulate --tasks=none.json", "none.json"},
      {"simulate --tasks=text.json --graph=gpt2", "--graph is of a training step, not of --tasks"},
      {"simulate --no-reuse --validate", "--no-reuse can't be run"},
      {"simulate --graph=towers --save-tasks=other.json", "other.json is there: --overwrite replaces it"},
      {"profile --out=none/trace.json", "there is no folder"},
      {"profile --out=.", "is not a file"},
      {"profile --out=link", "is not a file"},
      {"profile --costs=other.json --out=other.json --overwrite", "--costs and --out are the same"},
      {"simulate --graph=towers --workers=4096 --validate", "--workers begins at 4096"},
      {"report --schedule --graph=gpt3", "gpt2"},
      {"report --schedule --out=none/report.html", "there is no folder"},
      {"report --schedule --costs=other.json", "other.json is not a calibration"},
      {"profile --costs=none.json", "none.json"},
      {"profile --costs=other.json --policy=critical-path-measured", "--costs sets priorities"},
      {"calibrate --out=none/costs.json", "there is no folder"},
  };
  for (const auto& [command, error] : errors) EXPECT_TRUE(Fails(Weft(Words(command)), 2, error)) << command;
  EXPECT_EQ(Read("other.json"), "{\"layers\": 2}");
}

TEST_F(SchedulingTest, ThePagesCommandsWorkAndCalibrateWritesCostsThatOthersRead) {
  std::ifstream page("docs/scheduling.md");
  ASSERT_TRUE(page.good());
  int commands = 0;
  std::string calibrated;  // the output of `calibrate`, which takes so long that only this test runs it
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, std::regex("bazel run -c opt //(bench:schedule_bench|apps:weft) -- (.*)")))
      continue;
    ++commands;
    const std::string flags = std::regex_replace(match[2].str(), std::regex(" > .*"), "");
    CommandResult result;
    if (match[1] == "apps:weft") {
      const Arguments words = Words(flags);
      const bool saved = std::find(words.begin(), words.end(), "--tasks=tasks.json") != words.end();
      const bool of_ops = flags.find("--threads") == flags.npos;
      result = Weft(words + (saved || (words[0] == "calibrate" && !of_ops) ? Arguments{}
                             : words[0] == "graph"                         ? kTinyModel
                                                                           : Words("--graph=towers --runs=1")));
      if (words[0] == "calibrate" && of_ops) calibrated = result.out;
    } else {
      const bool metg = flags.find("--metg") != flags.npos;  // of synthetic graphs only
      result = RunCommand(Words("bench/schedule_bench " + flags + (metg ? " --graphs=stencil" : " --graphs=towers") +
                                " --nodes=100 --repeats=1"));
    }
    EXPECT_TRUE(Works(result)) << line;
  }
  EXPECT_GE(commands, 7);

  EXPECT_THAT(calibrated, HasSubstr("the median node of towers is off by"));
  EXPECT_THAT(calibrated, testing::ContainsRegex("matmul f32 +[0-9]+"));
  EXPECT_TRUE(Works(Weft(Words("report --schedule --graph=towers --runs=1 --costs=costs.json --out=a.html"))));
  EXPECT_THAT(Read("a.html"), HasSubstr("\"calibrated\":true"));
  EXPECT_TRUE(Works(Weft(Words("profile --graph=towers --runs=1 --costs=costs.json --cost=2 --out=b.json"))));
}

}  // namespace
}  // namespace weft
