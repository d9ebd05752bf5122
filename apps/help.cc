// A flag's line has its name and type on the left, and its help on the right. If the left part is too long, the help
// begins on the next line.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/apps/flags.h"
#include "weft/lab/page.h"

namespace weft {
namespace {

constexpr size_t kFlagColumn = 2, kHelpColumn = 28;
constexpr char kRequired[] = "Required: ";
constexpr char kRun[] = "Run";

// The order of the groups of flags in a command's help. Other groups come before the last one.
constexpr const char* kGroups[] = {"Data",
                                   "Model",
                                   "Low-rank adapters",
                                   "Training",
                                   "Learning rate",
                                   "Optimizer",
                                   "Sampling",
                                   "Search",
                                   "Evaluation and checkpoints",
                                   "Output",
                                   kRun};

const Example kFirstExamples[] = {
    {"Trains a small GPT on the King James Bible, in a minute or two.", "weft train gpt"},
    {"Continues a text with the trained model.", "weft generate --model=runs/gpt-1 --prompt='In the beginning'"},
};

size_t GroupIndex(const std::string& group) {
  const auto found = absl::c_find(kGroups, group);
  const size_t last = std::size(kGroups) - 1;
  return found == std::end(kGroups) ? 2 * last - 1 : static_cast<size_t>(found - kGroups) * 2;
}

bool IsReal(const Hyperparameter& row) {
  return std::holds_alternative<double*>(row.value) || std::holds_alternative<std::optional<double>*>(row.value);
}

std::string RangeName(const Hyperparameter& row, const char* letter) {
  const auto& [low, high] = std::pair(row.rules.low, row.rules.high);
  constexpr double kNoRealLimit = 1e4;  // a larger round maximum only catches mistakes, and an error names it
  if (low < -kNoRealLimit) return letter;
  const bool real = high < kNoRealLimit || (high < 1e5 && std::fmod(high, kNoRealLimit) != 0);
  if (!real) return absl::StrFormat("%s>=%.6g", letter, low);
  return absl::StrFormat("%.6g..%.6g", low, high);
}

std::string Wrapped(absl::string_view text, size_t column, size_t indent) {
  return WrapWords(absl::StrSplit(text, ' ', absl::SkipEmpty()), column, indent);
}

// Returns the lines of an entry: `left` with its help `text`.
std::string Entry(const std::string& left, const std::string& text) {
  std::string line = absl::StrCat(std::string(kFlagColumn, ' '), left);
  if (line.size() + 2 > kHelpColumn) {
    absl::StrAppend(&line, "\n", std::string(kHelpColumn, ' '));
  } else {
    line.resize(kHelpColumn, ' ');
  }
  return absl::StrCat(line, Wrapped(text, kHelpColumn, kHelpColumn), "\n");
}

std::string Entry(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  std::vector<std::string> aliases;
  for (const std::string& name : option.get_lnames()) {
    (name == option.get_lnames().front() ? names : aliases).push_back("--" + name);
  }
  std::string text = option.get_description();
  if (!aliases.empty()) absl::StrAppend(&text, "; also ", absl::StrJoin(aliases, ", "));
  std::string left = absl::StrJoin(names, ", "), type = option.get_type_name();
  if (kFlagColumn + left.size() + 1 + type.size() > kTextColumns) {  // too many choices for one line
    absl::StrAppend(&text, "; one of ", absl::StrReplaceAll(type, {{"|", ", "}}));
    type = "CHOICE";
  }
  if (!type.empty()) absl::StrAppend(&left, " ", type);
  return Entry(left, text);
}

std::string Examples(absl::Span<const Example> examples) {
  std::string text;
  for (const Example& example : examples) {
    absl::StrAppend(&text, "  # ", Wrapped(example.meaning, 4, 2), "\n");
    std::string line = " ";
    for (absl::string_view word : absl::StrSplit(example.command, ' ')) {
      if (line.size() + 1 + word.size() + 2 > kTextColumns) {
        absl::StrAppend(&text, line, " \\\n");
        line = "     ";
      }
      absl::StrAppend(&line, " ", word);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

// Returns the help of `weft` or `weft train`: the commands by group, a line each.
std::string Overview(const CLI::App& app, const std::vector<Command>& commands) {
  const bool all = app.get_parent() == nullptr;
  const std::string name = FullName(app);
  std::string text = absl::StrCat(Wrapped(app.get_description(), 0, 0), "\n\nUsage: ", name, " COMMAND [FLAG ...]\n");
  std::string group;
  for (const Command& command : commands) {
    bool inside = false;
    const CLI::App* top = command.app;
    for (; top->get_parent() != nullptr && top->get_parent()->get_parent() != nullptr; top = top->get_parent()) {
      inside |= top->get_parent() == &app;
    }
    if (!all && !inside) continue;
    const std::string& title = top->get_group();
    if (title != group) absl::StrAppend(&text, "\n", title, ":\n");
    group = title;
    const std::string words = FullName(*command.app).substr(name.size() + 1);
    absl::StrAppend(&text, absl::StrFormat("  %-24s  ", words), Wrapped(command.summary, kHelpColumn, kHelpColumn),
                    "\n");
  }
  if (all) absl::StrAppend(&text, "\nFirst examples:\n", Examples(kFirstExamples));
  absl::StrAppend(&text, "\nFlags:\n");
  for (const CLI::Option* option : app.get_options()) text += Entry(*option);
  absl::StrAppend(&text, "\n",
                  Wrapped(absl::StrCat("`weft help ", all ? "" : absl::StrCat(absl::StripPrefix(name, "weft "), " "),
                                       "COMMAND` describes a command and its flags. ", app.get_footer()),
                          0, 0),
                  "\n");
  return text;
}

}  // namespace

std::string TypeName(const Hyperparameter& parameter) {
  const Hyperparameter::Rules& rules = parameter.rules;
  if (parameter.is_switch()) return "";
  if (!rules.type.empty()) return rules.type;
  if (!rules.choices.empty()) return absl::StrJoin(rules.choices, "|");
  if (rules.is_bytes) return "BYTES";
  if (rules.is_path_list) return "FILES";
  if (rules.is_path) return "FILE";
  if (parameter.is_text()) return "TEXT";
  return RangeName(parameter, IsReal(parameter) ? "X" : "N");
}

std::string FlagHelp(const Hyperparameter& parameter) {
  std::string text = parameter.text();
  if (IsReal(parameter)) text = std::string(absl::StripSuffix(text, ".0"));
  std::string help = absl::StrCat(parameter.rules.required ? kRequired : "", parameter.help);
  if (parameter.is_switch()) {
    if (text == "true") absl::StrAppend(&help, " (default: on; off: --no-", parameter.flag, ")");
  } else if (!text.empty()) {
    absl::StrAppend(&help, " (default: ", text, ")");
  }
  return help;
}

std::string FullName(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : FullName(*app.get_parent()) + " " + app.get_name();
}

std::string Help(const CLI::App& app, const std::vector<Command>& commands) {
  const auto command = absl::c_find_if(commands, [&](const Command& each) { return each.app == &app; });
  if (command == commands.end()) return Overview(app, commands);
  std::string usage = FullName(app), positional, arguments;
  std::map<std::pair<size_t, std::string>, std::string> groups;  // the lines of each group's flags
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const bool many = option->get_items_expected_max() > 1;
      const bool needed = absl::StartsWith(option->get_description(), kRequired);
      arguments = absl::StrCat(needed ? " " : " [", option->get_type_name(), many ? " ..." : "", needed ? "" : "]");
      positional += Entry(absl::StrCat(option->get_type_name(), many ? " ..." : ""), option->get_description());
    } else if (option != app.get_help_ptr() && !option->get_group().empty()) {
      groups[{GroupIndex(option->get_group()), option->get_group()}] += Entry(*option);
      if (!absl::StartsWith(option->get_description(), kRequired)) continue;
      const std::string type = option->get_type_name();
      absl::StrAppend(&usage, " --", option->get_lnames().front(), type.empty() ? "" : "=", type);
    }
  }
  groups[{GroupIndex(kRun), kRun}] += Entry(*app.get_help_ptr());
  absl::StrAppend(&usage, " [FLAG ...]", arguments);
  std::string text = absl::StrCat(Wrapped(app.get_description(), 0, 0), "\n\nUsage: ", Wrapped(usage, 7, 7), "\n");
  if (!positional.empty()) absl::StrAppend(&text, "\nArguments:\n", positional);
  for (const auto& [group, lines] : groups) absl::StrAppend(&text, "\n", group.second, ":\n", lines);
  if (!command->examples.empty()) absl::StrAppend(&text, "\nExamples:\n", Examples(command->examples));
  return text;
}

}  // namespace weft
