// Only flags are rewritten. A word that is the value of the flag before it stays unchanged, even if it begins with '-'.
#include "weft/apps/command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/options/option_names.h"

namespace weft {
namespace {

bool IsSwitch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

const CLI::Option* FindLong(const CLI::App& command, absl::string_view name) {
  return command.get_option_no_throw(absl::StrCat("--", name));
}

// Returns the switch of which `name` is the opposite: that of --bias for "no-bias", that of --no-reuse for "reuse".
const CLI::Option* FindOpposite(const CLI::App& command, absl::string_view name) {
  absl::string_view positive = name;
  const bool negative = absl::ConsumePrefix(&positive, "no-");
  const CLI::Option* const option = FindLong(command, negative ? positive : absl::StrCat("no-", name));
  return option != nullptr && IsSwitch(*option) ? option : nullptr;
}

std::string Opposite(absl::string_view value) {
  return value == "true" ? "false" : value == "false" ? "true" : std::string(value);
}

// Returns the command `name` of `parent`, or `parent` if it has none.
const CLI::App& FindCommand(const CLI::App& parent, absl::string_view name) {
  for (const CLI::App* command : parent.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return *command;
  }
  return parent;
}

class Reader {
 public:
  explicit Reader(const CLI::App& app) : command_(&app) {}

  void Read(absl::string_view word) {
    if (only_arguments_) {
      line_.words.emplace_back(word);
    } else if (waiting_ != nullptr) {
      line_.words.emplace_back(word);
      Note(*std::exchange(waiting_, nullptr), typed_, word);
    } else if (word == "--") {
      line_.words.emplace_back(word);
      only_arguments_ = true;
    } else if (absl::StartsWith(word, "--")) {
      ReadLong(word);
    } else if (absl::StartsWith(word, "-") && word.size() > 1) {
      ReadShort(word);
    } else {
      command_ = &FindCommand(*command_, word);
      line_.words.emplace_back(word);
    }
  }

  CommandLine Finish() { return std::move(line_); }

 private:
  void ReadLong(absl::string_view word) {
    const size_t equals = word.find('=');
    const bool has_value = equals != word.npos;
    const std::string typed(word.substr(0, equals));
    const std::string name = WithHyphens(absl::StripPrefix(typed, "--"));
    const CLI::Option* option = FindLong(*command_, name);
    const bool opposite = option == nullptr;
    if (opposite) option = FindOpposite(*command_, name);
    if (option == nullptr) {
      line_.words.emplace_back(word);
      return;
    }
    const std::string flag = absl::StrCat("--", option->get_lnames().front());
    std::string value(has_value ? word.substr(equals + 1) : "");
    if (!has_value && !IsSwitch(*option)) {
      line_.words.push_back(flag);
      waiting_ = option;
      typed_ = typed;
      return;
    }
    if (!has_value) value = "true";
    if (opposite) value = Opposite(value);
    if (value.empty()) {  // CLI11 would read "--flag=" as a flag without a value
      line_.words.insert(line_.words.end(), {flag, ""});
    } else {
      line_.words.push_back(has_value || opposite ? absl::StrCat(flag, "=", value) : flag);
    }
    Note(*option, typed, value);
  }

  void ReadShort(absl::string_view word) {
    line_.words.emplace_back(word);
    const std::string name = WithHyphens(word.substr(1, word.find('=') - 1));
    if (name.size() > 1 && (FindLong(*command_, name) != nullptr || FindOpposite(*command_, name) != nullptr)) {
      line_.status.Update(InvalidArgument("unknown flag '-", name, "', did you mean '--", name, "'?"));
      return;
    }
    const std::string typed(word.substr(0, 2));
    const CLI::Option* const option = command_->get_option_no_throw(typed);
    if (option == nullptr || IsSwitch(*option)) return;
    if (word.size() > 2) {
      Note(*option, typed, word.substr(2));
    } else {
      waiting_ = option;
      typed_ = typed;
    }
  }

  // Notes that the user typed the name `typed` of `option` with `value`.
  void Note(const CLI::Option& option, const std::string& typed, absl::string_view value) {
    if (option.get_lnames().empty()) return;
    const std::string flag = option.get_lnames().front();
    const auto [other, first] = given_.try_emplace(flag, typed, value);
    if (!first && WithHyphens(other->second.first) != WithHyphens(typed) && other->second.second != value) {
      line_.status.Update(InvalidArgument(other->second.first, " and ", typed,
                                          " are the same flag with different values, '", other->second.second,
                                          "' and '", value, "'"));
    }
    other->second = {typed, std::string(value)};
    line_.typed[flag] = typed;
  }

  CommandLine line_;
  const CLI::App* command_;                                           // the command that the words so far name
  const CLI::Option* waiting_ = nullptr;                              // the flag whose value is the next word
  std::string typed_;                                                 // its name as it was typed
  bool only_arguments_ = false;                                       // whether "--" was read
  std::map<std::string, std::pair<std::string, std::string>> given_;  // name as typed, and value, by the first name
};

}  // namespace

CommandLine ReadCommandLine(int argc, char** argv, const CLI::App& app) {
  Reader reader(app);
  for (int i = 1; i < argc; ++i) reader.Read(argv[i]);
  return reader.Finish();
}

}  // namespace weft
