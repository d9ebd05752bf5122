// A JinjaValue is a value of a Jinja template. It has the meaning that Python gives to it: what is true, what is equal,
// and how it is printed.
//
//   const JinjaValue list = JinjaValue::List({JinjaValue::Integer(1), JinjaValue::String("a")});
//   list.Truthy()     // true
//   list.Text()       // "[1, 'a']"
//
// Values share their elements, which never change; only a namespace changes. Strings are UTF-8.
#ifndef WEFT_TEXT_TEMPLATES_JINJA_VALUE_H_
#define WEFT_TEXT_TEMPLATES_JINJA_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

class JinjaRun;
struct JinjaCall;
struct JinjaValue;
using JinjaList = std::vector<JinjaValue>;  // for a dict: a key, its value, the next key, and so on
using JinjaFunction = std::function<JinjaValue(JinjaRun&, const JinjaCall&)>;

struct JinjaValue {
  // The text of an undefined value is the name that has no value.
  enum Kind { kUndefined, kNone, kBool, kInteger, kFloat, kString, kList, kTuple, kDict, kNamespace, kFunction };
  static constexpr size_t kItemBytes = 32;  // estimated size of an element of a list or dict

  static JinjaValue Undefined(std::string name) { return {kUndefined, std::move(name)}; }
  static JinjaValue None() { return {kNone}; }
  static JinjaValue Bool(bool value) { return {kBool, int64_t{value}}; }
  static JinjaValue Integer(int64_t value) { return {kInteger, value}; }
  static JinjaValue String(absl::string_view value) { return {kString, std::string(value), 0, value.size() + 1}; }
  static JinjaValue List(JinjaList items, Kind kind = kList);  // or a tuple or a dict
  static JinjaValue Function(JinjaFunction function) {
    return {kFunction, std::make_shared<const JinjaFunction>(std::move(function))};
  }
  // Returns `json`, which must be UTF-8.
  static JinjaValue FromJson(const nlohmann::ordered_json& json);

  bool is(Kind other) const { return kind == other; }
  bool is_list() const { return kind == kList || kind == kTuple; }
  bool is_container() const { return is_list() || kind == kDict; }
  bool is_whole() const { return kind == kBool || kind == kInteger; }
  bool is_number() const { return is_whole() || kind == kFloat; }
  bool is_missing() const { return kind == kUndefined && text().empty(); }  // an argument that was not given
  const std::string& text() const { return std::get<std::string>(data); }
  int64_t integer() const { return std::get<int64_t>(data); }  // of a bool, too
  double number() const { return kind == kFloat ? std::get<double>(data) : static_cast<double>(integer()); }
  const JinjaList& list() const { return *std::get<std::shared_ptr<const JinjaList>>(data); }  // of a dict, too
  JinjaList* attributes() const { return std::get<JinjaList*>(data); }                         // of a namespace
  const JinjaFunction& function() const { return *std::get<std::shared_ptr<const JinjaFunction>>(data); }

  bool Truthy() const;
  std::string Text() const;      // what Python's str returns, "" for an undefined value
  std::string KindName() const;  // for errors, such as "a list"

  Kind kind = kUndefined;
  std::variant<std::string, int64_t, double, std::shared_ptr<const JinjaList>, JinjaList*,
               std::shared_ptr<const JinjaFunction>>
      data = {};
  int depth = 0;     // of nested lists and dicts; 0: it is neither
  size_t bytes = 1;  // estimated size of a text, or of a list or dict with all that it has, each time it has it
};

// The arguments of a call.
struct JinjaCall {
  JinjaList arguments = {};
  std::vector<std::pair<std::string, JinjaValue>> named = {};

  const JinjaValue& operator[](size_t i) const { return arguments[i]; }
};

bool operator==(const JinjaValue& a, const JinjaValue& b);
// Returns whether a < b, or nothing if Python can't order the two.
std::optional<bool> Less(const JinjaValue& a, const JinjaValue& b);
// Returns the value of `key` in a dict, or null.
const JinjaValue* Find(const JinjaList& dict, const JinjaValue& key);
// Sets the value of `key`.
void Set(JinjaList* dict, const JinjaValue& key, const JinjaValue& value);

// How a value is written: as Python's repr does, or as its json.dumps does.
struct JinjaStyle {
  bool json = false, ascii = false;
  std::optional<size_t> indent = {};  // spaces of one level; without it, all is on one line
  std::string comma = ", ", colon = ": ";
};
// Appends `value` to `text`. Returns false if JSON has no such value.
bool Append(const JinjaValue& value, const JinjaStyle& style, size_t level, std::string* text);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_VALUE_H_
