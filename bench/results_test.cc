// Runs bench/compare_attention, bench/many_cores and bench/scaling with programs that stand for others, and draws
// results with bench/draw_results and bench/draw_metg.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

std::string InTemp(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string WriteText(const std::string& name, const std::string& text) {
  std::ofstream(InTemp(name)) << text;
  return InTemp(name);
}

std::string WriteProgram(const std::string& name, const std::string& script) {
  const std::string path = WriteText(name, "#!/bin/sh\n" + script);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

CommandResult RunBench(const std::string& command) {
  std::istringstream words("bench/" + command);
  return RunCommand({std::istream_iterator<std::string>(words), {}});
}

// An op_bench with 40 and 30 GFLOP/s for each size but gpt2's, and a PyTorch with 20 and 10.
std::string FakePrograms() {
  const std::string op_bench = WriteProgram("fake_op_bench", R"(
case "$*" in *attention/gpt2/*) echo '{"benchmarks": []}'; exit 0;; esac
echo '{"benchmarks": [{"name": "attention/x/forward/real_time", "GFLOP/s": 40, "label": "8,8,64,32,True"},'
echo '{"name": "attention/x/gradient/real_time", "GFLOP/s": 30, "label": "8,8,64,32,True"}]}'
)");
  const std::string python = WriteProgram("fake_attention", R"(
case "$*" in *pytorch_attention.py*--sizes=8,8,64,32*) echo '{"forward": 20, "gradient": 10}';; *) exit 1;; esac
)");
  return " --probe= --op-bench=" + op_bench + " --python=" + python;
}

TEST(CompareAttentionTest, ComparesSizesInTurns) {
  const CommandResult result =
      RunBench("compare_attention --rounds=2 --rows=d32/t64/causal,gpt2,bert --json=" + InTemp("attention.json") +
               FakePrograms());
  EXPECT_EQ(result.exit_code, 1);  // two rows are missing
  EXPECT_THAT(result.out, HasSubstr("| d32/t64/causal | 40 | 20 | 2.00x | 30 | 10 | 3.00x |\n"));
  EXPECT_THAT(result.err, HasSubstr("gpt2 is left out: op_bench has no attention/gpt2"));
  EXPECT_THAT(result.err, HasSubstr("attention/bert of op_bench is 8,8,64,32,True, and of this program 8,12,128,64,F"));
  const nlohmann::json rows = nlohmann::json::parse(Read(InTemp("attention.json")));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("gradient").at("ratio"), 3);

  // The probe decides that two of three rounds count.
  const std::string probe = WriteProgram("fake_probe", R"(test "$1 $2" = "--threads=2 --rounds=2" || exit 1
for round in 1 2 3; do read line; echo '{"go_on": true}'; done
read line; echo '{"go_on": false, "counted": [true, false, true], "report": "2 of 3 rounds ran at full speed"}'
)");
  const CommandResult busy =
      RunBench("compare_attention --rounds=2 --threads=2 --rows=d32/t64/causal --json=" + InTemp("busy.json") +
               FakePrograms() + " --probe=" + probe);
  EXPECT_THAT(busy.err, HasSubstr("d32/t64/causal: 2 of 3 rounds ran at full speed\n"));
  EXPECT_EQ(nlohmann::json::parse(Read(InTemp("busy.json")))[0].at("rounds"), 2);

  const CommandResult missing = RunBench("compare_attention --probe= --rows=bert --op-bench=/nowhere/op_bench");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("bert is left out: /nowhere/op_bench "));

  for (const char* flags : {"--foo", "--rows=d48/t64/full", "--rounds=0", "--mkl=amd", "--json=/nowhere/file"}) {
    const CommandResult wrong = RunBench(std::string("compare_attention ") + flags);
    EXPECT_EQ(wrong.exit_code, 2) << flags;
    EXPECT_THAT(wrong.err, StartsWith("usage: compare_attention ")) << flags;
  }
}

TEST(DrawResultsTest, DrawsBarsAndLines) {
  const std::string steps = WriteText("steps.json", R"([
      {"row": "gpt2-f32", "threads": 2, "rounds": 3, "mkl": "intel", "batch": 4, "length": 64, "weft_ms": 100,
       "pytorch_ms": {"eager": 200, "compile": 150}, "floor_ms": 90},
      {"row": "babygpt-t512-f32", "threads": 2, "rounds": 3, "mkl": "intel", "batch": 4, "length": 512, "weft_ms": 500,
       "pytorch_ms": {"eager": 1000, "<b>": 900}, "floor_ms": null},
      {"row": "babygpt-t1024-f32", "threads": 2, "rounds": 3, "mkl": "intel", "batch": 2, "length": 1024, "weft_ms": 600,
       "pytorch_ms": {"eager": 1200}, "floor_ms": null}])");
  const std::string attention = WriteText("heads.json", R"([
      {"row": "d64/t64/full", "threads": 1, "rounds": 1, "mkl": "default",
       "forward": {"weft_gflops": 60, "pytorch_gflops": 30}, "gradient": {"weft_gflops": 50, "pytorch_gflops": 40}}])");
  const std::string inference = WriteText("inference<1>.json", R"([
      {"row": "decode-f32", "threads": 2, "rounds": 1, "unit": "tokens/s", "speeds": {"weft": 70, "llama.cpp": 50}}])");
  const std::string page = InTemp("results.html");
  const CommandResult result =
      RunBench("draw_results --html=" + page + " " + steps + " " + attention + " " + inference);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string html = Read(page);
  for (const char* part : {"<h2>steps</h2>", "2 threads, 3 rounds in turns, PyTorch with MKL's kernels for Intel CPUs",
                           "<td>gpt2-f32</td>", "<td>PyTorch, compile</td>", "150 ms a step (less is better)",
                           "width:75.0%", "babygpt, f32: tokens/s", "d64, full, with gradients: GFLOP/s",
                           "<h2>inference&lt;1&gt;</h2>", "<td>llama.cpp</td>"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("<td>babygpt-t512-f32</td>")));  // it is a point of a line
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));  // the page needs no other file
}

TEST(DrawResultsTest, NamesFilesThatAreNotResults) {
  const std::string page = " --html=" + InTemp("other.html") + " ";
  for (const std::string& file :
       {WriteText("text.json", "no"), WriteText("other.json", R"([{"rows": 1}])"),
        WriteText("object.json", R"({"row": 1})"), WriteText("latin.json", "\xff"),
        WriteText("speeds.json", R"([{"row": "a", "unit": "b", "speeds": {}}])"), InTemp("none.json")}) {
    const CommandResult result = RunBench("draw_results" + page + file);
    EXPECT_EQ(result.exit_code, 1) << file;
    EXPECT_THAT(result.err, StartsWith("draw_results: " + file + " is not a file that --json has written: "));
  }
  EXPECT_EQ(RunBench("draw_results --html=/nowhere/file x.json").exit_code, 2);
}

TEST(ScalingTest, UsageErrorsAndProgramsThatFail) {
  for (const char* flags : {"--foo", "--steps=2", "--largest=63", "--threads=many", "--svg=/nowhere/file"}) {
    const CommandResult result = RunBench(std::string("scaling ") + flags);
    EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
    EXPECT_THAT(result.err, StartsWith("usage: scaling ")) << flags;
  }
  for (const char* program : {"/bin/true", "/bin/false", "/nowhere/train_bench"}) {
    const CommandResult result = RunBench(std::string("scaling --train-bench=") + program);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, StartsWith(std::string("scaling: ") + program));
  }
}

TEST(ManyCoresTest, ComparesNumbersOfThreads) {
  const std::string train_bench = WriteProgram("fake_train_bench", R"(
case "$*" in *--threads=1*) ms=90;; *--threads=2*) ms=50;; *--threads=3*) ms=30;; esac
case "$*" in *--threads=3*--precision=bf16*) sum=5;; *) sum=7;; esac
echo "{\"median_ms\": $ms, \"checksum\": \"$sum\"}"
)");
  const std::string python = WriteProgram(
      "fake_step", R"(case "$*" in *pytorch_step.py*--threads=3*) echo '{"median_ms": 45}';; *) exit 1;; esac)");
  const std::string flags =
      "many_cores --probe= --threads=1,2,3 --rounds=2 --train-bench=" + train_bench + " --python=" + python;
  const CommandResult table = RunBench(flags + " --rows=charcpu-f32,gpt2-bf16");
  EXPECT_EQ(table.exit_code, 1) << "the bits of a row differ";
  EXPECT_THAT(table.out, HasSubstr("\n| charcpu-f32 | 90.0 | 50.0 | 30.0 | 3.0 | 45.0 | 1.50 | yes |\n"));
  EXPECT_THAT(table.out, HasSubstr("\n| gpt2-bf16 | 90.0 | 50.0 | 30.0 | 3.0 | 45.0 | 1.50 | no |\n"));
  const CommandResult json = RunBench(flags + " --rows=charcpu-f32 --json");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  std::istringstream lines(json.out);
  std::string line;
  for (const double speedup : {1.0, 1.8, 3.0, 2.0}) {
    ASSERT_TRUE(std::getline(lines, line));
    const nlohmann::json row = nlohmann::json::parse(line);
    EXPECT_EQ(row.at("model"), "charcpu");
    EXPECT_EQ(row.at("precision"), "f32");
    EXPECT_EQ(row.at("speedup"), speedup);
    EXPECT_EQ(row.at("checksum"), row.at("program") == "weft" ? "7" : "");
  }
  EXPECT_FALSE(std::getline(lines, line));
  for (const char* wrong : {"--threads=0", "--rows=gpt3-f32", "--rounds=0"}) {
    EXPECT_EQ(RunBench(std::string("many_cores ") + wrong).exit_code, 2) << wrong;
  }
}

TEST(DrawMetgTest, DrawsALineForEachPolicy) {
  std::string rows;
  for (const char* const policy : {"fifo", "lifo", "level", "critical-path", "flow-graph", "openmp"}) {
    rows += std::string(R"({"graph": "fft", "threads": 2, "policy": ")") + policy +
            R"(", "efficiency": [[0.025, 0.1], [1.6, 0.9]]})" + "\n";
  }
  const CommandResult result = RunBench("draw_metg --svg=" + InTemp("metg.svg") + " " + WriteText("metg.json", rows));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const CommandResult wrong = RunBench("draw_metg --svg=" + InTemp("no.svg") + " " + WriteText("wrong.json", "{}\n"));
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, StartsWith("draw_metg: " + InTemp("wrong.json") + " is not a file that schedule_bench "));
  const std::string svg = Read(InTemp("metg.svg"));
  for (const char* const part : {">fft, 2 threads<", ">openmp<", ">25<", ">1.6k<"}) EXPECT_THAT(svg, HasSubstr(part));
}

}  // namespace
}  // namespace weft
