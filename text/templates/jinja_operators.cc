// The operations of expressions, with the meaning that Python gives them. Whole numbers have 64 bits. As in the
// immutable sandbox of Jinja that transformers uses, no list and no dict can be changed.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/text/templates/jinja_run.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using Args = const JinjaCall&;
using View = absl::string_view;

// Computes + - * % of whole numbers, + of two texts or two lists, and * of a text and a number.
template <char op>
Value Compute(Run& run, Args a) {
  if (a[0].is_whole() && a[1].is_whole()) {
    const absl::int128 i = a[0].integer(), j = a[1].integer();
    if (op == '%' && j == 0) return run.Fail("division by zero");
    const absl::int128 result = op == '+' ? i + j : op == '-' ? i - j : op == '*' ? i * j : (i % j + j) % j;
    const auto integer = static_cast<int64_t>(result);
    return integer == result ? Value::Integer(integer) : run.Fail("an int of more than 64 bits is not supported");
  }
  const bool texts = a[0].is(Value::kString) && a[1].is(Value::kString);
  if (op == '+' && texts) return run.String(absl::StrCat(a[0].text(), a[1].text()));
  if (op == '+' && a[0].is_list() && a[0].kind == a[1].kind) {
    JinjaList all = Elements(run, a[0]);
    absl::c_move(Elements(run, a[1]), std::back_inserter(all));
    return run.List(std::move(all), a[0].kind);
  }
  if (op == '*' && a[0].is(Value::kString) && a[1].is_whole()) {
    const auto times = static_cast<size_t>(std::clamp<int64_t>(a[1].integer(), 0, Run::kMaxWork));
    if (!run.Charge(times * a[0].bytes)) return {};
    std::string text;
    for (size_t i = 0; i < times; ++i) text += a[0].text();
    return Value::String(text);
  }
  return run.Fail("can't compute ", a[0].KindName(), " ", std::string(1, op), " ", a[1].KindName());
}

template <bool equal>
Value IsEqual(Run& run, Args a) {
  return Value::Bool(run.Equal(a[0], a[1]) == equal);
}

// Returns x < y, or its opposite, where x is a[first] and y the other one.
template <int first, bool opposite>
Value IsLess(Run& run, Args a) {
  const Value &x = a[first], &y = a[1 - first];
  const std::optional<bool> less = run.Charge(std::min(x.bytes, y.bytes)) ? Less(x, y) : std::nullopt;
  return less ? Value::Bool(*less != opposite) : run.Fail("can't compare ", x.KindName(), " and ", y.KindName());
}

template <bool in>
Value IsIn(Run& run, Args a) {
  const auto is_x = [&](const Value& each) { return run.Equal(each, a[0]); };
  if (!a[1].is(Value::kString)) return Value::Bool(absl::c_any_of(Elements(run, a[1]), is_x) == in);
  if (!a[0].is(Value::kString)) return run.Fail("in: got ", a[0].KindName(), ", wanted a text");
  return Value::Bool(run.Charge(a[1].bytes) && absl::StrContains(a[1].text(), a[0].text()) == in);
}

constexpr JinjaOperator kOperators[] = {
    {"==", kCompareLevel, IsEqual<true>},
    {"!=", kCompareLevel, IsEqual<false>},
    {"<", kCompareLevel, IsLess<0, false>},
    {">", kCompareLevel, IsLess<1, false>},
    {">=", kCompareLevel, IsLess<0, true>},
    {"<=", kCompareLevel, IsLess<1, true>},
    {"in", kCompareLevel, IsIn<true>},
    {"not in", kCompareLevel, IsIn<false>},
    {"+", 5, Compute<'+'>},
    {"-", 5, Compute<'-'>},
    {"~", 6, [](Run& run, Args a) { return Join(run, a.arguments, ""); }},
    {"*", kMaxLevel, Compute<'*'>},
    {"%", kMaxLevel, Compute<'%'>},
    {"/", kMaxLevel, nullptr},  // no published template uses these three
    {"//", kMaxLevel, nullptr},
    {"**", kMaxLevel, nullptr},
};

}  // namespace

const JinjaOperator* FindOperator(int level, View symbol) {
  const auto is = [&](const JinjaOperator& each) { return each.level == level && each.symbol == symbol; };
  const auto* const found = absl::c_find_if(kOperators, is);
  return found == std::end(kOperators) ? nullptr : found;
}

