// Runs schedule_bench as a user does.
#include <sys/wait.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
  // The OpenMP and TBB libraries are compiled without ThreadSanitizer, so it can't see their synchronisation.
  FILE* pipe = popen(("TSAN_OPTIONS=report_bugs=0 bench/schedule_bench " + flags).c_str(), "r");
  if (pipe == nullptr) return {};
  Result result;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::vector<nlohmann::json> JsonRows(const std::string& flags) {
  const Result result = Bench(flags + " --json");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  std::vector<nlohmann::json> rows;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

void CheckRows(const std::string& flags, double work) {
  SCOPED_TRACE(flags);
  const std::map<std::string, uint32_t> nodes = {
      {"chain", 500}, {"fan", 500},     {"tree", 500},    {"wavefront", 484}, {"random", 484},    {"diamond", 499},
      {"one", 1},     {"trivial", 500}, {"stencil", 448}, {"fft", 448},       {"all-to-all", 448}};
  std::set<std::pair<std::string, std::string>> rows;
  for (const nlohmann::json& row : JsonRows(flags + " --nodes=500 --threads=3 --repeats=2")) {
    SCOPED_TRACE(row.dump());
    const std::string graph = row.at("graph"), policy = row.at("policy");
    EXPECT_TRUE(rows.insert({graph, policy}).second) << "twice";
    EXPECT_EQ(row.at("nodes"), nodes.at(graph));
    EXPECT_EQ(row.at("executed"), nodes.at(graph));
    EXPECT_EQ(row.at("threads"), policy == "serial" ? 1 : 3);
    EXPECT_EQ(row.at("work_us"), work);
    const double makespan = row.at("makespan_us"), per_node = row.at("ns_per_node");
    EXPECT_GT(makespan, 0);
    EXPECT_NEAR(per_node * nodes.at(graph), makespan * 1000, makespan);
    EXPECT_EQ(row.at("build_ns_per_node").is_null(), policy != "critical-path");
    EXPECT_EQ(row.at("steals").is_null(), !policy.starts_with("critical-path"));
    EXPECT_GT(row.at("speedup"), 0);
    EXPECT_GT(row.at("first_node_us"), 0);
    if (work == 0) {
      for (const char* key : {"utilization", "idle_us", "bound_work_us", "bound_path_us"}) {
        EXPECT_TRUE(row.at(key).is_null()) << key;
      }
      continue;
    }
    const double utilization = row.at("utilization"), idle = row.at("idle_us"), path = row.at("bound_path_us");
    EXPECT_GT(utilization, 0);
    EXPECT_LE(utilization, 1);
    const double bound_work = row.at("bound_work_us"), threads = row.at("threads");
    EXPECT_NEAR(idle, threads * makespan * (1 - utilization), 1e-6 * makespan);
    EXPECT_GE(bound_work, work * nodes.at(graph) / threads * 0.5);
    EXPECT_GE(path, work * 0.5);
    if (policy == "serial") {
      EXPECT_EQ(row.at("speedup"), 1);
      EXPECT_LE(bound_work, makespan);
      EXPECT_LE(path, makespan);
    }
    if (graph == "chain") {
      EXPECT_NEAR(path, bound_work * threads, 1e-6 * path);
      EXPECT_LE(path, makespan * 1.5);  // cores may run faster in one turn than in the other
    }
  }
  EXPECT_EQ(rows.size(), nodes.size() * 10);  // eight policies and two baselines
}

TEST(ScheduleBenchTest, EveryPolicyRunsEveryNode) {
  CheckRows("--work=0 --graphs=synthetic --policy=all", 0);
  CheckRows("--work=1.5", 1.5);
}

TEST(ScheduleBenchTest, MetgIsAtTheFirstNodeThatKeepsThreadsBusy) {
  std::set<std::string> graphs;
  for (const nlohmann::json& row :
       JsonRows("--metg --graphs=trivial,stencil --nodes=128 --threads=2 --repeats=1 --policy=critical-path")) {
    graphs.insert(row.at("graph"));
    double first = 0;  // duration of the first node with which half of the time is spent on nodes
    for (const auto& [work, efficiency] : std::vector<std::pair<double, double>>(row.at("efficiency"))) {
      if (first == 0 && efficiency >= 0.5) first = work;
    }
    if (first == 0) {  // another program used the second core during all of these nodes
      EXPECT_TRUE(row.at("metg_us").is_null()) << row;
      continue;
    }
    EXPECT_LE(row.at("metg_us"), first) << row;
    EXPECT_GE(row.at("metg_us"), first / 2) << row;
  }
  EXPECT_EQ(graphs, (std::set<std::string>{"trivial", "stencil"}));
  EXPECT_EQ(Bench("--metg --work=1").exit_code, 2);
  EXPECT_EQ(Bench("--metg --csv").exit_code, 2);
  EXPECT_EQ(Bench("--metg --graphs=towers").exit_code, 2);
}

TEST(ScheduleBenchTest, EveryCombinationOfTheLists) {
  std::set<std::string> rows;
  for (const nlohmann::json& row : JsonRows("--graphs=fan,chain --nodes=5,50 --work=0,0.5,2 --threads=1,2 --repeats=1 "
                                            "--policy=fifo,critical-path")) {
    EXPECT_EQ(row.at("executed"), row.at("nodes"));
    nlohmann::json key = nlohmann::json::array();
    for (const char* name : {"graph", "nodes", "work_us", "threads", "policy"}) key.push_back(row.at(name));
    EXPECT_TRUE(rows.insert(key.dump()).second) << "twice: " << key;
  }
  EXPECT_EQ(rows.size(), 2u * 2 * 3 * 2 * 2);
  EXPECT_TRUE(rows.contains(R"(["chain",50,0.5,1,"critical-path"])"));
  // Policy serial always has one thread, and one row.
  EXPECT_EQ(JsonRows("--graphs=chain --nodes=50 --threads=1,2,3 --repeats=1 --policy=serial").size(), 1u);
}

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line + ",");
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

