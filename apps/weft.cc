// The program `weft` finds the command that the command line names and runs it. It turns the command's error into a
// line on stderr, and the status into an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/ranks.h"
#include "weft/options/hyperparameters.h"
#include "weft/options/option_names.h"
#include "weft/train/run/build_info.h"

namespace weft {
namespace {

constexpr char kHelp[] = "help";
constexpr char kAbout[] =
    "Weft trains and runs Transformers on CPUs. A model is a graph that is recorded, differentiated, compiled and run.";

// Returns a printable message. If it has more than kMaxHead + kMaxTail bytes, its middle is left out.
std::string Shortened(absl::string_view text) {
  constexpr size_t kMaxHead = 3000, kMaxTail = 1000;  // bytes: a message fits on a large terminal
  if (text.size() <= kMaxHead + kMaxTail) return Printable(text);
  return absl::StrCat(Printable(text.substr(0, kMaxHead)), " ... ", text.size() - kMaxHead - kMaxTail,
                      " more bytes ... ", Printable(text.substr(text.size() - kMaxTail)));
}

// Prints an error and returns the exit code. An error without a message is not printed, because another rank prints it.
int Report(const std::string& command, const absl::Status& status) {
  if (!status.ok() && !status.message().empty()) {
    const std::string message = Shortened(status.message());
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", command.c_str(), message.c_str());
  }
  return status.ok() ? 0 : absl::IsInvalidArgument(status) ? 2 : 1;
}

// Returns an error if mpirun or srun started the program as one of several ranks, for a command that trains nothing.
// Rank 0 prints it. `messenger` keeps the connection to the other ranks until then.
absl::Status CheckAlone(std::unique_ptr<Messenger>* messenger) {
  WEFT_ASSIGN_OR_RETURN(*messenger, ConnectMessenger());
  if (*messenger == nullptr) return absl::OkStatus();
  const Ranks ranks(messenger->get());
  return PrintedByFirst(ranks, absl::FailedPreconditionError(
                                   absl::StrCat("runs on one process, but was started on ", ranks.size(), " ranks")));
}

// Checks that everything that was printed was also written.
absl::Status FinishOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError("standard output could not be written");
}

// Returns the innermost command that the command line names.
const CLI::App* Innermost(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? &app : Innermost(*parsed.back());
}

// Opens /dev/null for each closed standard stream. Otherwise the next opened file would take the stream's number.
// Standard output can't be written then, so that FinishOutput reports output that is lost.
void OpenStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == 2 ? O_RDWR : O_RDONLY);  // takes the lowest free number
  }
}

// The titles of the groups in the help, by CommandGroup.
constexpr const char* kTitles[] = {"Train a model",
                                   "Use a model",
                                   "Evaluate a model",
                                   "Convert a model",
                                   "Look inside a training step and its schedule",
                                   "See how a Transformer works",
                                   "Work in a shell"};

// Checks that `words` name a command, or a group of commands such as `weft train`.
absl::Status CheckCommand(absl::Span<const std::string> words, const CLI::App& app) {
  if (words.empty()) return absl::OkStatus();
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == words.front()) return CheckCommand(words.subspan(1), *command);
    known.push_back(command->get_name());
  }
  return InvalidArgument("unknown command '", words.front(), "'", DidYouMean(words.front(), known));
}

// Commands with subcommands, and what the help says of them.
constexpr std::pair<const char*, const char*> kParents[] = {
    {"train", "Trains a model."},
    {"tokenizer", "Learns a tokenizer."},
    {"demo", "Shows an idea of the Transformer in numbers, computed by Weft's ops and models."},
    {"estimate", "Estimates a training's memory and time."},
    {"estimate train", "Takes a training command's flags, and trains nothing."}};

// Reports whether the arguments begin with the words of `name`, a command's.
bool Names(absl::string_view name, absl::Span<char* const> arguments) {
  const std::vector<absl::string_view> words = absl::StrSplit(name, ' ');
  return arguments.size() > words.size() && std::equal(words.begin(), words.end(), arguments.begin() + 1);
}

// Adds commands to `weft`, and returns them: the one that the arguments name or, if they name none, all. To add all
// takes longer than to generate a token. A shell's script needs all, too.
std::vector<Command> AddCommands(absl::Span<char* const> arguments, CLI::App* weft) {
  for (const auto& [name, about] : kParents) AddCommand(weft, name, about);
  const struct {
    CommandGroup group;
    const char* name;
    Command (*add)(CLI::App* parent, const std::string& name);
  } kRows[] = {
#define WEFT_COMMAND_ROW(group, name, function) {CommandGroup::group, name, function},
      WEFT_COMMANDS(WEFT_COMMAND_ROW)
#undef WEFT_COMMAND_ROW
  };
  const bool one = std::any_of(std::begin(kRows), std::end(kRows), [&](const auto& row) {
    return row.group != CommandGroup::kShell && Names(row.name, arguments);
  });
  std::vector<Command> commands;
  for (const auto& [group, name, add] : kRows) {
    if (one && !Names(name, arguments)) continue;
    commands.push_back(add(weft, name));
    CLI::App* top = commands.back().app;
    while (top->get_parent() != weft) top = top->get_parent();
    top->group(kTitles[static_cast<size_t>(group)]);
  }
  return commands;
}