Value JinjaNegate(Run& run, Args a) { return Compute<'-'>(run, {{Value::Integer(0), a[0]}}); }
Value JinjaNot(Run&, Args a) { return Value::Bool(!a[0].Truthy()); }
Value JinjaMakeList(Run& run, Args a) { return run.List(a.arguments); }
Value JinjaMakeTuple(Run& run, Args a) { return run.List(a.arguments, Value::kTuple); }

Value JinjaMakeDict(Run& run, Args a) {
  JinjaList dict;
  for (size_t i = 0; i < a.arguments.size() && run.ChargeItems(1 + dict.size() / 32); i += 2) {
    if (a[i].depth > 0) return run.Fail(a[i].KindName(), " is not supported as a key");
    Set(&dict, a[i], a[i + 1]);
  }
  return run.List(std::move(dict), Value::kDict);
}

Value JinjaAttribute(Run& run, Args a) {
  const Value& x = a[0];
  const std::string& name = a[1].text();
  const bool is_dict = x.is(Value::kDict);
  if (x.is(Value::kUndefined)) return run.Fail(x.KindName(), " has no attribute '", name, "'");
  const JinjaBuiltin* const method = FindBuiltin(is_dict ? kDictMethod : kStringMethod, name);
  if (method != nullptr && (is_dict || x.is(Value::kString))) {
    return Value::Function([method, x](Run& run, JinjaCall call) {
      call.arguments.insert(call.arguments.begin(), x);
      return CallBuiltin(run, *method, std::move(call));
    });
  }
  // Python finds a method before an element of the same name.
  constexpr View kOthers[] = {"clear", "copy", "fromkeys", "keys", "pop", "popitem", "setdefault", "update", "values"};
  if (is_dict && absl::c_linear_search(kOthers, name)) return run.Fail("the method '", name, "' is not supported");
  const JinjaList* const items = is_dict ? &x.list() : x.is(Value::kNamespace) ? x.attributes() : nullptr;
  if (!run.Charge(items == nullptr ? 1 : items->size())) return {};
  const Value* const found = items == nullptr ? nullptr : Find(*items, a[1]);
  return found != nullptr ? *found : Value::Undefined("." + name);
}

Value JinjaItem(Run& run, Args a) {
  const Value &x = a[0], &key = a[1];
  if (x.is(Value::kUndefined)) return run.Fail(x.KindName(), " has no element ", run.Text(key));
  if (x.is(Value::kDict)) {
    const Value* const found = run.Charge(x.list().size()) ? Find(x.list(), key) : nullptr;
    if (found != nullptr) return *found;
  } else if (key.is_whole() && (x.is_list() || x.is(Value::kString))) {
    const JinjaList characters = x.is_list() ? JinjaList() : Elements(run, x);
    const JinjaList& items = x.is_list() ? x.list() : characters;
    const int64_t size = static_cast<int64_t>(items.size()), at = key.integer() + (key.integer() < 0 ? size : 0);
    if (at >= 0 && at < size) return items[static_cast<size_t>(at)];
  }
  return key.is(Value::kString) ? JinjaAttribute(run, a) : Value::Undefined(absl::StrCat("[", run.Text(key), "]"));
}

