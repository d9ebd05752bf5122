// Tests the program `weft` as a user calls it: help, errors, configuration, graphs.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "weft/apps/commands.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

#define WEFT_COUNT_COMMAND(group, name, function) +1
constexpr size_t kCommands = WEFT_COMMANDS(WEFT_COUNT_COMMAND);
#undef WEFT_COUNT_COMMAND

class CliTest : public WeftProgramTest {};

Arguments Words(const std::string& command) {
  std::istringstream stream(command);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(CliTest, EveryCommandHasHelp) {
  for (const char* command :
       {"", "train", "train gpt", "estimate train bert", "generate", "translate", "graph", "tokenize", "tokenizer",
        "tokenizer train", "embed", "classify", "fill-mask", "evaluate", "word-vectors", "import", "export"}) {
    for (const char* flag : {"--help", "-h"}) {
      const CommandResult result = Weft(Words(command) + Arguments{flag});
      EXPECT_TRUE(Works(result)) << command;
      EXPECT_TRUE(Contains(result.out, "Usage: weft" + std::string(*command ? " " : "") + command + " ")) << result.out;
      EXPECT_TRUE(Contains(result.out, "--help")) << result.out;
    }
  }
  const std::string help = Weft({"--help"}).out;
  EXPECT_TRUE(Contains(help, "Exit codes: 0"));
  for (const char* group : {"Train a model:\n  train", "Use a model:\n  generate", "Evaluate a model:\n  evaluate",
                            "Convert a model:\n  import", "schedule:\n  summary"}) {
    EXPECT_TRUE(Contains(help, group)) << group << help;
  }
}

TEST_F(CliTest, WithoutACommandHelpGoesToStderr) {
  for (const char* command : {"", "train", "tokenizer"}) {
    const CommandResult result = Weft(Words(command));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(Contains(result.err, "Usage: weft")) << result.err;
  }
}

TEST_F(CliTest, ReadmesCommandsWork) {
  const fs::path readme = fs::absolute("README.md");
  std::ifstream file(readme);
  size_t commands = 0;
  WriteBert("bert");
  WriteTransformer("transformer");
  WriteTrainingData();
  // Runs that the README's rows of training commands make.
  const std::map<std::string, std::string> folders = {{"classify", "=classify-run"}, {"fill-mask", "=bert-run"}};
  for (std::string line; std::getline(file, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, std::regex("\\| `weft ([^`]*)` \\|.*"))) continue;
    ++commands;
    Arguments arguments;
    const auto folder = folders.find(Words(row[1])[0]);
    for (std::string word : Words(row[1])) {
      if (folder != folders.end()) word = std::regex_replace(word, std::regex("=DIR$"), folder->second);
      word = std::regex_replace(word, std::regex("(^|=)FILE$"), "$1text.txt");
      word = std::regex_replace(word, std::regex("(^|=)(DIR|FILE_OR_FOLDER)$"), "$1run");
      const bool translates = row.str(1).rfind("translate", 0) == 0 || row.str(1).rfind("lexicon", 0) == 0;
      word = std::regex_replace(word, std::regex("=FOLDER$"), translates ? "=transformer" : "=bert");
      word = std::regex_replace(word, std::regex("=LAYOUT$"), "=huggingface");
      word = std::regex_replace(word, std::regex("=WORD$"), "=a");
      arguments.push_back(std::regex_replace(word, std::regex("(^|=)TEXT$"), "$1line "));
    }
    if (arguments[0] == "import" || arguments[0] == "export" || arguments[0] == "quantize" ||
        arguments[0] == "tokenize" || arguments[0] == "tokenizer") {
      std::replace(arguments.begin(), arguments.end(), std::string("--out=run"), "--out=" + arguments[0] + "ed");
    }
    const bool trains = arguments[0] == "train";
    if (arguments[0] == "graph") arguments = arguments + kTinyModel;
    const std::set<std::string> measure = {"profile", "simulate"};
    if (arguments[0] == "calibrate")  // the costs of ops take half a minute: apps/inspect/scheduling_test.cc
      arguments = arguments + Arguments{"--network", "--imitate=25us,10Gbit"};
    if (measure.contains(arguments[0]) || line.find("--schedule") != line.npos)
      arguments = arguments + Arguments{"--graph=towers", "--runs=1"};
    if (arguments[0] == "serve") {  // until a signal ends it
      EXPECT_EQ(Weft(arguments + Arguments{"--port=0"}, {.signal_after = "http:", .signal = SIGINT}).exit_code, 0);
    } else if (trains && arguments[1] != "gpt") {
      EXPECT_TRUE(Works(Weft(SmallTraining(arguments[1]) + Arguments{"--steps=2", "--out=" + arguments[1] + "-run"})))
          << line;
    } else {
      EXPECT_TRUE(Works(trains ? Train(Arguments(arguments.begin() + 2, arguments.end()) + Arguments{"--out=run"})
                               : Weft(arguments)))
          << line;
    }
  }
  EXPECT_GE(commands, kCommands) << "README has a row for each command";
}

