// `weft completion` prints a script by which a shell completes the commands and flags of `weft`. The script has two
// tables, which both shells share: the flags of each command, and the values of each flag.
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
#include "weft/apps/flags.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr char kFiles[] = ":files:";  // in place of values: names of files and folders

// A line of bash splits --flag=value into three words.
constexpr char kBash[] = R"sh(_weft() {
  local command='' flag='' current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" values i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " $(_weft_values "$command ") " in
      *" ${COMP_WORDS[i]} "*) [ "${COMP_WORDS[i]}" = help ] || command="${command:+$command }${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  if [ "$current" = '=' ]; then
    flag="$previous" current=''
  elif [ "$previous" = '=' ]; then
    flag="${COMP_WORDS[COMP_CWORD-2]}"
  else
    case " $(_weft_flags "$command") " in *" $previous= "*) flag="$previous" ;; esac
  fi
  COMPREPLY=()
  if [ -z "$flag" ] && [ "${current#-}" != "$current" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_weft_flags "$command")" -- "$current")
    case "${COMPREPLY[0]}" in *=) compopt -o nospace 2>/dev/null ;; esac
    return 0
  fi
  values="$(_weft_values "$command $flag")"
  if [ "$values" = ':files:' ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
  fi
}
complete -F _weft weft
)sh";

constexpr char kZsh[] = R"sh(_weft() {
  local command='' flag='' previous="${words[CURRENT-1]}" values i
  for ((i = 2; i < CURRENT; i++)); do
    case " $(_weft_values "$command ") " in
      *" ${words[i]} "*) [ "${words[i]}" = help ] || command="${command:+$command }${words[i]}" ;;
      *) break ;;
    esac
  done
  if [[ "$PREFIX" == --*=* ]]; then
    flag="${PREFIX%%=*}"
    compset -P '*='
  else
    case " $(_weft_flags "$command") " in *" $previous= "*) flag="$previous" ;; esac
  fi
  if [[ -z "$flag" && "$PREFIX" == -* ]]; then
    local -a switches with_values
    for i in ${=$(_weft_flags "$command")}; do
      case "$i" in *=) with_values+=("${i%=}") ;; *) switches+=("$i") ;; esac
    done
    compadd -S '=' -- $with_values
    compadd -- $switches
    return
  fi
  values="$(_weft_values "$command $flag")"
  if [ "$values" = ':files:' ]; then _files; else compadd -- ${=values}; fi
}
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
compdef _weft weft
)sh";

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
                                          table("values", values), shell == "zsh" ? kZsh : kBash);
  std::fwrite(script.data(), 1, script.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command CompletionCommand(CLI::App* weft) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = AddCommand(weft, "completion",
                             "Prints a script by which the shell completes the commands of weft, their flags, and the "
                             "values of flags.");
  app->add_option("shell", *shell, "the shell that reads the script")->type_name("bash|zsh");
  return {"weft completion",
          app,
          [weft, shell] { return PrintScript(*weft, *shell); },
          "prints a script that completes commands and flags in bash or zsh",
          {{"Completes in this bash, or in each new one as a line of ~/.bashrc.", "eval \"$(weft completion bash)\""},
           {"Completes in zsh, from a folder that fpath names.", "weft completion zsh > _weft"}}};
}

}  // namespace weft
