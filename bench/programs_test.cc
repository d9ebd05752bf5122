// Runs the programs as a user does, and the commands of docs/performance.md.
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

std::string WriteProgram(const std::string& name, const std::string& script) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << script;
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

// A fake Python whose PyTorch always takes 600 ms and 100 MB; compiled, it takes half of that time.
std::string FakePython() {
  return WriteProgram("fake_python", R"(
case "$*" in
  *pytorch_step.py*--mode=max-autotune*) echo '{"median_ms": 400, "peak_rss_mb": 100}';;
  *pytorch_step.py*--mode=compile*) echo '{"median_ms": 300, "peak_rss_mb": 100}';;
  *pytorch_attention.py*) echo '{"forward": 20, "gradient": 10}';;
  *pytorch_ddp.py*) echo '{"median_ms": 600, "best_ms": 500, "peak_rss_mb": 100}';;
  *pytorch_step.py*--mode=eager*) echo 'a warning'; echo '{"median_ms": 600, "peak_rss_mb": 100}';;
  *llama_generate.py*) echo '{"tokens_per_second": 0.5, "peak_rss_mb": 100}';;
  *) exit 1;;
esac
)");
}

// Returns a folder with a fake generate_bench.
std::string FakePrograms() {
  const std::string path = WriteProgram("generate_bench",
                                        "echo '{\"tokens_per_second\": 2, \"weight_gb_per_second\": 3, "
                                        "\"read_gb_per_second\": 4, \"peak_rss_mb\": 50}'");
  return path.substr(0, path.rfind('/'));
}

// A fake mpirun, which runs the program alone, and a fake step with MPI_Allreduce.
std::string FakeMpirun() {
  return WriteProgram("fake_mpirun", "shift 8; if [ \"$1\" = --allow-run-as-root ]; then shift; fi; exec \"$@\"");
}
std::string FakeAllreduce() {
  return WriteProgram("fake_allreduce", "echo '{\"median_ms\": 600, \"best_ms\": 500, \"peak_rss_mb\": 100}'");
}

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

TEST(TrainBenchTest, SameBitsOnAnyNumberOfThreads) {
  for (const std::string model : {"charcpu", "minilm-forward"}) {
    const auto checksum = [&](const char* flags) {
      const CommandResult result =
          RunBench("train_bench --json --layers=1 --batch=2 --length=32 --model=" + model + flags);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return nlohmann::json::parse(result.out).at("checksum");
    };
    const nlohmann::json wanted = checksum(" --steps=3 --threads=1");
    EXPECT_EQ(checksum(" --steps=3 --threads=3"), wanted);
    EXPECT_EQ(checksum(" --steps=4 --threads=1") == wanted,
              model == "minilm-forward");  // only that model is not trained
  }
}

TEST(TrainBenchTest, TrainsOnTheBytesOfAText) {
  const std::string path = ::testing::TempDir() + "/small_text";
  std::string text;
  for (int i = 0; i < 100; ++i) text += "to be or not to be, ";
  std::ofstream(path) << text;
  const std::string command = "train_bench --json --model=gpt2 --layers=1 --heads=2 --width=32 --batch=2 --length=8 ";
  const CommandResult few = RunBench(command + "--steps=3 --text=" + path);
  const CommandResult many = RunBench(command + "--steps=60 --text=" + path);
  ASSERT_EQ(few.exit_code, 0) << few.err;
  ASSERT_EQ(many.exit_code, 0) << many.err;
  EXPECT_NEAR(nlohmann::json::parse(few.out).at("mean_loss"), 10.8, 0.1);  // log(50257)
  EXPECT_LT(nlohmann::json::parse(many.out).at("loss"), nlohmann::json::parse(many.out).at("mean_loss"));

  const CommandResult above = RunBench("train_bench --model=charcpu --batch=1 --length=8 --text=" + path);
  EXPECT_EQ(above.exit_code, 1);
  EXPECT_THAT(above.err, HasSubstr("small_text: byte 0 is 116, but charcpu has 65 tokens"));
  const CommandResult small = RunBench("train_bench --model=gpt2 --length=2000 --text=" + path);
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.err, HasSubstr("has 2000 bytes, wanted more than the 2000 of one text"));
  EXPECT_THAT(RunBench("train_bench --text=missing").err, HasSubstr("missing"));
}

