// CLI11 stores flags as texts. SetFromFlags reads them by SetFromText, so all sources of options share one check.
#include "weft/apps/flags.h"

#include <CLI/CLI.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/core/block_formats.h"
#include "weft/options/option_names.h"

namespace weft {
namespace {

constexpr char kNoGroup[] = "Flags";  // the group of rows without one
constexpr char kStandardStream[] = "-";

// Returns the names of the flags that `app` has and of those that `table` adds, without hyphens at the beginning.
std::set<std::string> NamesOf(const CLI::App& app, const Hyperparameters& table) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(option->get_lnames().begin(), option->get_lnames().end());
    names.insert(option->get_snames().begin(), option->get_snames().end());
  }
  for (const Hyperparameter& row : table) names.insert(row.flag);
  return names;
}

// Returns the names of the flag of `option` for CLI11: "-m,--model,--model-path". Leaves out aliases in `taken`, and
// adds the others to it.
std::string FlagNames(const std::string& option, std::set<std::string>* taken) {
  const std::string letter = ShortFlag(option);
  std::string names = !letter.empty() && taken->insert(letter).second ? absl::StrCat("-", letter, ",") : "";
  absl::StrAppend(&names, "--", option);
  for (const std::string& alias : Aliases(option)) {
    if (taken->insert(alias).second) absl::StrAppend(&names, ",--", alias);
  }
  return names;
}

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

CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about) {
  const std::vector<std::string> words = absl::StrSplit(name, ' ');
  for (size_t i = 0; i + 1 < words.size(); ++i) parent = parent->get_subcommand(words[i]);
  parent->require_subcommand(0, 1);  // a later argument with a command's name is a file or a model
  return parent->add_subcommand(words.back(), about);
}

void AddWords(CLI::App* app, const std::string& name, const std::string& help, std::vector<std::string>* words,
              const std::string& type) {
  // CLI11 reads "[a,b]" as a list if an option takes more words than it expects, so this one expects many.
  constexpr int kManyWords = 1 << 28;
  app->add_option(name, *words, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(kManyWords)
      ->allow_extra_args(false);
}

Hyperparameter ModelRow(std::string help, std::string* model, const char* group) {
  return {"model", std::move(help), model, {.group = group, .type = "MODEL", .required = true}};
}

Hyperparameter TruncateRow(bool* truncate, absl::string_view lines) {
  return {"truncate",
          absl::StrCat("cut ", lines, " that are longer than the model's context, instead of failing"),
          truncate,
          {.group = "Data"}};
}

Hyperparameter BatchRow(std::string help, int64_t* batch, const char* group) {
  return {"batch", std::move(help), batch, {.low = 1, .high = 4096, .group = group}};
}

Hyperparameter WeightsRow(std::optional<DType>* weights) {
  const auto get = [weights] { return weights->has_value() ? std::string(Name(**weights)) : ""; };
  const auto set = [weights](absl::string_view name) {
    ParseDType(name, &weights->emplace());
    return absl::OkStatus();
  };
  return {"weights",
          absl::StrCat("format in which weights are held: ", WeightFormatList(/*with_bytes=*/true),
                       " bytes each; fewer bytes are faster and less exact. Without this flag, the format that weft "
                       "quantize wrote, or f32"),
          Hyperparameter::Text{get, set},
          {.choices = WeightFormatNames(), .group = "Run"}};
}

Hyperparameter ThreadsRow(int64_t* threads) {
  return {"threads",
          "number of threads; 0: one for each core. Results do not depend on it",
          threads,
          {.low = 0, .high = 1024, .group = "Run"}};
}

Hyperparameter SpecialTokensRow(std::optional<bool>* special, const char* group) {
  return {"special-tokens",
          "read texts of special tokens, such as <|endoftext|> or [MASK], as these tokens; false: as ordinary text. "
          "Default: true, unless tokenizer_config.json has split_special_tokens",
          special,
          {.group = group}};
}

void AddFlags(CLI::App* app, const Hyperparameters& table, GivenFlags* given) {
  std::set<std::string> taken = NamesOf(*app, table);
  for (const Hyperparameter& parameter : table) {
    const auto store = [given, flag = parameter.flag](const std::string& text) { (*given)[flag] = text; };
    const std::string help = FlagHelp(parameter);
    const std::string name = FlagNames(parameter.flag, &taken);
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
    const std::string type = TypeName(parameter);
    if (found == given.end() || found->second != kStandardStream) continue;
    if (type == "MODEL" || absl::StrContains(type, "FOLDER")) {
      return InvalidArgument(parameter.flag, ": '-' is standard input or output, wanted ", type);
    }
  }
  WEFT_RETURN_IF_ERROR(SetFromTexts(given, table));
  for (const Hyperparameter& parameter : table) {
    if (!parameter.rules.required || given.contains(parameter.flag)) continue;
    return InvalidArgument("--", parameter.flag, "=", TypeName(parameter), " is missing");
  }
  return absl::OkStatus();
}

absl::Status CheckNotGiven(const GivenFlags& given, absl::Span<const char* const> flags, absl::string_view why) {
  for (const char* const flag : flags) {
    if (given.contains(flag)) return InvalidArgument("--", flag, why);
  }
  return absl::OkStatus();
}

std::string InputPath(const std::string& path) { return path == kStandardStream ? "/dev/stdin" : path; }

absl::Status WithFlag(const absl::Status& status, const CLI::App& app,
                      const std::map<std::string, std::string>& typed) {
  const absl::string_view message = status.message();
  const size_t end = message.find_first_of(": ");
  const absl::string_view word = message.substr(0, end);
  // An ordinary word may be the name of an option, too. One with '_' is a key: "top_p is 2, wanted ...".
  if (end == message.npos || (message[end] == ' ' && !absl::StrContains(word, '_'))) return status;
  const std::string name = WithHyphens(word);
  const std::string flag = "--" + name;
  if (app.get_option_no_throw(flag) == nullptr) return status;
  const auto found = typed.find(name);
  const bool other = found != typed.end() && found->second != flag;
  const std::string shown = other ? absl::StrCat(found->second, " (", flag, ")") : flag;
  return absl::Status(status.code(), absl::StrCat(shown, message.substr(end)));
}

absl::Status CheckNoExtras(const CLI::App& app) {
  std::vector<std::string> extras = app.remaining();
  std::erase(extras, "--");  // after it, arguments that begin with a hyphen are no flags
  if (extras.empty()) return absl::OkStatus();
  const std::string word = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  if (!absl::StartsWith(word, "-")) {
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
    return InvalidArgument(known.empty() ? "unexpected argument '" : "unknown command '", word, "'",
                           DidYouMean(word, known));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) known.push_back(option->get_lnames().front());
  }
  const absl::string_view name = absl::StripPrefix(absl::StripPrefix(word, "-"), "-");
  return InvalidArgument("unknown flag '", word, "'", Suggestion(name, known, NameStyle::kFlag));
}

}  // namespace weft
