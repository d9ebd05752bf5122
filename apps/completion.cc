// `weft completion` prints a script by which a shell completes the commands and flags of `weft`. The script has two
// tables, which both shells share: the flags of each command, and the values of each flag. The shell's function that
// reads them follows: completion.bash or completion.zsh. A line of bash splits --flag=value into three words.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "weft/apps/commands.h"
#include "weft/apps/completion_bash.h"
#include "weft/apps/completion_zsh.h"
#include "weft/apps/flags.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr char kFiles[] = ":files:";  // in place of values: names of files and folders

// Returns the values that complete a flag or argument: choices, kFiles, or nothing.
std::string Values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (absl::StrContains(type, "|")) return absl::StrReplaceAll(type, {{"|", " "}});
  const bool files = absl::StrContains(type, "FILE") || absl::StrContains(type, "FOLDER") || type == "MODEL";
  return files ? kFiles : "";
}

// One line of a table: a pattern of `case` and its answer.
std::string Line(const std::string& pattern, const std::string& answer) {
  return absl::StrCat("    '", pattern, "') echo '", answer, "' ;;\n");
}

// Appends the lines of `app` and its commands to the tables. `name`: the words that call it, without `weft`.
void AddLines(const CLI::App& app, const std::string& name, std::string* flags, std::string* values) {
  std::vector<std::string> names, commands;
  std::string arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) arguments = Values(*option);
    if (option->get_positional() || option->get_group().empty()) continue;
    // Only first names are completed. Values are completed after any name.
    for (const std::string& each : option->get_lnames()) {
      if (each == option->get_lnames().front()) {
        names.push_back(absl::StrCat("--", each, option->get_type_name().empty() ? "" : "="));
      }
      if (const std::string found = Values(*option); !found.empty()) {
        *values += Line(absl::StrCat(name, " --", each), found);
      }
    }
  }
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(each->get_name());
    AddLines(*each, absl::StrCat(name, name.empty() ? "" : " ", each->get_name()), flags, values);
  }
  *flags += Line(name, absl::StrJoin(names, " "));
  *values += Line(name + " ", commands.empty() ? arguments : absl::StrJoin(commands, " "));
}

absl::Status PrintScript(const CLI::App& weft, const std::string& shell) {
  if (shell.empty()) return InvalidArgument("name the shell: bash or zsh");
  if (shell != "bash" && shell != "zsh") return InvalidArgument("the shell is '", shell, "', wanted bash or zsh");
  std::string flags, values;
  AddLines(weft, "", &flags, &values);
  const auto table = [](const char* name, const std::string& lines) {
    return absl::StrCat("_weft_", name, "() {\n  case \"$1\" in\n", lines, "  esac\n}\n");
  };
  const std::string script = absl::StrCat(shell == "zsh" ? "#compdef weft\n" : "", table("flags", flags),
                                          table("values", values), shell == "zsh" ? kCompletionZsh : kCompletionBash);
  std::fwrite(script.data(), 1, script.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command CompletionCommand(CLI::App* weft, const std::string& name) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = AddCommand(weft, name,
                             "Prints a script by which the shell completes the commands of weft, their flags, and the "
                             "values of flags.");
  app->add_option("shell", *shell, "Required: the shell that reads the script")->type_name("bash|zsh");
  return {app,
          [weft, shell] { return PrintScript(*weft, *shell); },
          "prints a script that completes commands and flags in bash or zsh",
          {{"Completes in this bash, or in each new one as a line of ~/.bashrc.", "eval \"$(weft completion bash)\""},
           {"Completes in zsh, from a folder that fpath names.", "weft completion zsh > _weft"}}};
}

}  // namespace weft
