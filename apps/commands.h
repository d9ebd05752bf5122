// The subcommands of `weft`. Each adds its flags to the command line and returns what it does.
//
// Exit codes: 0 done; 2 what the command line asks for can't be done (a flag, a key, or a file that it names); 1
// otherwise.
#ifndef WEFT_APPS_COMMANDS_H_
#define WEFT_APPS_COMMANDS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace weft {

struct Command {
  std::string name;  // "weft train gpt"
  CLI::App* app = nullptr;
  std::function<absl::Status()> run;  // a status of UsageError gives exit code 2
};

Command TrainGptCommand(CLI::App* train);
Command TrainBertCommand(CLI::App* train);
Command TrainTranslateCommand(CLI::App* train);
Command TrainClassifyCommand(CLI::App* train);
Command TrainVitCommand(CLI::App* train);
Command GenerateCommand(CLI::App* weft);
Command TranslateCommand(CLI::App* weft);
Command GraphCommand(CLI::App* weft);
Command SimulateCommand(CLI::App* weft);
Command ProfileCommand(CLI::App* weft);
Command ReportCommand(CLI::App* weft);
Command CalibrateCommand(CLI::App* weft);
Command TokenizeCommand(CLI::App* weft);
Command ClassifyCommand(CLI::App* weft);
Command EmbedCommand(CLI::App* weft);
Command EvaluateCommand(CLI::App* weft);
Command FillMaskCommand(CLI::App* weft);
Command WordVectorsCommand(CLI::App* weft);
Command ImportCommand(CLI::App* weft);
Command ExportCommand(CLI::App* weft);

inline constexpr char kExitCodes[] =
    "Exit codes: 0 done; 2 a flag, a configuration key or a file they name can't be used; 1 anything else.";

}  // namespace weft

#endif  // WEFT_APPS_COMMANDS_H_
