// A JinjaRun is one rendering of a template: its variables, its output, and bounds on its time and memory. The first
// error sticks to the run; everything later does nothing. The filters, tests, methods and global functions of templates
// are tables of jinja_functions.cc.
//
//   JinjaRun run;
//   const JinjaValue upper = CallBuiltin(run, *FindFilter("upper"), JinjaValue::String("a"), {});
//   run.status()                                                   // OK
#ifndef WEFT_TEXT_TEMPLATES_JINJA_RUN_H_
#define WEFT_TEXT_TEMPLATES_JINJA_RUN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/text/templates/jinja_value.h"

namespace weft {

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
  static constexpr int kMaxDepth = 64;               // of lists and dicts, whose destruction recurses
  static constexpr size_t kMaxStackBytes = 500'000;  // of calls inside calls

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
  bool ChargeItems(size_t items) { return Charge(items * kJinjaItemBytes); }
  // Returns `value` unless it is nested too deeply or too large.
  JinjaValue Checked(JinjaValue value) {
    if (value.depth > kMaxDepth) return Fail("lists are nested more than ", kMaxDepth, " levels deep");
    return value.bytes <= kMaxWork || !Charge(value.bytes) ? value : JinjaValue();
  }
  // Return value.Text() and a == b, and charge for them.
  std::string Text(const JinjaValue& value) { return Charge(value.bytes) ? value.Text() : ""; }
  bool Equal(const JinjaValue& a, const JinjaValue& b) { return Charge(std::min(a.bytes, b.bytes)) && a == b; }

  JinjaValue Call(const JinjaValue& function, const JinjaCall& call);
  JinjaValue Lookup(const std::string& name) const;
  // Makes a new scope the current one.
  void Enter(JinjaScope* parent) { scope = &scopes_.emplace_back(JinjaScope{parent}); }
  // Makes `outer` the current scope again. The last scope stays if a macro refers to it or to a scope inside.
  void Leave(JinjaScope* outer) {
    if (&scopes_.back() == scope && !scope->kept) scopes_.pop_back();
    scope = outer;
  }
  JinjaValue NewNamespace(JinjaDict attributes) {
    return {JinjaValue::kNamespace, &namespaces_.emplace_back(std::move(attributes))};
  }

  int line = 1;  // of the tag that runs
  JinjaScope* scope = nullptr;
  JinjaValue caller;    // the function `caller` of the macro that is called next
  JinjaValue captured;  // the text of the block of {% set %} that ended last
  std::string out;

 private:
  absl::Status status_;
  size_t work_ = 0;
  const char* const stack_ = static_cast<const char*>(__builtin_frame_address(0));
  std::deque<JinjaScope> scopes_;
  std::deque<JinjaDict> namespaces_;
};

// A filter, a test or a method. `parameters` are their names, in order; "*" takes the arguments as they are.
struct JinjaBuiltin {
  absl::string_view name, parameters;
  // `x`: the value before | or the dot. `call` has a value for each parameter: an undefined one if it was not given.
  JinjaValue (*function)(JinjaRun& run, const JinjaValue& x, const JinjaCall& call);
};
// Return null if there is none.
const JinjaBuiltin* FindIn(absl::Span<const JinjaBuiltin> table, absl::string_view name);
const JinjaBuiltin* FindFilter(absl::string_view name);
const JinjaBuiltin* FindTest(absl::string_view name);
// Returns the argument of parameter `i`.
inline const JinjaValue& At(const JinjaCall& call, size_t i) { return call.arguments[i]; }
JinjaValue CallBuiltin(JinjaRun& run, const JinjaBuiltin& builtin, const JinjaValue& x, const JinjaCall& call);

// Returns the function `name` that every template has, or an undefined value.
JinjaValue GlobalFunction(const std::string& name);
// Returns x.name: a method, or an element of a dict, or an attribute of a namespace. Undefined if there is none.
JinjaValue Attribute(JinjaRun& run, const JinjaValue& x, const std::string& name);
// Returns x[key].
JinjaValue Item(JinjaRun& run, const JinjaValue& x, const JinjaValue& key);
// Returns the elements of `x`, as a for loop sees them: the keys of a dict and the characters of a string.
JinjaList Elements(JinjaRun& run, const JinjaValue& x);
// Computes a `op` b: one of + - * / %, or _ for //.
JinjaValue JinjaCompute(JinjaRun& run, char op, const JinjaValue& a, const JinjaValue& b);
// Returns a `op` b: one of == != < <= > >=, "in" and "not in".
bool JinjaCompare(JinjaRun& run, const std::string& op, const JinjaValue& a, const JinjaValue& b);
// Returns x[a:b:c], where a limit that is not written is none.
JinjaValue JinjaSlice(JinjaRun& run, const JinjaValue& x, const JinjaValue (&limits)[3]);
// Returns whether `x` in `container`.
bool Contains(JinjaRun& run, const JinjaValue& container, const JinjaValue& x);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_JINJA_RUN_H_