// Returns the row of --max-bytes, which all commands share: the limit for files of unknown size (base/file.h).
Hyperparameters LimitTable(uint64_t* max_bytes) {
  return {{"max-bytes",
           "maximum size of a device, a pipe, a decompressed file or a line of standard input",
           max_bytes,
           {.is_bytes = true, .group = "Run"}}};
}

bool IsSwitch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

const CLI::Option* FindLong(const CLI::App& command, absl::string_view name) {
  return command.get_option_no_throw(absl::StrCat("--", name));
}

// Returns the switch that `name` turns the other way: --bias for the name "no-bias", --no-reuse for "reuse".
const CLI::Option* FindOpposite(const CLI::App& command, absl::string_view name) {
  absl::string_view positive = name;
  const bool negative = absl::ConsumePrefix(&positive, "no-");
  const CLI::Option* const option = FindLong(command, negative ? positive : absl::StrCat("no-", name));
  return option != nullptr && IsSwitch(*option) ? option : nullptr;
}

// Returns the command `name` of `parent`, or `parent` if it has none.
const CLI::App& FindCommand(const CLI::App& parent, absl::string_view name) {
  for (const CLI::App* command : parent.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return *command;
  }
  return parent;
}

// A command line, prepared for CLI11, which knows a flag by fixed names only. Flags may have '_' instead of '-', and a
// switch X is turned off with --no-X: --batch_size=8 becomes --batch 8, and --no-bias --bias=false. A word that is the
// value of the flag before it stays unchanged, even if it begins with '-', and so does an unknown flag.
class CommandLine {
 public:
  std::vector<std::string> words;            // after the program's name; each known long flag has its first name
  std::map<std::string, std::string> typed;  // the names that the user typed for flags, by the flag's first name
  // An error if two names of a flag have different values, or if a long flag has a single '-'. Otherwise OK.
  absl::Status status;

  explicit CommandLine(const CLI::App& app) : command_(&app) {}

  // Reads the next word.
  void Read(absl::string_view word) {
    const bool is_value = only_arguments_ || waiting_ != nullptr;  // whatever it looks like
    if (!is_value && absl::StartsWith(word, "--") && word != "--") return ReadLong(word);
    words.emplace_back(word);
    if (waiting_ != nullptr) {
      Note(*std::exchange(waiting_, nullptr), waiting_name_, word);
    } else if (word == "--") {
      only_arguments_ = true;
    } else if (!is_value && absl::StartsWith(word, "-") && word.size() > 1) {
      ReadShort(word);
    } else if (!is_value) {
      command_ = &FindCommand(*command_, word);
    }
  }

 private:
  void ReadLong(absl::string_view word) {
    const size_t equals = word.find('=');
    const bool has_value = equals != word.npos;
    const std::string name(word.substr(0, equals));
    const std::string hyphened = WithHyphens(absl::StripPrefix(name, "--"));
    const CLI::Option* option = FindLong(*command_, hyphened);
    const bool opposite = option == nullptr;
    if (opposite) option = FindOpposite(*command_, hyphened);
    if (option == nullptr) {
      words.emplace_back(word);
      return;
    }
    words.push_back(absl::StrCat("--", option->get_lnames().front()));
    if (!has_value && !IsSwitch(*option)) {
      waiting_ = option;
      waiting_name_ = name;
      return;
    }
    std::string value(has_value ? word.substr(equals + 1) : "true");
    if (opposite) value = value == "true" ? "false" : value == "false" ? "true" : value;
    if (IsSwitch(*option) && !value.empty()) {  // CLI11 would read "--flag=" as a flag without a value
      absl::StrAppend(&words.back(), "=", value);
    } else {
      words.push_back(value);
    }
    Note(*option, name, value);
  }

  void ReadShort(absl::string_view word) {
    const std::string hyphened = WithHyphens(word.substr(1, word.find('=') - 1));
    if (hyphened.size() > 1 &&
        (FindLong(*command_, hyphened) != nullptr || FindOpposite(*command_, hyphened) != nullptr)) {
      status.Update(InvalidArgument("unknown flag '-", hyphened, "', did you mean '--", hyphened, "'?"));
      return;
    }
    const std::string name(word.substr(0, 2));
    const CLI::Option* const option = command_->get_option_no_throw(name);
    if (option == nullptr || IsSwitch(*option)) return;
    if (word.size() > 2) {
      Note(*option, name, word.substr(2));
    } else {
      waiting_ = option;
      waiting_name_ = name;
    }
  }