TEST(TrainBenchTest, AMemoryBudgetIsKeptAndGivesTheSameLoss) {
  const std::string command = "train_bench --json --model=charcpu --batch=4 --steps=3";
  const CommandResult all = RunBench(command);
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const nlohmann::json row = nlohmann::json::parse(all.out);
  const double budget = row.at("planned_mb").get<double>() * 0.75;
  const CommandResult less =
      RunBench(command + " --memory-budget=" + std::to_string(static_cast<int>(budget * 1024)) + "KiB");
  ASSERT_EQ(less.exit_code, 0) << less.err;
  const nlohmann::json same = nlohmann::json::parse(less.out);
  EXPECT_LE(same.at("planned_mb"), budget);
  EXPECT_EQ(same.at("loss"), row.at("loss"));

  const CommandResult none = RunBench(command + " --memory-budget=1K");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("memory_budget is 1000 bytes"));
}

TEST(TrainBenchTest, BF16RoundsALittle) {
  const std::string command = "train_bench --json --model=charcpu --layers=1 --batch=2 --steps=3 --precision=";
  const CommandResult f32 = RunBench(command + "f32"), bf16 = RunBench(command + "bf16");
  ASSERT_EQ(f32.exit_code, 0) << f32.err;
  ASSERT_EQ(bf16.exit_code, 0) << bf16.err;
  const double loss = nlohmann::json::parse(f32.out).at("loss"), rounded = nlohmann::json::parse(bf16.out).at("loss");
  EXPECT_NE(loss, rounded);
  EXPECT_NEAR(loss, rounded, 0.01 * loss);
}

TEST(TrainBenchTest, RaisedAndNot) {
  const std::string command = "train_bench --json --model=charcpu --layers=1 --batch=1 --steps=3 --raise=";
  const CommandResult raised = RunBench(command + "true"), elementary = RunBench(command + "false");
  ASSERT_EQ(raised.exit_code, 0) << raised.err;
  ASSERT_EQ(elementary.exit_code, 0) << elementary.err;
  EXPECT_LT(nlohmann::json::parse(raised.out).at("nodes"), nlohmann::json::parse(elementary.out).at("nodes"));
}

