// CLI11 stores flags as texts. SetFromFlags reads them by SetFromText, so all sources of options share one check.
#include "weft/apps/flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/apps/help.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr char kNoGroup[] = "Flags";  // the group of rows without one

}  // namespace

absl::Status UsageError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
      return InvalidArgument(status.message());
    case absl::StatusCode::kResourceExhausted:  // memory_budget is an option; the machine's memory is not
      return absl::StrContains(status.message(), "memory_budget") ? InvalidArgument(status.message()) : status;
    default:
      return status;
  }
}

absl::Status Failure(const absl::Status& status) {
  return absl::IsInvalidArgument(UsageError(status)) ? absl::DataLossError(status.message()) : status;
}

int ExitCode(const absl::Status& status) { return status.ok() ? 0 : absl::IsInvalidArgument(status) ? 2 : 1; }

std::vector<std::string> Words(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const bool empty_value = absl::StartsWith(word, "--") && word.find('=') == word.size() - 1;
    words.emplace_back(empty_value ? word.substr(0, word.size() - 1) : word);
    if (empty_value) words.emplace_back();
  }
  return words;
}

CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about) {
  const std::vector<std::string> words = absl::StrSplit(name, ' ');
  for (size_t i = 0; i + 1 < words.size(); ++i) parent = parent->get_subcommand(words[i]);
  return parent->add_subcommand(words.back(), about);
}

void AddFiles(CLI::App* app, std::vector<std::string>* files) {
  app->add_option("files", *files, "files of text; without any, standard input is read")
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddFlags(CLI::App* app, const Hyperparameters& table, GivenFlags* given) {
  for (const Hyperparameter& parameter : table) {
    const auto store = [given, flag = parameter.flag](const std::string& text) { (*given)[flag] = text; };
    const std::string help = FlagHelp(parameter);
    const std::string name = absl::StrCat("--", parameter.flag);
    const std::string group = parameter.rules.group.empty() ? kNoGroup : parameter.rules.group;
    if (parameter.is_switch()) {
      app->add_flag(name, help)->each(store)->group(group);
    } else {
      app->add_option_function<std::string>(name, store, help)->type_name(TypeName(parameter))->group(group);
    }
  }
}

absl::Status SetFromFlags(const GivenFlags& given, const Hyperparameters& table) {
  for (const Hyperparameter& parameter : table) {
    const auto found = given.find(parameter.flag);
    if (found != given.end()) WEFT_RETURN_IF_ERROR(SetFromText(found->second, parameter));
  }
  return absl::OkStatus();
}

absl::Status WithFlag(const absl::Status& status, const CLI::App& app) {
  const absl::string_view message = status.message();
  const std::string name(message.substr(0, message.find(':')));
  if (app.get_option_no_throw("--" + name) == nullptr) return status;
  return absl::Status(status.code(), absl::StrCat("--", message));
}

absl::Status CheckNoExtras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return absl::OkStatus();
  const std::string word = extras.front().substr(0, extras.front().find('='));
  if (!absl::StartsWith(word, "-")) {
    std::vector<std::string> known;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
    return InvalidArgument(known.empty() ? "unexpected argument " : "unknown command ", NameAndNearest(word, known));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  return InvalidArgument("unknown flag ", NameAndNearest(word, known));
}

}  // namespace weft