TEST(ScheduleBenchTest, CsvHasTheColumnsOfJson) {
  const std::string flags = "--graphs=tree --nodes=20,30 --work=1 --repeats=1 --policy=serial,critical-path";
  const Result result = Bench(flags + " --csv");
  EXPECT_EQ(result.exit_code, 0);
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = Cells(line);
  const std::vector<nlohmann::json> rows = JsonRows(flags);
  ASSERT_EQ(rows.size(), 4u);
  for (const nlohmann::json& row : rows) {
    ASSERT_TRUE(std::getline(lines, line));
    const std::vector<std::string> cells = Cells(line);
    ASSERT_EQ(cells.size(), header.size()) << line;
    ASSERT_EQ(row.size(), header.size());
    for (size_t i = 0; i < cells.size(); ++i) {
      const nlohmann::json& value = row.at(header[i]);
      ASSERT_EQ(cells[i].empty(), value.is_null()) << header[i];
      if (value.is_string()) {
        EXPECT_EQ(cells[i], value);
      } else if (!value.is_null()) {
        EXPECT_TRUE(nlohmann::json::parse(cells[i]).is_number()) << header[i];
      }
      const bool chosen = header[i] == "nodes" || header[i] == "threads" || header[i] == "work_us";
      if (chosen) {
        EXPECT_EQ(nlohmann::json::parse(cells[i]), value);
      }
    }
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST(ScheduleBenchTest, TrainingStep) {
  const std::vector<nlohmann::json> rows =
      JsonRows("--graphs=towers --threads=1,2 --repeats=1 --policy=serial,level,critical-path,critical-path-measured");
  EXPECT_EQ(rows.size(), 7u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    EXPECT_EQ(row.at("executed"), row.at("nodes"));
    EXPECT_GT(row.at("work_us"), 0);
    EXPECT_GT(row.at("speedup"), 0);
    EXPECT_GT(row.at("first_node_us"), 0);
    EXPECT_LT(row.at("first_node_us"), row.at("makespan_us"));
    EXPECT_GE(row.at("idle_us"), 0);
    EXPECT_GT(row.at("bound_path_us"), 0);
    const std::string policy = row.at("policy");
    EXPECT_EQ(row.at("steals").is_null(), row.at("threads") == 1 || policy == "level");
    if (policy == "serial") {
      EXPECT_LT(row.at("bound_path_us"), row.at("bound_work_us"));
      EXPECT_LE(row.at("bound_work_us"), row.at("makespan_us"));
    }
  }
}

TEST(ScheduleBenchTest, OneGraphUnderOnePolicyAsATable) {
  const Result result = Bench("--graphs=tree --policy=openmp --nodes=100 --repeats=1");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  EXPECT_THAT(result.out, HasSubstr("ns/node"));
  EXPECT_THAT(result.out, HasSubstr("tree             100 openmp                       2    10.0"));
}

TEST(ScheduleBenchTest, SmallestGraphs) {
  for (int nodes = 1; nodes <= 4; ++nodes) {
    const Result result = Bench("--json --repeats=1 --nodes=" + std::to_string(nodes));
    EXPECT_EQ(result.exit_code, 0) << result.out;
  }
}

TEST(ScheduleBenchTest, UsageErrors) {
  for (const char* flags : {"--foo",       "chain",        "--graphs=chian", "--policy=fastest", "--nodes=0",
                            "--nodes=-1",  "--nodes=many", "--nodes=",       "--nodes=1e3",      "--work=-1",
                            "--work=nan",  "--work=inf",   "--threads=0",    "--threads=1000",   "--repeats=0",
                            "--nodes=2,x", "--nodes=1,,2", "--work=1,-1",    "--graphs=chain,",  "--json --csv"}) {
    EXPECT_EQ(Bench(std::string(flags) + " 2>/dev/null").out, "") << flags;
    const Result result = Bench(std::string(flags) + " 2>&1");
    EXPECT_EQ(result.exit_code, 2) << flags;
    EXPECT_THAT(result.out, testing::StartsWith("schedule_bench: ")) << flags;
  }
}

TEST(ScheduleBenchTest, UsageErrorsNameTheValue) {
  for (const auto& [flags, error] : std::map<std::string, std::string>{
           {"--nodes=100,0", "schedule_bench: --nodes: '0' is not a whole number from 1 to 100000000"},
           {"--threads=2,x", "schedule_bench: --threads: 'x' is not a whole number from 1 to 256"},
           {"--work=0,", "schedule_bench: --work: '' is not a number from 0 to 1e+06"},
           {"--policy=serial,fifi", "did you mean 'fifo'?"},
           {"--graphs=chian", "did you mean 'chain'?"}}) {
    EXPECT_THAT(Bench(flags + " 2>&1").out, HasSubstr(error));
  }
}

TEST(ScheduleBenchTest, Help) {
  const Result result = Bench("--help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--graphs", "--nodes", "--work", "--threads", "--policy", "--repeats", "--json", "--csv",
                           "wavefront", "critical-path"}) {
    EXPECT_THAT(result.out, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace weft