TEST_F(CliTest, ReadmesPagesOfARun) {
  std::ifstream readme(fs::absolute("README.md"));
  ASSERT_TRUE(Works(Train({"--out=runs/gpt-1"})));
  std::set<std::string> commands;
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, std::regex("bazel run -c opt //apps:weft -- (\\S+) ([^\"]*)(\"(.*)\")?")) ||
        Contains(line, "$WEFT_SMOLLM") || Contains(line, "--model=tuned"))
      continue;
    commands.insert(match.str(1));
    EXPECT_TRUE(Works(
        Weft(Arguments{match.str(1)} + Words(match.str(2)) + (match[4].matched ? Arguments{"a line "} : Arguments{}))))
        << line;
  }
  EXPECT_EQ(commands, (std::set<std::string>{"attention", "report"}));
  EXPECT_TRUE(fs::exists(Path("report.html")));
  EXPECT_TRUE(fs::exists(Path("attention.html")));
}

// The lines of README with $WEFT_SMOLLM; their last argument may be in quotes.
TEST_F(CliTest, ReadmesPublishedModel) {
  const char* const smollm = std::getenv("WEFT_SMOLLM");
  if (smollm == nullptr) GTEST_SKIP() << "WEFT_SMOLLM is not set";
  fs::create_directories(Path("docs/tour"));
  fs::copy_file(fs::absolute("README.md"), Path("docs/design.md"));
  std::ofstream(Path("docs/tour/README.md")) << "A Transformer reads a text token by token.\n";
  std::ifstream readme(fs::absolute("README.md"));
  std::map<std::string, std::string> answers;
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, std::regex("bazel run .* -- (\\S+ .*(=\\$WEFT_SMOLLM|=tuned).*)"))) continue;
    const std::string command = std::regex_replace(match.str(1), std::regex("\\$WEFT_SMOLLM"), smollm);
    const size_t quote = command.find('"');
    Arguments arguments = Words(command.substr(0, quote));
    if (quote != command.npos) arguments.back() += command.substr(quote + 1, command.size() - quote - 2);
    if (arguments[0] == "train") arguments = arguments + Arguments{"--steps=1", "--context=16", "--sample-length=0"};
    const CommandResult result = Weft(arguments);
    EXPECT_TRUE(Works(result)) << line;
    answers[arguments[0]] = result.out;
  }
  EXPECT_TRUE(Contains(answers["generate"], "The capital of France is Paris.")) << answers["generate"];
  EXPECT_TRUE(Contains(answers["evaluate"], "perplexity")) << answers["evaluate"];
  EXPECT_TRUE(answers.contains("chat"));
  EXPECT_TRUE(Contains(Weft({"summary", "--model=tuned-gguf/model.gguf"}).out,
                       " for 8192 tokens"));  // the context is SmolLM2's
}

