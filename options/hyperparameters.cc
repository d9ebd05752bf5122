// A JSON value is printed as a text and then read like one, so both pass the checks of Hyperparameter::Rules. Only
// may_be_empty and the suffixes of is_bytes concern texts alone.
#include "weft/options/hyperparameters.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/decimal.h"
#include "weft/base/status.h"
#include "weft/options/option_names.h"

namespace weft {
namespace {

absl::Status CheckRange(double value, const Hyperparameter::Rules& rules, absl::string_view printed) {
  if (value >= rules.low && value <= rules.high) return absl::OkStatus();
  if (std::isinf(rules.high)) return InvalidArgument(printed, " is less than ", rules.low);
  return InvalidArgument(absl::StrFormat("%s is not in %.10g .. %.10g", printed, rules.low, rules.high));
}

template <class T>
absl::Status SetInteger(absl::string_view text, T* value, const Hyperparameter::Rules& rules) {
  T parsed;
  if (!absl::SimpleAtoi(text, &parsed)) {
    constexpr double kExact = 1e15;  // below, a double holds each whole number
    double number;
    if (text.find_first_of(".eE") != text.npos && ParseDecimal(text, &number) && number == std::floor(number) &&
        std::abs(number) < kExact) {
      return InvalidArgument(absl::StrFormat("'%s' is not written as a whole number; write %.0f", text, number));
    }
    return InvalidArgument("'", text, "' is not a whole number ",
                           std::is_unsigned_v<T> ? "from 0 to 2^64 - 1" : "below 2^63");
  }
  if (parsed == 0 && rules.zero_keeps) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(CheckRange(static_cast<double>(parsed), rules, text));
  *value = parsed;
  return absl::OkStatus();
}

// Checks that `text` is one of the choices, if there are any.
absl::Status CheckChoice(absl::string_view text, const Hyperparameter::Rules& rules) {
  if (rules.choices.empty() || absl::c_linear_search(rules.choices, text)) return absl::OkStatus();
  return InvalidArgument("'", text, "' is not one of ", absl::StrJoin(rules.choices, ", "),
                         DidYouMean(text, rules.choices));
}

// Reads a number of bytes: "500M" is 500 million.
absl::Status SetBytes(absl::string_view text, const Hyperparameter::Rules& rules, uint64_t* value) {
  constexpr absl::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  uint64_t scale = 1, count = 0;
  for (size_t i = 0; unit != kUnits.npos && i <= unit; ++i) scale *= 1000;
  const absl::string_view digits = text.substr(0, text.size() - (scale > 1 ? 1 : 0));
  if (!absl::SimpleAtoi(digits, &count) || count > std::numeric_limits<uint64_t>::max() / scale) {
    return InvalidArgument("'", text, "' is not a number of bytes, like 500000000, 500M or 2G");
  }
  count *= scale;
  WEFT_RETURN_IF_ERROR(CheckRange(static_cast<double>(count), rules, text));
  *value = count;
  return absl::OkStatus();
}

struct Set {
  absl::string_view text;
  const Hyperparameter::Rules& rules;

  absl::Status operator()(int64_t* value) const { return SetInteger(text, value, rules); }
  absl::Status operator()(uint64_t* value) const {
    return rules.is_bytes ? SetBytes(text, rules, value) : SetInteger(text, value, rules);
  }
  absl::Status operator()(double* value) const {
    double parsed;
    if (!ParseDecimal(text, &parsed)) return InvalidArgument("'", text, "' is not a number");
    WEFT_RETURN_IF_ERROR(CheckRange(parsed, rules, text));
    *value = parsed;
    return absl::OkStatus();
  }
  absl::Status operator()(bool* value) const {
    if (text != "true" && text != "false") {
      return InvalidArgument("'", text, "' is not true or false");
    }
    *value = text == "true";
    return absl::OkStatus();
  }
  absl::Status operator()(std::string* value) const {
    WEFT_RETURN_IF_ERROR(CheckChoice(text, rules));
    *value = std::string(text);
    return absl::OkStatus();
  }
  absl::Status operator()(const Hyperparameter::Text& value) const {
    if (rules.choices.empty() || absl::c_linear_search(rules.choices, text)) return value.set(text);
    const std::string hyphens = absl::StrReplaceAll(text, {{"_", "-"}});
    WEFT_RETURN_IF_ERROR(CheckChoice(hyphens, rules));
    return value.set(hyphens);
  }
  template <class T>
  absl::Status operator()(std::optional<T>* value) const {
    T parsed = {};
    WEFT_RETURN_IF_ERROR((*this)(&parsed));
    *value = parsed;
    return absl::OkStatus();
  }
};

struct Get {
  const Hyperparameter::Rules& rules;

  template <class T>
  nlohmann::ordered_json operator()(const T* value) const {
    return *value;
  }
  template <class T>
  nlohmann::ordered_json operator()(const std::optional<T>* value) const {
    if (value->has_value()) return **value;
    return rules.unset ? rules.unset() : nullptr;
  }
  nlohmann::ordered_json operator()(const Hyperparameter::Text& value) const { return value.get(); }
};

// Reports whether an option is on. Empty texts, none, false and 0 are off, and so is 1 if it is the minimum.
bool IsSet(const Hyperparameter& row) {
  const std::string text = row.text();
  double number = 1;
  const bool is_number = !row.is_text() && ParseDecimal(text, &number);
  if (is_number) return number != 0 && !(number == 1 && row.rules.low == 1);
  return !text.empty() && text != "none" && text != "false";
}

// A condition of Rules::needs without " or ", and the option that it is about.
struct Condition {
  bool negated = false;
  std::string flag;
  std::vector<std::string> values;  // empty: any that IsSet accepts