Value JinjaSlice(Run& run, Args a) {
  if (!a[0].is(Value::kString) && !a[0].is_list()) return run.Fail(a[0].KindName(), " has no slices");
  const bool backwards = a[3] == Value::Integer(-1) && a[1].is(Value::kNone) && a[2].is(Value::kNone);
  if (!a[3].is(Value::kNone) && !backwards) return run.Fail("of slices with a step, only [::-1] is supported");
  JinjaList items = Elements(run, a[0]);
  const auto size = static_cast<int64_t>(items.size());
  const auto limit = [&](const Value& given, int64_t otherwise) {
    const int64_t at = given.is(Value::kNone) ? otherwise : WholeNumber(run, given, 0);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  items.resize(limit(a[2], size));
  items.erase(items.begin(), items.begin() + std::min(limit(a[1], 0), static_cast<int64_t>(items.size())));
  if (backwards) absl::c_reverse(items);
  return a[0].is(Value::kString) ? Join(run, items, "") : run.List(std::move(items), a[0].kind);
}

Value JinjaCallValue(Run& run, Args a) {
  const Value& called = a[0];
  if (called.is(Value::kUndefined)) return run.Fail("the function or method '", called.text(), "' is not supported");
  if (!called.is(Value::kFunction)) return run.Fail(called.KindName(), " can't be called");
  if (!run.CheckStack() || !run.Charge(20)) return {};
  const int outer = run.line;
  Value value = called.function()(run, {{a.arguments.begin() + 1, a.arguments.end()}, a.named});
  run.line = outer;
  return value;
}

JinjaList Elements(Run& run, const Value& x) {
  JinjaList elements;
  if (x.is_container() && run.ChargeItems(x.list().size())) {
    for (size_t i = 0; i < x.list().size(); i += x.is(Value::kDict) ? 2 : 1) elements.push_back(x.list()[i]);
  } else if (x.is(Value::kString)) {
    for (size_t i = 0, bytes; i < x.text().size() && run.ChargeItems(1); i += bytes) {
      bytes = std::max<size_t>(CharacterAt(x.text(), i).bytes, 1);
      elements.push_back(Value::String(View(x.text()).substr(i, bytes)));
    }
  } else if (!x.is(Value::kUndefined)) {
    run.Fail(x.KindName(), " has no elements");
  }
  return elements;
}

Value Join(Run& run, const JinjaList& items, View separator) {
  std::string joined;
  for (size_t i = 0; i < items.size() && run.Charge(separator.size() + 1); ++i) {
    absl::StrAppend(&joined, i > 0 ? separator : "", run.Text(items[i]));
  }
  return run.String(joined);
}

int64_t WholeNumber(Run& run, const Value& x, int64_t otherwise) {
  if (!x.is_missing() && !x.is_whole()) run.Fail("got ", x.KindName(), ", wanted an int");
  return x.is_whole() ? x.integer() : otherwise;
}

bool JinjaRun::CheckStack() {
  constexpr ptrdiff_t kMaxStackBytes = 500'000;
  const auto used = std::abs(stack_ - static_cast<const char*>(__builtin_frame_address(0)));
  if (used > kMaxStackBytes) Fail("too many macros call each other");
  return ok();
}

Value JinjaRun::Checked(Value value) {
  constexpr int kMaxDepth = 64;  // of lists and dicts, whose destruction recurses
  if (value.depth > kMaxDepth) return Fail("lists are nested more than ", kMaxDepth, " levels deep");
  return value.bytes <= kMaxWork || !Charge(value.bytes) ? value : Value();
}

Value JinjaRun::Lookup(const std::string& name) const {
  for (const JinjaScope* each = scope; each != nullptr; each = each->parent) {
    const auto found = each->variables.find(name);
    if (found != each->variables.end()) return found->second;
  }
  const JinjaBuiltin* const function = FindBuiltin(kGlobal, name);
  if (function == nullptr) return Value::Undefined(name);
  return Value::Function([function](Run& run, Args a) { return CallBuiltin(run, *function, a); });
}

void Bind(Run& run, View function, View parameters, JinjaCall* call) {
  const std::vector<View> names = absl::StrSplit(parameters, ' ', absl::SkipEmpty());
  if (parameters == "*") return;
  run.Charge(names.size() * (1 + call->named.size()));
  if (call->arguments.size() > names.size()) run.Fail(function, ": got more arguments than (", parameters, ")");
  call->arguments.resize(names.size());
  for (const auto& [name, value] : call->named) {
    const auto is = [&name = name](View each) { return absl::StripSuffix(each, "?") == name; };
    const auto found = absl::c_find_if(names, is);
    if (found == names.end()) run.Fail(function, ": the argument '", name, "' is not supported");
    if (run.ok()) call->arguments[found - names.begin()] = value;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const bool missing = call->arguments[i].is_missing() && !absl::EndsWith(names[i], "?");
    if (missing) run.Fail(function, ": the argument '", names[i], "' is missing");
  }
}

Value CallBuiltin(Run& run, const JinjaBuiltin& builtin, JinjaCall call) {
  for (const Value& each : call.arguments) run.Charge(each.is(Value::kString) ? each.bytes + 20 : 20);
  Bind(run, builtin.name, builtin.parameters, &call);
  return run.ok() ? builtin.function(run, call) : Value();
}

}  // namespace weft