TEST(TrainBenchTest, ProfileNamesTheOps) {
  const CommandResult result = RunBench("train_bench --profile --model=charcpu --layers=1 --batch=2 --steps=3");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"median_ms", "core ms", "\nmatmul ", "\nadamw ", "\nscheduling and waiting "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(TrainBenchTest, UsageErrors) {
  for (const char* flags : {"--foo", "gpt2", "--model=gtp2", "--batch=-1", "--batch=many", "--length=-1",
                            "--precision=f16", "--threads=-1", "--threads=2000", "--steps=2", "--heads=3",
                            "--json --profile", "--memory-budget=much", "--memory-budget=-1", "--raise=maybe"}) {
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

  for (const char* model : {"charcpu", "minilm-forward", "charcpu --precision=bf16"}) {
    const CommandResult floor =
        RunBench(std::string("ceiling --json --seconds=1e-3 --threads=2 --batch=1 --length=8 --model=") + model);
    ASSERT_EQ(floor.exit_code, 0) << floor.err;
    const nlohmann::json step = nlohmann::json::parse(floor.out);
    EXPECT_THAT(model, StartsWith(step.at("model").get<std::string>()));
    EXPECT_GT(step.at("products_ms"), 0);
    EXPECT_EQ(step.at("adamw_ms") > 0, step.at("model") == "charcpu");
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
  for (const char* flags : {"--foo", "gpt2", "--model=gtp2", "--batch=-1", "--length=x", "--precision=f16",
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

TEST(OpBenchTest, OpsAgainstTheMachine) {
  const CommandResult result = RunBench(
      "op_bench --threads=2 --benchmark_min_time=1e-3 --benchmark_format=json "
      "--benchmark_filter=[sx]/real|gpt2|sgd|lion");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all.at("context").at("threads"), "2");
  std::map<std::string, nlohmann::json> rows;
  for (const nlohmann::json& row : all.at("benchmarks")) rows[row.at("name")] = row;
  for (const char* name : {"softmax/real_time", "sgd/real_time", "composite/lion/real_time"}) {
    ASSERT_TRUE(rows.count(name)) << result.out;
    for (const char* key : {"GB/s", "%_of_memory", "%_of_copy"}) EXPECT_GT(rows[name].at(key), 0);
  }
  for (const char* name : {"attention/gpt2/forward/real_time", "attention/gpt2/gradient/real_time",
                           "matmul/gpt2/forward/real_time", "matmul/gpt2/weights/real_time"}) {
    ASSERT_TRUE(rows.count(name)) << name;
    for (const char* key : {"GFLOP/s", "%_of_peak"}) EXPECT_GT(rows[name].at(key), 0);
  }
}

TEST(OpBenchTest, UsageErrors) {
  for (const char* flags : {"--foo", "softmax", "--threads=-1", "--benchmark_foo=1"}) {
    ExpectUsageError("op_bench", flags);
  }
  const CommandResult help = RunBench("op_bench --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--threads"));
}

TEST(CompareTest, TakesPyTorchsFastestMode) {
  const std::string json = testing::TempDir() + "/comparison.json";
  const std::string ceiling = WriteProgram("fake_ceiling", "echo '{\"floor_ms\": 10}'");
  const std::string programs =
      " --probe= --train-bench=bench/train_bench --ceiling=" + ceiling + " --python=" + FakePython();
  const CommandResult result =
      RunBench("compare --rows=charcpu-f32 --steps=3 --rounds=2 --threads=2 --json=" + json + programs);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("| work | Weft ms | PyTorch ms | mode | faster | asked |"));
  EXPECT_THAT(result.out, HasSubstr("\n| charcpu-f32 | "));
  EXPECT_THAT(result.out, HasSubstr(" | 300.0 | compile | "));
  EXPECT_THAT(result.out, HasSubstr("x | 1.50x | "));

  std::ifstream file(json);
  const nlohmann::json row = nlohmann::json::parse(file).at(0);
  EXPECT_EQ(row.at("row"), "charcpu-f32");
  EXPECT_EQ(row.at("pytorch_mode"), "compile");
  EXPECT_EQ(row.at("threads"), 2);
  const std::array<double, 2> ratios = row.at("ratios_of_rounds");
  EXPECT_NEAR(row.at("ratio"), (ratios[0] + ratios[1]) / 2, 1e-6);
  EXPECT_NEAR(row.at("memory_ratio"), row.at("weft_peak_mb").get<double>() / 100, 1e-6);
  EXPECT_NEAR(row.at("of_floor"), row.at("weft_ms").get<double>() / 10, 1e-6);
  EXPECT_EQ(row.at("mkl"), "default");
  for (const char* name : {"weft", "eager", "compile", "max-autotune"}) {
    EXPECT_EQ(row.at("runs").at(name).size(), 2) << name;
  }
}

TEST(CompareTest, ARowThatFailsIsLeftOut) {
  const std::string programs = " --probe= --train-bench=bench/train_bench --ceiling= --python=";
  const CommandResult result =
      RunBench("compare --rows=charcpu-f32 --steps=3 --rounds=1 --modes=eager" + programs + "/bin/false");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("compare: charcpu-f32 is left out: /bin/false "));
}

TEST(CompareTest, UsageErrors) {
  for (const char* flags : {"--foo", "gpt2", "--rows=gpt3-f32", "--rows=", "--rounds=0", "--steps=2", "--steps=many",
                            "--threads=0", "--modes=fast", "--mkl=amd", "--json=/nowhere/file"}) {
    const CommandResult result = RunBench(std::string("compare ") + flags);
    EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
    EXPECT_EQ(result.out, "") << flags;
    EXPECT_THAT(result.err, StartsWith("usage: compare ")) << flags;
  }
  const CommandResult help = RunBench("compare --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* part : {"--rows", "--python", "--modes", "--mkl", "--rounds", "--json", "minilm-forward-f32"}) {
    EXPECT_THAT(help.out, HasSubstr(part));
  }
}

TEST(CompareInferenceTest, LeavesOutWhatIsMissing) {
  const std::string flags = " --repeats=1 --rounds=1 --probe= --programs=" + FakePrograms();
  const CommandResult result = RunBench("compare_inference --rows=decode-f32 --python=" + FakePython() + flags);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n| decode-f32 | tokens/s | 2.0 | 75% | 0.5 | 4.00x |\n"));
  EXPECT_THAT(result.err, HasSubstr("decode-f32 without pytorch: "));
  const CommandResult no_run = RunBench("compare_inference --rows=greedy-f32 --python=" + FakePython() + flags);
  EXPECT_EQ(no_run.exit_code, 1);
  EXPECT_THAT(no_run.err, HasSubstr("greedy-f32 is left out: it needs --run and --source"));
  EXPECT_EQ(RunBench("compare_inference --rows=decode-f16").exit_code, 2);
}

TEST(MessengerBenchTest, PrintsTimesOfMessages) {
  const CommandResult result = RunBench("messenger_bench --messages=3 --bytes=1000 --latency=1e-4 --bandwidth=1e9");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"1 byte ", "after   10.0 ms", "1000 bytes", "GB/s", "of a core"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  EXPECT_EQ(RunBench("messenger_bench --busy=-1").exit_code, 2);
}

// Runs every command of the page, on the smallest model and with few steps.
TEST(PerformancePageTest, ItsCommandsWork) {
  const std::map<std::string, std::string> quick = {
      {"train_bench", " --model=charcpu --batch=1 --length=8 --layers=1 --steps=3"},
      {"accumulation_bench", " --batch=4 --length=8 --rounds=1"},
      {"ceiling", " --batch=1 --length=8 --seconds=1e-3"},
      {"op_bench", " --benchmark_filter=softmax --benchmark_min_time=1e-3"},
      {"compare",
       " --rows=charcpu-f32 --rounds=1 --steps=3 --train-bench=bench/train_bench --ceiling= --probe=bench/probe"},
      {"compare_attention", " --rows=d32/t64/causal --rounds=1 --op-bench=bench/op_bench --probe="},
      {"compare_inference", " --rows=decode-f32 --rounds=1 --probe= --programs=" + FakePrograms()},
      {"many_cores",
       " --rows=charcpu-f32 --threads=1,2 --rounds=1 --steps=3 --train-bench=bench/train_bench --probe= --json"},
      {"draw_batches", ""},
      {"draw_results", ""},
      {"generate_bench", " --model=charcpu --layers=1 --length=4 --repeats=1"},
      {"compare_ranks",
       " --model=charcpu --batch=1 --length=8 --rounds=1 --steps=3 --probe= --ranks-bench=bench/ranks_bench" +
           (" --mpirun=" + FakeMpirun()) + " --mpi-allreduce-bench=" + FakeAllreduce()},
      {"ranks_bench", " --model=charcpu --batch=1 --length=8 --layers=1 --steps=3"},
      {"scaling", " --largest=64 --steps=3 --train-bench=bench/train_bench"}};
  std::ifstream page("docs/performance.md");
  ASSERT_TRUE(page.good());
  const std::string text = testing::TempDir() + "/small_bytes";
  std::ofstream(text) << std::string(100, '!');
  std::map<std::string, int> commands;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, std::regex("(?:bazel run -c opt //bench:|bench/)(\\w+)(?: --)?( .*)?")))
      continue;
    const std::string program = match[1];
    ASSERT_TRUE(quick.count(program)) << line;
    std::string flags = match[2];
    flags = std::regex_replace(flags, std::regex("PYTHON"), FakePython());
    flags = std::regex_replace(flags, std::regex("--model=gpt2"), "--model=charcpu");
    flags = std::regex_replace(flags, std::regex("TEXT"), text);
    flags = std::regex_replace(flags, std::regex("([= ])(\\w+\\.(json|svg|html))"), "$1" + testing::TempDir() + "/$2");
    const std::string folder = std::filesystem::exists("bench/inference/" + program) ? "inference/" : "";
    const CommandResult result = RunBench(folder + program + flags + quick.at(program));
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    ++commands[program];
  }
  for (const auto& [program, flags] : quick) EXPECT_GE(commands[program], 1) << program;
}

}  // namespace
}  // namespace weft