  explicit Condition(absl::string_view text) : negated(absl::ConsumePrefix(&text, "no ")) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    flag = parts.first;
    values = absl::StrSplit(parts.second, '|', absl::SkipEmpty());
  }
  bool Holds(const Hyperparameters& table) const {
    const auto row = absl::c_find_if(table, [&](const Hyperparameter& each) { return each.flag == flag; });
    WEFT_CHECK(row != table.end());
    if (values.empty()) return IsSet(*row) != negated;
    const std::vector<std::string> words = absl::StrSplit(row->text(), absl::ByAnyChar(",:"));
    return absl::c_any_of(words, [&](const std::string& word) { return absl::c_linear_search(values, word); });
  }
  std::string ToText() const {
    return absl::StrCat(negated ? "no --" : "--", flag, values.empty() ? "" : "=", absl::StrJoin(values, " or "));
  }
};

}  // namespace

std::string Hyperparameter::key() const { return absl::StrReplaceAll(flag, {{"-", "_"}}); }

nlohmann::ordered_json Hyperparameter::json() const { return std::visit(Get{rules}, value); }

std::string Hyperparameter::text() const {
  const nlohmann::ordered_json printed = json();
  if (printed.is_null()) return "";
  return printed.is_string() ? printed.get<std::string>() : printed.dump();
}

bool Hyperparameter::is_switch() const {
  return std::holds_alternative<bool*>(value) || std::holds_alternative<std::optional<bool>*>(value);
}

bool Hyperparameter::is_text() const {
  return std::holds_alternative<std::string*>(value) || std::holds_alternative<Text>(value);
}

Hyperparameters InGroup(absl::string_view group, Hyperparameters rows) {
  for (Hyperparameter& row : rows) {
    if (row.rules.group.empty()) row.rules.group = std::string(group);
  }
  return rows;
}

void Append(const Hyperparameters& rows, Hyperparameters* table) {
  table->insert(table->end(), rows.begin(), rows.end());
}

absl::Status SetFromText(absl::string_view text, const Hyperparameter& parameter) {
  if (text.empty() && parameter.is_text() && !parameter.rules.may_be_empty) {
    return InvalidArgument(parameter.flag, ": it is empty");
  }
  return Annotate(std::visit(Set{text, parameter.rules}, parameter.value), parameter.flag);
}

absl::Status CheckNeeds(const std::set<std::string>& flags, const Hyperparameters& table) {
  for (const Hyperparameter& row : table) {
    if (!flags.contains(row.flag) || (row.is_switch() && !IsSet(row))) continue;
    for (const absl::string_view need : absl::StrSplit(row.rules.needs, ", ", absl::SkipEmpty())) {
      std::vector<std::string> wanted;
      bool holds = false;
      for (const absl::string_view text : absl::StrSplit(need, " or ")) {
        const Condition condition(text);
        holds = holds || condition.Holds(table);
        wanted.push_back(condition.ToText());
      }
      if (holds) continue;
      const std::string all = absl::StrJoin(wanted, " or ");
      const bool excluded = absl::StartsWith(need, "no ") && wanted.size() == 1;
      return InvalidArgument(row.flag, excluded ? ": it has no effect with " : ": it needs ",
                             absl::StripPrefix(all, excluded ? "no " : ""));
    }
  }
  return absl::OkStatus();
}

absl::Status SetFromTexts(const std::map<std::string, std::string>& given, const Hyperparameters& table) {
  std::set<std::string> flags;
  for (const Hyperparameter& row : table) {
    const auto found = given.find(row.flag);
    if (found == given.end()) continue;
    WEFT_RETURN_IF_ERROR(SetFromText(found->second, row));
    flags.insert(row.flag);
  }
  return CheckNeeds(flags, table);
}

absl::Status SetFromJson(const nlohmann::ordered_json& json, const Hyperparameters& table,
                         const std::vector<std::string>& annotations) {
  if (!json.is_object()) return InvalidArgument("not a JSON object");
  std::vector<std::string> flags;
  for (const Hyperparameter& parameter : table) flags.push_back(parameter.flag);
  std::map<std::string, std::string> given;  // the key that sets each option
  for (const auto& [key, value] : json.items()) {
    if (absl::c_linear_search(annotations, key)) continue;
    const std::string flag = absl::StrContains(key, '-') ? "" : FindOption(key, flags);
    if (flag.empty()) {
      return InvalidArgument("unknown key '", key, "'", Suggestion(key, flags, NameStyle::kKey));
    }
    const Hyperparameter& parameter = table[static_cast<size_t>(absl::c_find(flags, flag) - flags.begin())];
    const auto [other, first] = given.try_emplace(flag, key);
    if (!first && json[other->second] != value) {
      return InvalidArgument("keys '", other->second, "' and '", key, "' are the same option with different values, ",
                             json[other->second].dump(), " and ", value.dump());
    }
    const std::string name =
        absl::StrCat("key '", key, "'", key == parameter.key() ? "" : " (" + parameter.key() + ")");
    const bool wants_text = parameter.is_text();
    const bool may_be_number = std::holds_alternative<Hyperparameter::Text>(parameter.value) && value.is_number();
    if ((wants_text != value.is_string() && !may_be_number) || value.is_structured() || value.is_null()) {
      return InvalidArgument(name, ": ", value.dump(), wants_text ? " is not a text" : " is not of the right type");
    }
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    WEFT_RETURN_IF_ERROR(Annotate(std::visit(Set{text, parameter.rules}, parameter.value), name));
  }
  return absl::OkStatus();
}

nlohmann::ordered_json ToJson(const Hyperparameters& table) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Hyperparameter& parameter : table) {
    if (nlohmann::ordered_json value = parameter.json(); !value.is_null()) json[parameter.key()] = std::move(value);
  }
  return json;
}

}  // namespace weft
