// The tests of templates, such as `x is string`.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "weft/text/templates/jinja_run.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using Call = JinjaCall;

template <Value::Kind... kinds>
Value IsKind(Run&, const Value& x, const Call&) {
  return Value::Bool((x.is(kinds) || ...));
}

// Compares x with the argument. `less`, `equal`: the results for which the test holds.
template <bool less, bool equal>
Value IsOrdered(Run& run, const Value& x, const Call& call) {
  run.Charge(std::min(x.bytes, At(call, 0).bytes));
  const std::optional<bool> before = Less(x, At(call, 0));
  if (!before) return run.Fail("can't compare ", x.KindName(), " and ", At(call, 0).KindName());
  return Value::Bool(x == At(call, 0) ? equal : *before == less);
}
template <bool equal>
Value IsEqual(Run& run, const Value& x, const Call& call) {
  return Value::Bool(run.Equal(x, At(call, 0)) == equal);
}

template <int remainder>
Value IsDivisible(Run& run, const Value& x, const Call& call) {
  const int64_t divisor = call.arguments.empty() ? 2 : At(call, 0).is(Value::kInteger) ? At(call, 0).integer() : 0;
  if (!x.is(Value::kInteger) || divisor == 0) return run.Fail("wanted whole numbers, and no division by 0");
  return Value::Bool(std::abs(x.integer() % divisor) == remainder);
}

constexpr JinjaBuiltin kTests[] = {
    {"!=", "other", IsEqual<false>},
    {"<", "other", IsOrdered<true, false>},
    {"<=", "other", IsOrdered<true, true>},
    {"==", "other", IsEqual<true>},
    {">", "other", IsOrdered<false, false>},
    {">=", "other", IsOrdered<false, true>},
    {"boolean", "", IsKind<Value::kBool>},
    {"callable", "", IsKind<Value::kFunction>},
    {"defined", "", [](Run&, const Value& x, const Call&) { return Value::Bool(!x.is(Value::kUndefined)); }},
    {"divisibleby", "num", IsDivisible<0>},
    {"eq", "other", IsEqual<true>},
    {"equalto", "other", IsEqual<true>},
    {"even", "", IsDivisible<0>},
    {"false", "", [](Run&, const Value& x, const Call&) { return Value::Bool(x.is(Value::kBool) && !x.Truthy()); }},
    {"float", "", IsKind<Value::kFloat>},
    {"ge", "other", IsOrdered<false, true>},
    {"greaterthan", "other", IsOrdered<false, false>},
    {"gt", "other", IsOrdered<false, false>},
    {"in", "seq",
     [](Run& run, const Value& x, const Call& call) { return Value::Bool(Contains(run, At(call, 0), x)); }},
    {"integer", "", IsKind<Value::kInteger>},
    {"iterable", "", IsKind<Value::kString, Value::kList, Value::kTuple, Value::kDict, Value::kUndefined>},
    {"le", "other", IsOrdered<true, true>},
    {"lessthan", "other", IsOrdered<true, false>},
    {"lt", "other", IsOrdered<true, false>},
    {"mapping", "", IsKind<Value::kDict>},
    {"ne", "other", IsEqual<false>},
    {"none", "", IsKind<Value::kNone>},
    {"number", "", IsKind<Value::kBool, Value::kInteger, Value::kFloat>},
    {"odd", "", IsDivisible<1>},
    {"sequence", "", IsKind<Value::kString, Value::kList, Value::kTuple, Value::kDict, Value::kUndefined>},
    {"string", "", IsKind<Value::kString>},
    {"true", "", [](Run&, const Value& x, const Call&) { return Value::Bool(x.is(Value::kBool) && x.Truthy()); }},
    {"undefined", "", IsKind<Value::kUndefined>},
};

}  // namespace

const JinjaBuiltin* FindTest(absl::string_view name) { return FindIn(kTests, name); }

}  // namespace weft
