// Runs the program as a user does.
#include <sys/wait.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::HasSubstr;

struct Result {
  int exit_code = -1;
  std::string out;
};

Result Bench(const std::string& flags) {
  // ThreadSanitizer can't see how OpenMP's library and TBB's, compiled without it, hand over what tasks read.
  FILE* pipe = popen(("TSAN_OPTIONS=report_bugs=0 bench/schedule_bench " + flags).c_str(), "r");
  if (pipe == nullptr) return {};
  Result result;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

void CheckRows(const std::string& flags, double work) {
  SCOPED_TRACE(flags);
  const std::map<std::string, uint32_t> nodes = {{"chain", 500},  {"fan", 500},     {"tree", 500}, {"wavefront", 484},
                                                 {"random", 484}, {"diamond", 499}, {"one", 1}};
  const Result result = Bench(flags + " --json --nodes=500 --threads=3 --repeats=2");
  ASSERT_EQ(result.exit_code, 0) << result.out;
  std::set<std::pair<std::string, std::string>> rows;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string graph = row.at("graph"), policy = row.at("policy");
    EXPECT_TRUE(rows.insert({graph, policy}).second) << "twice";
    EXPECT_EQ(row.at("nodes"), nodes.at(graph));
    EXPECT_EQ(row.at("executed"), nodes.at(graph));
    EXPECT_EQ(row.at("threads"), policy == "serial" ? 1 : 3);
    EXPECT_EQ(row.at("work_us"), work);
    const double makespan = row.at("makespan_us"), per_node = row.at("ns_per_node");
    EXPECT_GT(makespan, 0);
    EXPECT_NEAR(per_node * nodes.at(graph), makespan * 1000, makespan);
    EXPECT_EQ(row.contains("build_ns_per_node"), policy == "critical-path");
    if (work == 0) {
      EXPECT_TRUE(row.at("utilization").is_null());
    } else {
      EXPECT_GT(row.at("utilization"), 0);
      EXPECT_LE(row.at("utilization"), 1);
    }
  }
  EXPECT_EQ(rows.size(), nodes.size() * 8);
}

TEST(ScheduleBenchTest, EveryPolicyRunsEveryNode) {
  CheckRows("--graphs=synthetic --policy=all", 0);
  CheckRows("--work=1.5", 1.5);
}

TEST(ScheduleBenchTest, OneGraphUnderOnePolicyAsATable) {
  const Result result = Bench("--graphs=tree --policy=openmp --nodes=100 --repeats=1");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  EXPECT_THAT(result.out, HasSubstr("ns/node"));
  EXPECT_THAT(result.out, HasSubstr("tree             100 openmp                       2"));
}

TEST(ScheduleBenchTest, SmallestGraphs) {
  for (int nodes = 1; nodes <= 4; ++nodes) {
    const Result result = Bench("--json --repeats=1 --nodes=" + std::to_string(nodes));
    EXPECT_EQ(result.exit_code, 0) << result.out;
  }
}

TEST(ScheduleBenchTest, UsageErrors) {
  for (const char* flags : {"--foo", "chain", "--graphs=chian", "--policy=fastest", "--nodes=0", "--nodes=-1",
                            "--nodes=many", "--nodes=", "--nodes=1e3", "--work=-1", "--work=nan", "--work=inf",
                            "--threads=0", "--threads=1000", "--repeats=0"}) {
    EXPECT_EQ(Bench(std::string(flags) + " 2>/dev/null").out, "") << flags;
    const Result result = Bench(std::string(flags) + " 2>&1");
    EXPECT_EQ(result.exit_code, 2) << flags;
    EXPECT_THAT(result.out, testing::StartsWith("schedule_bench: ")) << flags;
  }
}

TEST(ScheduleBenchTest, Help) {
  const Result result = Bench("--help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--graphs", "--nodes", "--work", "--threads", "--policy", "--repeats", "--json", "wavefront",
                           "critical-path"}) {
    EXPECT_THAT(result.out, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace weft
