// This header lists the commands of `weft` by group. The function of a command adds flags to the command line and
// returns a Command, whose `run` does the work. A new command is a file and a line of WEFT_COMMANDS.
//
//   Command TokenizeCommand(CLI::App* weft, const std::string& name) {
//     return MakeCommand(weft, name,
//                        {"Prints the token ids of each line of text.", "converts text to token ids",
//                         {{"Prints the ids of each line.", "weft tokenize --tokenizer=vocab.txt text.txt"}}},
//                        std::make_shared<TokenizeFlags>(), Table, Tokenize, &TokenizeFlags::texts);
//   }
#ifndef WEFT_APPS_COMMANDS_H_
#define WEFT_APPS_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace weft {

// A line of the shell at the end of a command's help. A test runs it, in a folder of small files with the names that
// examples use (tests/help_test.cc).
struct Example {
  std::string meaning;  // a sentence: "Trains on a text of your own."
  std::string command;  // "weft train gpt --data=book.txt"
};

struct Command {
  CLI::App* app = nullptr;
  std::function<absl::Status()> run;  // an error made by UsageError gives exit code 2
  std::string summary = "";           // the command's line in the help of `weft`: "trains a GPT on a text"
  std::vector<Example> examples = {};
  bool on_ranks = false;  // whether mpirun or srun may start the command as several ranks
};

// The groups of `weft --help`.
enum class CommandGroup : uint8_t { kTrain, kUse, kEvaluate, kConvert, kInspect, kLearn, kShell };

// The group, name and function of each command. The function gets the name.
#define WEFT_COMMANDS(COMMAND)                                 \
  COMMAND(kTrain, "train gpt", TrainCommand)                   \
  COMMAND(kTrain, "train bert", TrainCommand)                  \
  COMMAND(kTrain, "train translate", TrainCommand)             \
  COMMAND(kTrain, "train classify", TrainCommand)              \
  COMMAND(kTrain, "train vit", TrainCommand)                   \
  COMMAND(kTrain, "tokenizer train", TokenizerTrainCommand)    \
  COMMAND(kTrain, "lexicon", LexiconCommand)                   \
  COMMAND(kTrain, "estimate train gpt", EstimateCommand)       \
  COMMAND(kTrain, "estimate train bert", EstimateCommand)      \
  COMMAND(kTrain, "estimate train translate", EstimateCommand) \
  COMMAND(kTrain, "estimate train classify", EstimateCommand)  \
  COMMAND(kTrain, "estimate train vit", EstimateCommand)       \
  COMMAND(kUse, "generate", GenerateCommand)                   \
  COMMAND(kUse, "chat", ChatCommand)                           \
  COMMAND(kUse, "serve", ServeCommand)                         \
  COMMAND(kUse, "translate", TranslateCommand)                 \
  COMMAND(kUse, "classify", ClassifyCommand)                   \
  COMMAND(kUse, "embed", EmbedCommand)                         \
  COMMAND(kUse, "fill-mask", FillMaskCommand)                  \
  COMMAND(kUse, "word-vectors", WordVectorsCommand)            \
  COMMAND(kUse, "tokenize", TokenizeCommand)                   \
  COMMAND(kEvaluate, "evaluate", EvaluateCommand)              \
  COMMAND(kConvert, "import", ImportCommand)                   \
  COMMAND(kConvert, "export", ExportCommand)                   \
  COMMAND(kConvert, "quantize", QuantizeCommand)               \
  COMMAND(kInspect, "summary", SummaryCommand)                 \
  COMMAND(kInspect, "attention", AttentionCommand)             \
  COMMAND(kInspect, "graph", GraphCommand)                     \
  COMMAND(kInspect, "profile", ProfileCommand)                 \
  COMMAND(kInspect, "report", ReportCommand)                   \
  COMMAND(kInspect, "simulate", SimulateCommand)               \
  COMMAND(kInspect, "calibrate", CalibrateCommand)             \
  COMMAND(kLearn, "demo attention", DemoCommand)               \
  COMMAND(kLearn, "demo scale", DemoCommand)                   \
  COMMAND(kLearn, "demo heads", DemoCommand)                   \
  COMMAND(kLearn, "demo masks", DemoCommand)                   \
  COMMAND(kLearn, "demo patterns", DemoCommand)                \
  COMMAND(kLearn, "demo positions", DemoCommand)               \
  COMMAND(kLearn, "demo norms", DemoCommand)                   \
  COMMAND(kLearn, "demo depth", DemoCommand)                   \
  COMMAND(kLearn, "demo activations", DemoCommand)             \
  COMMAND(kShell, "completion", CompletionCommand)

#define WEFT_DECLARE_COMMAND(group, name, function) Command function(CLI::App*, const std::string&);
WEFT_COMMANDS(WEFT_DECLARE_COMMAND)
#undef WEFT_DECLARE_COMMAND

inline constexpr char kExitCodes[] =
    "Exit codes: 0 success; 2 a flag, a configuration key or a file they name can't be used; 1 anything else.";

}  // namespace weft

#endif  // WEFT_APPS_COMMANDS_H_