// Each command that a heading names has every flag that is named below the heading.
TEST_F(CliTest, TheFlagsOfTheCommandsPageExist) {
  std::ifstream page("docs/commands.md");
  ASSERT_TRUE(page.good());
  std::map<std::string, std::string> help;  // by command
  std::set<std::string> commands;           // of the heading
  int flags = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (line.rfind("#", 0) == 0) {
      commands.clear();
      for (auto at = line.cbegin(); std::regex_search(at, line.cend(), match, std::regex("`weft ([^`]+)`"));) {
        commands.insert(match.str(1));
        help.try_emplace(match.str(1), Weft(Words(match.str(1)) + Arguments{"--help"}).out);
        at = match[0].second;
      }
    }
    for (auto at = line.cbegin(); std::regex_search(at, line.cend(), match, std::regex("--[a-z][a-z0-9-]*"));) {
      for (const std::string& command : commands) {
        const std::regex flag(match.str() + "[ ,\n]");
        EXPECT_TRUE(std::regex_search(help[command], flag)) << match.str() << ", " << command << ": " << line;
        ++flags;
      }
      at = match[0].second;
    }
  }
  EXPECT_EQ(help.size(), kCommands - 4)
      << "docs/commands.md has a section for each command, and one for five estimates";
  EXPECT_GE(flags, 200);
}

TEST_F(CliTest, VersionNamesCompilerAndCpu) {
  const CommandResult result = Weft({"--version"});
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(std::regex_match(result.out, std::regex("weft [0-9.]+\ncompiler: .+\ncpu: .+\n"))) << result.out;
}

