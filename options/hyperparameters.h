// Hyperparameters are one table of options, which a command line, a configuration file and a run's config.json share.
//
//   Hyperparameters table = {{"batch", "windows in a batch", &options.batch, {.low = 1}}};
//   WEFT_RETURN_IF_ERROR(SetFromJson(json, table));     // {"batch": 12}
//   WEFT_RETURN_IF_ERROR(SetFromText("12", table[0]));  // from a command line
//
// The key of an option in JSON is its flag with each '-' replaced by '_'. The names of options/option_names.h are
// accepted beside it: {"batch_size": 12}.
#ifndef WEFT_OPTIONS_HYPERPARAMETERS_H_
#define WEFT_OPTIONS_HYPERPARAMETERS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct Hyperparameter {
  struct Rules {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    std::vector<std::string> choices = {};  // allowed texts; empty: any text
    bool may_change = false;                // whether a resumed run may change it
    bool may_be_empty = false;              // whether SetFromText accepts an empty text
    bool is_path = false;                   // a path, which a run stores as an absolute path
    bool is_path_list = false;              // a path that exists, or paths separated by commas
    std::vector<std::string> words = {};    // texts of a path that name no file: "./NAME" names a file called NAME
    bool is_bytes = false;                  // a number of bytes; SetFromText also reads K, M and G: thousands and so on
    bool zero_keeps = false;                // whether setting the value to 0 leaves it unchanged
    // Returns what holds while an optional value is not set, or null for nothing. If there is no function, null holds.
    std::function<nlohmann::ordered_json()> unset = nullptr;

    // The conditions under which the option has an effect, or "": conditions on other options of its table, separated
    // by commas. A condition is "lora-rank", which holds if its value is not none, false or 0 (nor 1, if 1 is the
    // minimum); "schedule=wsd|plateau", which holds if the value, or an element of the list, is one of these; "no
    // init", which holds if it has no value; or several of these with " or " between them.
    std::string needs = "";

    // These are for the help of a command.
    std::string group = "";  // the heading above the option, such as "Model"
    std::string type = "";   // the kind of a text, such as "FOLDER"; if empty, the other rules give the type

    bool required = false;  // whether a value must be given: SetFromFlags and TrainingJob::Check fail without one
  };

  // A value with its own form of text, such as the name of an enumeration's value. JSON has it as a text, too.
  struct Text {
    std::function<std::string()> get;
    std::function<absl::Status(absl::string_view)> set;
  };

  std::string flag;  // "learning-rate"
  std::string help;
  std::variant<int64_t*, uint64_t*, double*, bool*, std::string*, std::optional<int64_t>*, std::optional<double>*,
               std::optional<bool>*, Text>
      value;
  Rules rules = {};

  std::string key() const;   // "learning_rate"
  std::string text() const;  // the value, as SetFromText reads it; "" for null
  nlohmann::ordered_json json() const;
  bool is_switch() const;  // whether the value is true or false
  bool is_text() const;    // whether JSON has the value as a text
};
using Hyperparameters = std::vector<Hyperparameter>;

// Names of the values of an enumeration, with hyphens between words.
template <class E>
using ValueNames = absl::Span<const std::pair<const char*, E>>;
// Returns the first name of `value`, or "" if it has none.
template <class E>
std::string NameOf(std::type_identity_t<ValueNames<E>> names, E value) {
  for (const auto& [name, each] : names) {
    if (each == value) return name;
  }
  return "";
}
// Returns a row for a value of an enumeration. A text may have '_' in place of '-'. `names` must outlive the row.
template <class E>
Hyperparameter ChoiceRow(std::string flag, std::string help, ValueNames<E> names, E* value,
                         Hyperparameter::Rules rules = {}) {
  for (const auto& [name, unused] : names) rules.choices.push_back(name);
  const auto get = [names, value] { return NameOf(names, *value); };
  const auto set = [names, value](absl::string_view text) {
    for (const auto& [name, each] : names) {
      if (text == name) *value = each;
    }
    return absl::OkStatus();
  };
  return {std::move(flag), std::move(help), Hyperparameter::Text{get, set}, std::move(rules)};
}

// Returns `rows`. Those without a group get the group `group`.
//
//   Append(InGroup("Model", ModelHyperparameters(&options)), &table);
Hyperparameters InGroup(absl::string_view group, Hyperparameters rows);
void Append(const Hyperparameters& rows, Hyperparameters* table);

// Sets the value of `parameter` from `text`. If `text` breaks the rules, returns InvalidArgument, such as "batch:
// 'many' is not a whole number below 2^63".
absl::Status SetFromText(absl::string_view text, const Hyperparameter& parameter);
// Returns InvalidArgument if one of `flags`, options of `table` that a user has set, has no effect by Rules::needs:
// "lora-alpha: it needs --lora-rank" or "depth: it has no effect with --memory". A switch that is off needs nothing.
absl::Status CheckNeeds(const std::set<std::string>& flags, const Hyperparameters& table);
// Sets the options of `table` that `given`, texts by flag, names. Then checks their needs.
absl::Status SetFromTexts(const std::map<std::string, std::string>& given, const Hyperparameters& table);
// Sets the options whose keys `json`, an object, contains, one after the other. Ignores keys in `annotations`. Returns
// InvalidArgument at the first wrong value or unknown key, with the nearest known key, and if two names of an option
// have different values. Earlier options stay set.
absl::Status SetFromJson(const nlohmann::ordered_json& json, const Hyperparameters& table,
                         const std::vector<std::string>& annotations = {});
// Returns an object with the values of all options, except those that are null.
nlohmann::ordered_json ToJson(const Hyperparameters& table);

}  // namespace weft

#endif  // WEFT_OPTIONS_HYPERPARAMETERS_H_