  // Notes that the user typed `name` for `option`, with `value`.
  void Note(const CLI::Option& option, const std::string& name, absl::string_view value) {
    if (option.get_lnames().empty()) return;
    const std::string& flag = option.get_lnames().front();
    std::string &last_name = typed[flag], &last_value = values_[flag];
    if (!last_name.empty() && WithHyphens(last_name) != WithHyphens(name) && last_value != value) {
      status.Update(InvalidArgument(last_name, " and ", name, " are the same flag with different values, '", last_value,
                                    "' and '", value, "'"));
    }
    last_name = name;
    last_value = std::string(value);
  }

  const CLI::App* command_;                    // the command that the words so far name
  const CLI::Option* waiting_ = nullptr;       // the flag whose value is the next word
  std::string waiting_name_;                   // its name as it was typed
  bool only_arguments_ = false;                // whether "--" was read
  std::map<std::string, std::string> values_;  // the last values of flags, by the flag's first name
};

int Main(int argc, char** argv) {
  OpenStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit gives an error, as a full disk does
  // `bazel run` changes the working folder, but relative paths refer to the user's folder, named by this variable.
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY"); folder != nullptr && chdir(folder) != 0) {
    return Report("weft", absl::UnavailableError(absl::StrCat("can't enter ", folder)));
  }
  CLI::App app(kAbout, "weft");
  std::vector<Command> commands;
  // Subcommands inherit the formatter, the help flag, the footer, the defaults of options, and that extras are allowed.
  app.formatter_fn(
      [&commands](const CLI::App* of, const std::string&, CLI::AppFormatMode) { return Help(*of, commands); });
  app.set_help_flag("-h,--help", "print this help");
  app.footer(kExitCodes);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_extras();  // words that CLI11 does not know stay for CheckNoExtras
  const auto version = [] {
    return absl::StrFormat("weft %s\ncompiler: %s\ncpu: %s", kVersion, CompilerName(), CpuFeatures());
  };
  app.set_version_flag("-v,--version", version, "print version, compiler and CPU features");
  app.add_subcommand(kHelp, "Prints the help of a command.")->group("");  // Main handles it; here for suggestions
  commands = AddCommands(absl::MakeConstSpan(argv, static_cast<size_t>(argc)), &app);
  uint64_t max_bytes = ReadLimit();
  GivenFlags given;
  for (const Command& command : commands) {
    AddFlags(command.app, LimitTable(&max_bytes), &given);
  }

  CommandLine line(app);
  for (int i = 1; i < argc; ++i) line.Read(argv[i]);
  std::vector<std::string>& words = line.words;
  if (!words.empty() && words.front() == kHelp) {  // `weft help train gpt` is `weft train gpt --help`
    words.erase(words.begin());
    if (const absl::Status status = CheckCommand(words, app); !status.ok()) return Report(app.get_name(), status);
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());  // CLI11 expects the last word first
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help or --version
      const CLI::App& of = *Innermost(app);
      const bool is_group = !of.get_subcommands([](const CLI::App*) { return true; }).empty();
      const absl::Status status = is_group ? CheckNoExtras(of) : absl::OkStatus();  // the help of an unknown command?
      if (!status.ok()) return Report(FullName(of), status);
      std::ostringstream text;
      app.exit(error, text);
      std::fputs(text.str().c_str(), stdout);
      return Report("weft", FinishOutput());
    }
    return Report(FullName(*Innermost(app)), InvalidArgument(error.what()));
  }
  const CLI::App* named = Innermost(app);
  if (!line.status.ok()) return Report(FullName(*named), line.status);
  for (const CLI::App* each = named; each != nullptr; each = each->get_parent()) {
    if (const absl::Status status = CheckNoExtras(*each); !status.ok()) return Report(FullName(*each), status);
  }
  for (const Command& command : commands) {
    if (command.app != named) continue;
    absl::Status status = SetFromFlags(given, LimitTable(&max_bytes));
    SetReadLimit(max_bytes);
    std::unique_ptr<Messenger> messenger;
    if (status.ok() && !command.on_ranks) status = CheckAlone(&messenger);
    if (status.ok()) status = command.run();
    if (status.ok()) status = FinishOutput();
    return Report(FullName(*named), WithFlag(status, *command.app, line.typed));
  }
  std::fputs(app.help().c_str(), stderr);  // the help of the innermost command, under its full name
  return 2;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  try {
    return weft::Main(argc, argv);
  } catch (const std::exception& error) {  // from the standard library: out of memory
    std::fprintf(stderr, "weft: %s\n", error.what());
    return 1;
  }
}