TEST_F(CliTest, UsageErrorsAreNamed) {
  const struct {
    const char *command, *message;
  } rows[] = {
      {"trian", "weft: unknown command 'trian', did you mean 'train'?"},
      {"trian --help", "weft: unknown command 'trian', did you mean 'train'?"},
      {"train gtp --help", "weft train: unknown command 'gtp', did you mean 'gpt'?"},
      {"train gtp", "weft train: unknown command 'gtp', did you mean 'gpt'?"},
      {"--verison", "weft: unknown flag '--verison', did you mean '--version'?"},
      {"train gpt --widht=3", "weft train gpt: unknown flag '--widht', did you mean '--width'?"},
      {"train gpt --learning_rate fast", "--learning_rate (--learning-rate): 'fast' is not a number"},
      {"generate --promt=a", "weft generate: unknown flag '--promt', did you mean '--prompt'?"},
      {"graph --formt=dot", "weft graph: unknown flag '--formt', did you mean '--format'?"},
      {"graph compiled", "'compiled': there is no such run folder"},
      {"profile --out=nowhere/trace.json", "--out: there is no folder "},
      {"profile --out=.", "--out: . is not a file"},
      {"profile --policy=fifi", "did you mean 'fifo'?"},
      {"calibrate --threads=1 --runs=2", "--runs is for the costs of ops, not for --threads or --network"},
      {"simulate --workers=0", "--workers: '0' is not a whole number from 1 to 4096"},
      {"simulate --workers=2,x", "--workers: 'x' is not a whole number from 1 to 4096"},
      {"simulate --workers=", "--workers: it is empty"},
      {"simulate --policy=critcal-path", "did you mean 'critical-path'?"},
      {"simulate --graph=gtp2", "did you mean 'gpt2'?"},
      {"simulate --runs=0", "--runs: 0 is not in 1"},
      {"train gpt --steps", "--steps"},
      {"train gpt --steps=many", "--steps: 'many' is not a whole number"},
      {"train gpt --steps=1.5", "--steps: '1.5' is not a whole number"},
      {"train gpt --steps=-1", "--steps: -1 is not in 0 .. 16777216"},
      {"train gpt --bias=maybe", "--bias: 'maybe' is not true or false"},
      {"train gpt --bias=7", "--bias: '7' is not true or false"},
      {"train gpt --resume=maybe", "--resume: 'maybe' is not true or false"},
      {"train gpt --out= --overwrite", "--out: it is empty"},
      {"train gpt --data= --steps=1", "--data: it is empty"},
      {"train gpt --steps= --batch=1", "--steps: '' is not a whole number"},
      {"train gpt --overwrite", "--overwrite: it needs out"},
      {"train gpt --resume", "runs/gpt-N: no run to resume"},
      {"train gpt --resume --out=nowhere", "nowhere: no run to resume"},
      {"train gpt --warmup-steps=9223372036854775807", "is not in 0 .. 16777216"},
      {"train gpt --steps=50 --warmup-steps=51",
       "--warmup-steps: the warm-up of 51 steps is longer than the training of 50 steps"},
      {"train gpt --optimizer=sgd --beta1=0.9", "--beta1: the optimizer sgd has no such setting"},
      {"train gpt --optimizer=muo", "--optimizer: 'muo' is not one of"},
      {"train gpt --schedule=cosin", "--schedule: there is no 'cosin', did you mean 'cosine'?"},
      {"train gpt --groups=wte.*:froze", "--groups: 'wte.*' has 'froze', wanted rate=FACTOR"},
      {"train gpt --groups=nothing:frozen", "groups: 'nothing' matches none of the 52 weights"},
      {"--version --foo", "weft: unknown flag '--foo'"},
      {"graph --stage=recorded --mode=eval", "--mode: it needs --stage=compiled"},
      {"graph --stage=recorded --precision=bf16", "--precision: it needs --stage=compiled"},
      {"graph --stage=recorded --memory", "--memory: it needs --stage=compiled"},
      {"graph --stage=recorded --memory-budget=20M", "--memory-budget: it needs --stage=compiled"},
      {"train gpt --seed=-1", "--seed: '-1' is not a whole number from 0 to 2^64 - 1"},
      {"train gpt --batch=0", "--batch: 0 is not in 1"},
      {"train gpt --learning-rate=fast", "--learning-rate: 'fast' is not a number"},
      {"train gpt --learning-rate=nan", "--learning-rate: 'nan' is not a number"},
      {"train gpt --dropout=1", "--dropout: 1 is not in 0"},
      {"train gpt --activation=rleu", "'rleu' is not one of gelu-tanh, gelu, relu, relu2, silu, did you mean 'relu'?"},
      {"train gpt --width=16 --heads=3", "width 16 is not a multiple of heads 3: each head takes an equal part"},
      {"train gpt --width=16 --heads=0", "--heads: 0 is not in 1"},
      {"train gpt --context=0", "--context: 0 is not in 1"},
      {"train gpt --learning-rate=1e-5", "min-learning-rate 0.0001 is more than learning-rate 1e-05"},
      {"train gpt --resume --overwrite", "--resume: it excludes overwrite"},
      {"graph --width=16 --heads=3", "width 16 is not a multiple of heads 3"},
      {"graph --stage=compild", "'compild' is not one of recorded, compiled, did you mean 'compiled'?"},
      {"generate", "--model=MODEL is missing"},
      {"generate --model=nowhere", "cannot find nowhere: No such file"},
      {"generate --model=nowhere --top-p=1.5", "--top-p: 1.5 is not in 0 .. 1"},
      {"generate --model=nowhere --repetition-penalty=0", "--repetition-penalty: 0 is not in 0.0001 .. 10000"},
      {"generate --model=nowhere --stop=[1]",
       "--stop: got the JSON array [1], wanted one of texts; the text itself is"},
      {"generate --model=nowhere --prompt=a text.txt", "--prompt and the file text.txt exclude each other"},
      {"translate", "--model=MODEL is missing"},
      {"translate --model=nowhere", "cannot find nowhere: No such file"},
      {"tokenize", "--tokenizer=FILE_OR_FOLDER is missing"},
      {"tokenize --tokenizer=nowhere", "cannot find nowhere: No such file"},
      {"tokenize --tokenizer=text.txt text.txt", "text.txt: the vocabulary does not have '[UNK]'"},
      {"tokenize --tokeniser=a", "weft tokenize: unknown flag '--tokeniser', did you mean '--tokenizer'?"},
      {"generate --model=nowhere --top-k=-1", "--top-k: -1 is less than 0"},
  };
  for (const auto& [command, message] : rows) {
    const CommandResult result = Weft(Words(command));
    EXPECT_TRUE(Fails(result, 2, message)) << command;
    EXPECT_EQ(result.out, "") << command;
  }
  EXPECT_FALSE(Exists("runs"));
}

