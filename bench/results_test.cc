// Runs bench/compare_attention and bench/scaling with programs that stand for others, and draws results with
// bench/draw_results and bench/draw_metg.
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

  // The third probe is slow, so the rounds before and after it do not count.
  const std::string probe = WriteProgram("fake_probe", R"(n=0
while read line; do
  n=$((n + 1))
  if [ $n -eq 3 ]; then speed=90; else speed=$((95 + n)); fi
  echo "{\"f32_gflops\": $speed, \"read_gb_per_second\": 100}"
done
)");
  const CommandResult busy =
      RunBench("compare_attention --rounds=2 --rows=d32/t64/causal --json=" + InTemp("busy.json") + FakePrograms() +
               " --probe=" + probe);
  EXPECT_THAT(busy.err, HasSubstr("d32/t64/causal: 2 of 4 rounds ran at 95% of the best speed or above; the slowest "
                                  "probe: f32_gflops 90%, read_gb_per_second 100%\n"));
  EXPECT_EQ(nlohmann::json::parse(Read(InTemp("busy.json")))[0].at("rounds"), 2);

  // If no round counts, four times as many run, and those with the best probes are taken: here the fifth and the sixth.
  const std::string noisy = WriteProgram("noisy_probe", R"(n=0
while read line; do
  n=$((n + 1))
  speed=50; if [ $n -eq 1 ]; then speed=100; fi; if [ $n -eq 6 ]; then speed=90; fi
  if [ $n -eq 5 ] || [ $n -eq 7 ]; then speed=80; fi
  echo "{\"f32_gflops\": $speed, \"read_gb_per_second\": 100}"
done
)");
  const CommandResult never =
      RunBench("compare_attention --rounds=2 --rows=d32/t64/causal --json=" + InTemp("never.json") + FakePrograms() +
               " --probe=" + noisy);
  EXPECT_THAT(never.err, HasSubstr("d32/t64/causal: 0 of 8 rounds ran at 95% of the best speed or above"));
  EXPECT_EQ(nlohmann::json::parse(Read(InTemp("never.json")))[0].at("rounds"), 2);

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
