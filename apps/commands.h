// This header lists the commands of `weft` by group. The function of a command adds flags to the command line and
// returns a Command, whose `run` does the work. A new command is a file and a line of WEFT_COMMANDS.
//
//   Command TokenizeCommand(CLI::App* weft) {
//     auto flags = std::make_shared<TokenizeFlags>();
//     CLI::App* app = AddCommand(weft, "tokenize", "Prints the token ids of each line of text.");
//     AddFlags(app, Table(flags.get()), &flags->given);
//     return {"weft tokenize", app, [flags] { return Tokenize(*flags); }, "converts text to token ids", {
//         {"Prints the ids of each line.", "weft tokenize --tokenizer=vocab.txt text.txt"}}};
//   }
//
// Exit codes: 0 means success. 2 means that no command is named, or that a flag, a key of a configuration, or a file
// that one of them names can't be used. 1 means any other error.
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
  std::string name;  // "weft train gpt"
  CLI::App* app = nullptr;
  std::function<absl::Status()> run;  // an error made by UsageError gives exit code 2
  std::string summary = "";           // the command's line in the help of `weft`: "trains a GPT on a text"
  std::vector<Example> examples = {};
  bool on_ranks = false;  // whether mpirun or srun may start the command as several ranks
};

// The groups of `weft --help`.
enum class CommandGroup : uint8_t { kTrain, kUse, kEvaluate, kConvert, kInspect, kLearn, kShell };

#define WEFT_COMMANDS(COMMAND)              \
  COMMAND(kTrain, TrainGptCommand)          \
  COMMAND(kTrain, TrainBertCommand)         \
  COMMAND(kTrain, TrainTranslateCommand)    \
  COMMAND(kTrain, TrainClassifyCommand)     \
  COMMAND(kTrain, TrainVitCommand)          \
  COMMAND(kTrain, TokenizerTrainCommand)    \
  COMMAND(kTrain, EstimateGptCommand)       \
  COMMAND(kTrain, EstimateBertCommand)      \
  COMMAND(kTrain, EstimateTranslateCommand) \
  COMMAND(kTrain, EstimateClassifyCommand)  \
  COMMAND(kTrain, EstimateVitCommand)       \
  COMMAND(kUse, GenerateCommand)            \
  COMMAND(kUse, TranslateCommand)           \
  COMMAND(kUse, ClassifyCommand)            \
  COMMAND(kUse, EmbedCommand)               \
  COMMAND(kUse, FillMaskCommand)            \
  COMMAND(kUse, WordVectorsCommand)         \
  COMMAND(kUse, TokenizeCommand)            \
  COMMAND(kEvaluate, EvaluateCommand)       \
  COMMAND(kConvert, ImportCommand)          \
  COMMAND(kConvert, ExportCommand)          \
  COMMAND(kConvert, QuantizeCommand)        \
  COMMAND(kInspect, SummaryCommand)         \
  COMMAND(kInspect, AttentionCommand)       \
  COMMAND(kInspect, GraphCommand)           \
  COMMAND(kInspect, ProfileCommand)         \
  COMMAND(kInspect, ReportCommand)          \
  COMMAND(kInspect, SimulateCommand)        \
  COMMAND(kInspect, CalibrateCommand)       \
  COMMAND(kLearn, DemoScaleCommand)         \
  COMMAND(kLearn, DemoHeadsCommand)         \
  COMMAND(kLearn, DemoMasksCommand)         \
  COMMAND(kLearn, DemoPatternsCommand)      \
  COMMAND(kLearn, DemoPositionsCommand)     \
  COMMAND(kLearn, DemoNormsCommand)         \
  COMMAND(kLearn, DemoDepthCommand)         \
  COMMAND(kShell, CompletionCommand)

#define WEFT_DECLARE_COMMAND(group, function) Command function(CLI::App* parent);
WEFT_COMMANDS(WEFT_DECLARE_COMMAND)
#undef WEFT_DECLARE_COMMAND

inline constexpr char kExitCodes[] =
    "Exit codes: 0 success; 2 a flag, a configuration key or a file they name can't be used; 1 anything else.";

}  // namespace weft

#endif  // WEFT_APPS_COMMANDS_H_
