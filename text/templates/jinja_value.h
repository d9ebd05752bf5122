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
struct JinjaValue;
using JinjaList = std::vector<JinjaValue>;
using JinjaDict = std::vector<std::pair<JinjaValue, JinjaValue>>;  // in the order of insertion

inline constexpr size_t kJinjaItemBytes = 32;  // estimated size of an element

struct JinjaCall;
using JinjaFunction = std::function<JinjaValue(JinjaRun&, const JinjaCall&)>;

struct JinjaValue {
  enum Kind : uint8_t {
    kUndefined,  // its text is the name that has no value
    kNone,
    kBool,
    kInteger,
    kFloat,
    kString,
    kList,
    kTuple,
    kDict,
    kNamespace,
    kFunction
  };

  static JinjaValue Undefined(std::string name) { return {kUndefined, std::move(name)}; }
  static JinjaValue None() { return {kNone}; }
  static JinjaValue Bool(bool value) { return {kBool, static_cast<int64_t>(value)}; }
  static JinjaValue Integer(int64_t value) { return {kInteger, value}; }
  static JinjaValue Float(double value) { return {kFloat, value}; }
  static JinjaValue String(absl::string_view value) { return {kString, std::string(value), 0, value.size() + 1}; }
  static JinjaValue List(JinjaList items, Kind kind = kList);
  static JinjaValue Dict(JinjaDict items);
  static JinjaValue Function(JinjaFunction function) {
    return {kFunction, std::make_shared<const JinjaFunction>(std::move(function))};
  }
  // Returns `json`, which must be UTF-8.
  static JinjaValue FromJson(const nlohmann::ordered_json& json);

  bool is(Kind other) const { return kind == other; }
  bool is_list() const { return kind == kList || kind == kTuple; }
  bool is_number() const { return kind == kBool || kind == kInteger || kind == kFloat; }
  const std::string& text() const { return std::get<std::string>(data); }
  int64_t integer() const { return std::get<int64_t>(data); }  // of a bool, too
  double number() const { return kind == kFloat ? std::get<double>(data) : static_cast<double>(integer()); }
  const JinjaList& list() const { return *std::get<std::shared_ptr<const JinjaList>>(data); }
  const JinjaDict& dict() const { return *std::get<std::shared_ptr<const JinjaDict>>(data); }
  JinjaDict* attributes() const { return std::get<JinjaDict*>(data); }  // of a namespace
  const JinjaFunction& function() const { return *std::get<std::shared_ptr<const JinjaFunction>>(data); }

  bool Truthy() const;
  // Returns what Python's str and repr return. An undefined value is "".
  std::string Text() const;
  std::string Repr() const;
  const char* KindName() const;

  Kind kind = kUndefined;
  std::variant<std::string, int64_t, double, std::shared_ptr<const JinjaList>, std::shared_ptr<const JinjaDict>,
               JinjaDict*, std::shared_ptr<const JinjaFunction>>
      data = {};
  int depth = 0;     // of nested lists and dicts; 0: it is neither
  size_t bytes = 1;  // estimated size of a text, or of a list or dict with all that it has, each time it has it
};

// The arguments of a call.
struct JinjaCall {
  JinjaList arguments = {};
  std::vector<std::pair<std::string, JinjaValue>> named = {};
};

bool operator==(const JinjaValue& a, const JinjaValue& b);
// Returns whether a < b, or nothing if Python can't order the two.
std::optional<bool> Less(const JinjaValue& a, const JinjaValue& b);
// Returns the value of `key`, or null.
const JinjaValue* Find(const JinjaDict& dict, const JinjaValue& key);

// How Python's json.dumps writes a value.
struct JsonStyle {
  bool ascii = false, sorted = false;
  std::optional<std::string> indent = {};  // of one level; without it, all is on one line
  std::string comma = ", ", colon = ": ";
};
// Appends `value`. Returns false if JSON has no such value.
bool AppendJson(const JinjaValue& value, const JsonStyle& style, int level, std::string* json);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_VALUE_H_