TEST_F(CliTest, DataThatCannotBeUsed) {
  fs::create_directory(Path("folder"));
  Write("empty.txt", "");
  Write("latin1.txt", "caf\xE9 au lait");
  Write("short.txt", "too short");
  Write("binary.txt", std::string("\0\x01\xFF", 3));
  const struct {
    const char *data, *message;
  } rows[] = {
      {"missing.txt", "missing.txt: No such file"},
      {"folder", "folder: the folder has no files"},
      {"empty.txt", "empty.txt: the file is empty"},
      {"latin1.txt", "latin1.txt: not UTF-8 at byte 3 (0xE9)"},
      {"binary.txt", "binary.txt: not UTF-8 at byte 2 (0xFF)"},
      {"short.txt", "too short for a context of 8: it has 9 tokens"},
      {"text.txt/below", "Not a directory"},
  };
  for (const auto& [data, message] : rows) {
    EXPECT_TRUE(Fails(Train({"--out=run", std::string("--data=") + data}), 2, message));
    EXPECT_FALSE(Exists("run")) << data;
  }
  EXPECT_TRUE(Fails(Train({"--out=run", "--context=700"}), 2, "too short for a context of 700"));
}

TEST_F(CliTest, ConfigurationsThatCannotBeUsed) {
  fs::create_directory(Path("folder"));
  const struct {
    const char *contents, *message;
  } rows[] = {
      {"", "config.json: it is not JSON: line 1, column 1"},
      {"{\"steps\": 3", "config.json: it is not JSON: line 1, column 12"},
      {"{\"steps\": 3, \"steps\": 4}", "config.json: 'steps' occurs twice"},
      {"[1]", "config.json: it is not a JSON object"},
      {"{\"widht\": 16}", "config.json: unknown key 'widht', did you mean 'width'?"},
      {"{\"learning-rate\": 1}", "unknown key 'learning-rate', did you mean 'learning_rate'?"},
      {"{\"steps\": \"3\"}", "key 'steps': \"3\" is not of the right type"},
      {"{\"steps\": [3]}", "key 'steps': [3] is not of the right type"},
      {"{\"steps\": 1.5}", "key 'steps': '1.5' is not a whole number"},
      {"{\"batch\": 0}", "key 'batch': 0 is not in 1"},
      {"{\"data\": null}", "key 'data': null is not a text"},
      {"{\"activation\": \"rleu\"}", "did you mean 'relu'?"},
      {"{\"command\": \"train bert\"}", "another command, \"train bert\""},
  };
  for (const auto& [contents, message] : rows) {
    Write("config.json", contents);
    EXPECT_TRUE(Fails(Train({"--out=run", "--config=config.json"}), 2, message)) << contents;
    EXPECT_TRUE(Fails(Weft({"graph", "--config=config.json"}), 2, message)) << contents;
  }
  EXPECT_TRUE(Fails(Train({"--out=run", "--config=missing.json"}), 2, "missing.json: No such file"));
  EXPECT_TRUE(Fails(Train({"--out=run", "--config=folder"}), 2, "it is a folder"));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(CliTest, FlagsWinOverTheConfiguration) {
  Write("config.json", R"({"data": "text.txt", "layers": 1, "width": 16, "heads": 2, "context": 8, "batch": 2,
                           "steps": 5, "bias": false, "learning_rate": 2e-3, "sample_length": 3, "eval_every": 0})");
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--config=config.json", "--out=run", "--steps=4", "--pre-norm=false"})));
  const std::string config = Read("run/config.json");
  for (const char* part : {"\"steps\": 4", "\"bias\": false", "\"pre_norm\": false", "\"learning_rate\": 0.002",
                           "\"heads\": 2", "\"command\": \"train gpt\"", "/text.txt\""}) {
    EXPECT_TRUE(Contains(config, part)) << part << " is not in " << config;
  }
  EXPECT_EQ(Read("run/sample.txt").size(), 4);  // and a newline
}

