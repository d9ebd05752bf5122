// A JinjaValue is a value of a Jinja template. It has the meaning that Python gives to it: what is true, what is equal,
// and how it is printed. Values share their elements, which never change; only a namespace changes. Strings are UTF-8.
//
//   const JinjaValue list = JinjaValue::List({JinjaValue::Integer(1), JinjaValue::String("a")});
//   list.Truthy()     // true
//   list.Text()       // "[1, 'a']"
//
// A JinjaRun is one rendering of a template: its variables, its output, and bounds on its time and memory. The first
// error sticks to the run; everything later does nothing. Every operation on values is a function of a run and a call:
// the operators and the rows of one table, kBuiltins, of all filters, tests, methods and global functions.
//
//   JinjaRun run;
//   const JinjaValue upper = CallBuiltin(run, *FindBuiltin(kFilter, "upper"), {{JinjaValue::String("a")}});
//   run.status()      // OK
#ifndef WEFT_TEXT_TEMPLATES_JINJA_RUN_H_
#define WEFT_TEXT_TEMPLATES_JINJA_RUN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"

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
void Set(JinjaList* dict, const JinjaValue& key, const JinjaValue& value);

// How a value is written: as Python's repr does, or as its json.dumps does.
struct JinjaStyle {
  bool json = false, ascii = false;
  std::optional<size_t> indent = {};  // spaces of one level; without it, all is on one line
  std::string comma = ", ", colon = ": ";
};
// Appends `value` to `text`. Returns false if JSON has no such value.
bool Append(const JinjaValue& value, const JinjaStyle& style, size_t level, std::string* text);

// Returns `text` without leading or trailing characters: those of `characters`, or Python's white space if it is null.
absl::string_view PythonStrip(absl::string_view text, bool left, bool right, const std::string* characters = nullptr);

struct JinjaScope {
  JinjaScope* parent = nullptr;
  absl::flat_hash_map<std::string, JinjaValue> variables = {};
  bool kept = false;  // whether a macro refers to it
};

class JinjaRun {
 public:
  // Bytes that one rendering writes, copies and compares, with estimates for the work of elements and calls: about a
  // second, and thousands of pages of text.
  static constexpr size_t kMaxWork = 64'000'000;
  enum Flow { kNext, kContinue, kBreak };  // to the next statement, to the next round of the loop, out of the loop

  // Sets the error unless there is one.
  template <class... T>
  JinjaValue Fail(const T&... message) {
    if (status_.ok()) status_ = InvalidArgument("line ", line, ": ", message...);
    return {};
  }
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Counts work. Returns false, with an error, if there was too much.
  bool Charge(size_t work) {
    if (work > kMaxWork || (work_ += work) > kMaxWork) Fail("the template does too much work, or writes too much text");
    return ok();
  }
  bool ChargeItems(size_t items) { return Charge(items * JinjaValue::kItemBytes); }
  // Return values and texts, and charge for them.
  JinjaValue String(absl::string_view text) {
    return Charge(text.size() + 1) ? JinjaValue::String(text) : JinjaValue();
  }
  JinjaValue List(JinjaList items, JinjaValue::Kind kind = JinjaValue::kList) {
    return ChargeItems(items.size() + 1) ? Checked(JinjaValue::List(std::move(items), kind)) : JinjaValue();
  }
  std::string Text(const JinjaValue& value) { return Charge(value.bytes) ? value.Text() : ""; }
  bool Equal(const JinjaValue& a, const JinjaValue& b) { return Charge(std::min(a.bytes, b.bytes)) && a == b; }

  // Returns the variable or the global function `name`, or an undefined value.
  JinjaValue Lookup(const std::string& name) const;
  // Makes a new scope the current one.
  void Enter(JinjaScope* parent) { scope = &scopes_.emplace_back(JinjaScope{parent}); }
  // Makes `outer` the current scope again. The last scope stays if a macro refers to it or to a scope inside.
  void Leave(JinjaScope* outer) {
    if (&scopes_.back() == scope && !scope->kept) scopes_.pop_back();
    scope = outer;
  }
  JinjaValue Namespace(JinjaList items) {
    return {JinjaValue::kNamespace, &namespaces_.emplace_back(std::move(items))};
  }
  // Fails if calls inside calls fill too much of the stack.
  bool CheckStack();

  int line = 1;  // of the tag that runs
  JinjaScope* scope = nullptr;
  std::string out;
  Flow flow = kNext;

 private:
  // Returns `value` unless it is nested too deeply or too large.
  JinjaValue Checked(JinjaValue value);

  absl::Status status_;
  size_t work_ = 0;
  const char* const stack_ = static_cast<const char*>(__builtin_frame_address(0));
  std::deque<JinjaScope> scopes_;
  std::deque<JinjaList> namespaces_;
};

using JinjaOperation = JinjaValue(JinjaRun& run, const JinjaCall& call);

enum JinjaUse { kFilter = 1, kTest = 2, kStringMethod = 4, kDictMethod = 8, kGlobal = 16 };
struct JinjaBuiltin {
  absl::string_view name;
  int uses;                      // a sum of JinjaUse
  absl::string_view parameters;  // of Bind
  JinjaOperation* function;      // the first argument of a filter, test or method is the value before it
};
// Returns null if there is none.
const JinjaBuiltin* FindBuiltin(JinjaUse use, absl::string_view name);
JinjaValue CallBuiltin(JinjaRun& run, const JinjaBuiltin& builtin, JinjaCall call);
// Gives each of the names in `parameters` an argument: those of `call`, in order, then the named ones. An argument that
// was not given is_missing(), which is an error unless its parameter ends with "?". "*" leaves the call as it is.
void Bind(JinjaRun& run, absl::string_view function, absl::string_view parameters, JinjaCall* call);

// A binary operator. Higher levels bind more tightly. "or", "and" and "not" have levels of their own.
struct JinjaOperator {
  absl::string_view symbol;
  int level;
  JinjaOperation* compute;  // null if it is not supported
};
inline constexpr int kOrLevel = 1, kNotLevel = 3, kCompareLevel = 4, kMaxLevel = 7;
// Returns null if `symbol` is no operator of `level`.
const JinjaOperator* FindOperator(int level, absl::string_view symbol);

// Operations on the arguments a, b, c, ... of a call.
JinjaOperation JinjaNegate;     // -a
JinjaOperation JinjaNot;        // not a
JinjaOperation JinjaMakeList;   // [a, b, c]
JinjaOperation JinjaMakeTuple;  // (a, b, c)
JinjaOperation JinjaMakeDict;   // {a: b, c: d}
JinjaOperation JinjaAttribute;  // a.b: a method, an element or an attribute
JinjaOperation JinjaItem;       // a[b], undefined if there is none
JinjaOperation JinjaSlice;      // a[b:c:d], where none stands for no limit
JinjaOperation JinjaCallValue;  // a(b, c)
// Returns the elements of `x`, as a for loop sees them: the keys of a dict and the characters of a string.
JinjaList Elements(JinjaRun& run, const JinjaValue& x);
// Returns the texts of `items` with `separator` between them.
JinjaValue Join(JinjaRun& run, const JinjaList& items, absl::string_view separator);
// Returns x, or `otherwise` if x is missing; fails if x is no whole number.
int64_t WholeNumber(JinjaRun& run, const JinjaValue& x, int64_t otherwise);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_RUN_H_