TEST_F(CliTest, ARunsConfigurationMakesTheSameRun) {
  MakeRun("first", {"--activation=relu", "--dropout=0.1", "--tied-head=false", "--seed=7"});
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--config=first/config.json", "--out=second"})));
  EXPECT_EQ(Differences(Results("first"), Results("second")), "");
  EXPECT_EQ(Read("first/config.json"), Read("second/config.json"));
  const CommandResult graph = Weft({"graph", "--config=first/config.json", "--stage=recorded"});
  EXPECT_TRUE(Works(graph));
  EXPECT_TRUE(Contains(graph.out, "relu")) << graph.out;
}

TEST_F(CliTest, PathsAreMeantFromTheUsersFolder) {
  fs::create_directory(Path("user"));
  fs::copy_file(Path("text.txt"), Path("user/mine.txt"));
  const CommandResult result =
      RunCommand(Arguments{"env", "BUILD_WORKING_DIRECTORY=" + Path("user"), fs::absolute("apps/weft").string(),
                           "train", "gpt", "--data=mine.txt", "--steps=1", "--eval-every=0"} +
                 kTinyModel);
  EXPECT_TRUE(Works(result));
  EXPECT_TRUE(Exists("user/runs/gpt-1/model.safetensors"));
}

TEST_F(CliTest, GraphPrintsWhatWasAskedFor) {
  const auto graph = [&](const Arguments& more) {
    const CommandResult result = Weft(Arguments{"graph"} + kTinyModel + more);
    EXPECT_TRUE(Works(result));
    return result.out;
  };
  const std::string recorded = graph({"--stage=recorded"}), compiled = graph({});
  EXPECT_TRUE(Contains(recorded, "= gradient(")) << recorded;
  EXPECT_FALSE(Contains(compiled, "= gradient(")) << compiled;
  EXPECT_TRUE(Contains(compiled, "adamw")) << compiled;
  EXPECT_TRUE(Contains(compiled, "i32[2,8]")) << compiled;
  EXPECT_FALSE(Contains(graph({"--mode=eval"}), "adamw"));
  EXPECT_TRUE(Contains(graph({"--vocabulary=99"}), "f32[99,16]"));
  EXPECT_EQ(graph({"--stage=compiled", "--format=text"}), compiled);
  const std::string memory = graph({"--memory"});
  for (const char* line : {"values, as planned  ", "values, maximum of live bytes  ", "weights  ", " kernel calls, "}) {
    EXPECT_TRUE(Contains(memory, line)) << memory;
  }
  EXPECT_TRUE(Contains(graph({"--memory", "--memory-budget=1G"}), "values, budget                     1000.000 MB"));
  const CommandResult too_small = Weft(Arguments{"graph", "--memory-budget=1K"} + kTinyModel);
  EXPECT_EQ(too_small.exit_code, 2);
  EXPECT_TRUE(Contains(too_small.err, "memory_budget is 1000 bytes, but the minimum for the values of this graph is "));
  const std::string explained = graph({"--explain"});
  EXPECT_TRUE(Contains(explained, "gpt/h.0/attn: attention: raised\nlinear + cross-entropy: raised\nwork "));
  EXPECT_TRUE(Contains(explained, " times as fast on many workers\n")) << explained;
  for (const char* stage : {"--stage=recorded", "--stage=compiled"}) {
    const std::string dot = graph({"--format=dot", stage});
    EXPECT_EQ(dot.substr(0, 7), "digraph");
    EXPECT_EQ(dot.substr(dot.size() - 2), "}\n");
  }
}

}  // namespace
}  // namespace weft
