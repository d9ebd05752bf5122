// The filters, tests, methods and global functions of templates: those that published templates of models use. Each
// function counts the size of its result towards the limit of the rendering. `safe` returns an ordinary string: unlike
// Jinja, Weft does not escape a text that a template adds to it with +.
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/text/templates/jinja_run.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using Args = const JinjaCall&;
using View = absl::string_view;

std::string TextOf(Run& run, const Value& x) {
  if (!x.is(Value::kString)) run.Fail("got ", x.KindName(), ", wanted a text");
  return run.Text(x);
}

// Returns the parts of `text` between separators. At most `cuts` separators count if it is not negative.
JinjaList Parts(Run& run, View text, View separator, int64_t cuts = -1) {
  JinjaList parts;
  if (separator.empty()) run.Fail("got an empty text, wanted one to look for");
  for (; run.ChargeItems(1); --cuts) {
    const size_t at = cuts == 0 ? text.npos : text.find(separator);
    parts.push_back(run.String(text.substr(0, at)));
    if (at == text.npos) break;
    text.remove_prefix(at + separator.size());
  }
  return parts;
}

// Returns `text` with the characters for which `upper` holds in upper case, or in title case, and the others in lower
// case. `upper` is asked with the character before.
std::string Cased(const std::string& text, bool (*upper)(View before), bool title = false) {
  std::string cased;
  View before;
  ForEachCharacter(text, [&](int32_t c, View character) {
    if (c >= 0 && !upper(before)) {
      AppendLowercase(c, &cased);
    } else if (c == 0xDF) {
      cased += title ? "Ss" : "SS";
    } else {
      cased += ToUtf8(title ? utf8proc_totitle(c) : utf8proc_toupper(c));
    }
    before = character;
  });
  return cased;
}
bool Always(View) { return true; }
bool Never(View) { return false; }
bool AtBegin(View before) { return before.empty(); }
bool AfterSpaceOrBracket(View before) {
  return PythonStrip(before, true, true).empty() || absl::StrContains("-({[<", before);
}
bool AfterNoLetter(View before) { return before.empty() || !IsCased(CharacterAt(before, 0).code_point); }
template <bool (*upper)(View before), bool title>
Value Case(Run& run, Args a) {
  return run.String(Cased(run.Text(a[0]), upper, title));
}
// Returns the value that sort and unique compare in place of `x`, which ignores the case of letters.
Value Folded(const Value& x) { return x.is(Value::kString) ? Value::String(Cased(x.text(), Never)) : x; }

// Returns the attribute of `item`, such as "a" or "a.0.b", or the item if it is missing.
Value Keyed(Run& run, Value item, const Value& attribute) {
  if (attribute.is_missing()) return item;
  for (const Value& part : Parts(run, TextOf(run, attribute), ".")) {
    int64_t index = 0;
    const bool is_index = absl::SimpleAtoi(run.Text(part), &index);
    if (run.ok()) item = JinjaItem(run, {{item, is_index ? Value::Integer(index) : part}});
  }
  return item;
}

// Sorts by an attribute, as Python does it: equal keys keep their order.
JinjaList Sorted(Run& run, JinjaList items, const Value& attribute) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    const Value key = Folded(Keyed(run, item, attribute));
    run.Charge(20 * key.bytes);  // of the comparisons
    keyed.emplace_back(key, std::move(item));
    const Value& first = keyed[0].first;
    if (!Less(first, key)) run.Fail("can't order ", first.KindName(), " and ", key.KindName());
    if (!run.ok()) return {};
  }
  absl::c_stable_sort(keyed, [](const auto& x, const auto& y) { return Less(x.first, y.first).value_or(false); });
  for (size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
  return items;
}

JinjaList Pairs(Run& run, const Value& x) {
  JinjaList pairs;
  if (!x.is(Value::kDict) && !x.is(Value::kUndefined)) run.Fail("got ", x.KindName(), ", wanted a dict");
  if (!x.is(Value::kDict)) return pairs;
  const JinjaList& list = x.list();
  for (size_t i = 0; i < list.size(); i += 2) pairs.push_back(run.List({list[i], list[i + 1]}, Value::kTuple));
  return pairs;
}

// Returns the filter or test that `name` names, or null, with an error, if there is none.
const JinjaBuiltin* Named(Run& run, JinjaUse use, const Value& name) {
  const JinjaBuiltin* const found = FindBuiltin(use, TextOf(run, name));
  if (found == nullptr) run.Fail("the ", use == kTest ? "test" : "filter", " '", name.Text(), "' is not supported");
  return found;
}

// map(filter) and map(attribute=attribute).
Value Map(Run& run, Args a) {
  if (a[1].is_missing() == a[2].is_missing()) return run.Fail("map: wanted a filter alone, or an attribute");
  const JinjaBuiltin* const filter = a[1].is_missing() ? nullptr : Named(run, kFilter, a[1]);
  JinjaList items = a[0].Truthy() ? Elements(run, a[0]) : JinjaList();
  for (Value& item : items) {
    if (run.ok()) item = filter != nullptr ? CallBuiltin(run, *filter, {{item}}) : Keyed(run, item, a[2]);
  }
  return run.List(std::move(items));
}

// select(test, other), selectattr(attribute, test, other) and their opposites.
template <bool keep, bool by_attribute>
Value Select(Run& run, Args a) {
  const Value &name = a[by_attribute ? 2 : 1], &other = a[by_attribute ? 3 : 2];
  const JinjaBuiltin* const test = name.is_missing() ? nullptr : Named(run, kTest, name);
  JinjaList kept;
  for (const Value& item : a[0].Truthy() ? Elements(run, a[0]) : JinjaList()) {
    JinjaCall call = {{by_attribute ? Keyed(run, item, a[1]) : item}};
    if (!other.is_missing()) call.arguments.push_back(other);
    if (!run.ok()) return {};
    if ((test == nullptr ? call[0] : CallBuiltin(run, *test, call)).Truthy() == keep) kept.push_back(item);
  }
  return run.List(std::move(kept));
}

Value Unique(Run& run, Args a) {
  JinjaList keys, kept;
  for (const Value& item : Elements(run, a[0])) {
    const Value key = Folded(item);
    if (absl::c_any_of(keys, [&](const Value& each) { return run.Equal(each, key); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return run.List(std::move(kept));
}

Value Indent(Run& run, Args a) {
  const int64_t width = std::max<int64_t>(WholeNumber(run, a[1], 4), 0);
  if (!run.Charge(static_cast<size_t>(width))) return {};
  const std::string space(static_cast<size_t>(width), ' ');
  std::string text = run.Text(a[0]);
  for (const char* const end : {"\r\n", "\r", "\v", "\f", "\x1C", "\x1D", "\x1E", "\u0085", "\u2028", "\u2029"}) {
    absl::StrReplaceAll({{end, "\n"}}, &text);  // as Python's str.splitlines does
  }
  JinjaList lines = Parts(run, text, "\n");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 ? lines[i].Truthy() : a[2].Truthy()) lines[i] = run.String(absl::StrCat(space, lines[i].Text()));
  }
  return Join(run, lines, "\n");
}

Value ToJson(Run& run, Args a) {
  const Value &x = a[0], &indent = a[2], &separators = a[3];
  JinjaStyle style = {.json = true, .ascii = a[1].Truthy()};
  if (!indent.is_missing()) {
    style.indent = std::clamp<int64_t>(WholeNumber(run, indent, 0), 0, 64);
    style.comma = std::string(1, ',');
  }
  if (!separators.is_missing()) {
    const JinjaList both = Elements(run, separators);
    if (both.size() != 2) return run.Fail("tojson: separators must be two texts");
    style.comma = TextOf(run, both[0]);
    style.colon = TextOf(run, both[1]);
  }
  std::string json;
  if (!run.Charge(x.bytes * (1 + style.indent.value_or(0)))) return {};
  if (!Append(x, style, 0, &json)) return run.Fail("tojson: JSON has no form for all of ", x.KindName());
  return run.String(json);
}

Value ToInteger(Run& run, Args a) {
  if (a[0].is_whole()) return Value::Integer(a[0].integer());
  const std::string text = run.Text(a[0]);
  int64_t whole = 0;
  double number = 0;
  if (absl::SimpleAtoi(text, &whole)) return Value::Integer(whole);
  const bool found = absl::SimpleAtod(text, &number) && std::abs(number) < 9e18;
  return Value::Integer(found ? static_cast<int64_t>(number) : 0);
}

Value Length(Run& run, Args a) {
  const bool text = a[0].is(Value::kString);
  const size_t length = text ? CountCharacters(a[0].text()) : Elements(run, a[0]).size();
  return Value::Integer(static_cast<int64_t>(length));
}

Value Default(Run&, Args a) {
  const bool replaces = a[0].is(Value::kUndefined) || (a[2].Truthy() && !a[0].Truthy());
  return replaces ? a[1] : a[0];
}

Value Get(Run& run, Args a) {
  const Value* const found = run.Charge(a[0].list().size()) ? Find(a[0].list(), a[1]) : nullptr;
  return found != nullptr ? *found : a[2].is_missing() ? Value::None() : a[2];
}

template <bool left, bool right>
Value Strip(Run& run, Args a) {
  const std::string text = run.Text(a[0]), characters = run.Text(a[1]);
  return run.String(PythonStrip(text, left, right, a[1].is_missing() ? nullptr : &characters));
}

Value Split(Run& run, Args a) {
  return run.List(Parts(run, a[0].text(), TextOf(run, a[1]), WholeNumber(run, a[2], -1)));
}

Value Replace(Run& run, Args a) {
  const std::string text = run.Text(a[0]), from = run.Text(a[1]);
  return Join(run, Parts(run, text, from), run.Text(a[2]));
}

// Fills the {} of a format.
Value Format(Run& run, Args a) {
  const JinjaList parts = Parts(run, a[0].text(), "{}");
  const auto has_brace = [](const Value& part) { return part.text().find_first_of("{}") != std::string::npos; };
  if (!run.ok() || parts.size() != a.arguments.size() || !a.named.empty() || absl::c_any_of(parts, has_brace)) {
    return run.Fail("format: wanted {} once for each argument, and no other braces");
  }
  std::string text = parts[0].text();
  for (size_t i = 1; i < parts.size(); ++i) absl::StrAppend(&text, run.Text(a[i]), parts[i].text());
  return run.String(text);
}

Value Range(Run& run, Args a) {
  constexpr size_t kMaxRange = 100'000;  // of Jinja's sandbox
  const int64_t begin = a[1].is_missing() ? 0 : WholeNumber(run, a[0], 0);
  const int64_t end = WholeNumber(run, a[1].is_missing() ? a[0] : a[1], 0), step = WholeNumber(run, a[2], 1);
  if (step == 0) return run.Fail("range: the step is 0");
  JinjaList numbers;
  for (int64_t i = begin; run.ok() && (step > 0 ? i < end : i > end);) {
    numbers.push_back(Value::Integer(i));
    if (numbers.size() > kMaxRange) return run.Fail("range: more than ", kMaxRange, " numbers");
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return run.List(std::move(numbers));
}

JinjaList Items(Run& run, Args a) {
  JinjaList items;
  if (!a.arguments.empty()) run.Fail("wanted named arguments only");
  if (!run.ChargeItems(a.named.size() * (1 + a.named.size() / 16))) return items;
  for (const auto& [name, value] : a.named) Set(&items, Value::String(name), value);
  return items;
}

Value TimeNow(Run& run, Args a) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[1000];
  return run.String(View(text, std::strftime(text, sizeof(text), run.Text(a[0]).c_str(), &local)));
}

template <Value::Kind... kinds>
Value IsKind(Run&, Args a) {
  return Value::Bool((a[0].is(kinds) || ...));
}
template <bool value>
Value IsBool(Run&, Args a) {
  return Value::Bool(a[0].is(Value::kBool) && a[0].Truthy() == value);
}
Value IsEqual(Run& run, Args a) { return Value::Bool(run.Equal(a[0], a[1])); }

template <bool end>
Value Begins(Run& run, Args a) {
  const std::string part = TextOf(run, a[1]);
  return Value::Bool(end ? absl::EndsWith(a[0].text(), part) : absl::StartsWith(a[0].text(), part));
}

template <bool last>
Value End(Run& run, Args a) {
  const JinjaList items = Elements(run, a[0]);
  return items.empty() ? Value::Undefined("element of nothing") : last ? items.back() : items[0];
}

Value Sort(Run& run, Args a) {
  if (!a[1].is_missing() || !a[2].is_missing()) run.Fail("sort: only the argument attribute is supported");
  return run.List(Sorted(run, Elements(run, a[0]), a[3]));
}
Value Minimum(Run& run, Args a) { return End<false>(run, {{run.List(Sorted(run, Elements(run, a[0]), {}))}}); }
Value DictSort(Run& run, Args a) { return run.List(Sorted(run, Pairs(run, a[0]), Value::String("0"))); }
Value ToText(Run& run, Args a) { return run.String(run.Text(a[0])); }
Value Raise(Run& run, Args a) { return run.Fail("the template says: ", run.Text(a[0])); }

constexpr auto kUndefined = Value::kUndefined, kString = Value::kString, kList = Value::kList, kTuple = Value::kTuple,
               kDict = Value::kDict;
constexpr JinjaBuiltin kBuiltins[] = {
    {"boolean", kTest, "x", IsKind<Value::kBool>},
    {"capitalize", kFilter, "x", Case<AtBegin, true>},
    {"default", kFilter, "x default_value boolean?", Default},
    {"defined", kTest, "x", [](Run&, Args a) { return Value::Bool(!a[0].is(kUndefined)); }},
    {"dict", kGlobal, "*", [](Run& run, Args a) { return run.List(Items(run, a), kDict); }},
    {"dictsort", kFilter, "x", DictSort},
    {"endswith", kStringMethod, "x suffix", Begins<true>},
    {"eq", kTest, "x other", IsEqual},
    {"equalto", kTest, "x other", IsEqual},
    {"false", kTest, "x", IsBool<false>},
    {"first", kFilter, "x", End<false>},
    {"format", kStringMethod, "*", Format},
    {"get", kDictMethod, "x key default?", Get},
    {"indent", kFilter, "x width? first?", Indent},
    {"int", kFilter, "x", ToInteger},
    {"items", kFilter | kDictMethod, "x", [](Run& run, Args a) { return run.List(Pairs(run, a[0])); }},
    {"iterable", kTest, "x", IsKind<kString, kList, kTuple, kDict, kUndefined>},
    {"join", kFilter, "x d?", [](Run& run, Args a) { return Join(run, Elements(run, a[0]), run.Text(a[1])); }},
    {"last", kFilter, "x", End<true>},
    {"length", kFilter, "x", Length},
    {"list", kFilter, "x", [](Run& run, Args a) { return run.List(Elements(run, a[0])); }},
    {"lower", kFilter, "x", Case<Never, false>},
    {"lstrip", kStringMethod, "x chars?", Strip<true, false>},
    {"map", kFilter, "x filter? attribute?", Map},
    {"mapping", kTest, "x", IsKind<kDict>},
    {"min", kFilter, "x", Minimum},
    {"namespace", kGlobal, "*", [](Run& run, Args a) { return run.Namespace(Items(run, a)); }},
    {"none", kTest, "x", IsKind<Value::kNone>},
    {"number", kTest, "x", IsKind<Value::kBool, Value::kInteger, Value::kFloat>},
    {"raise_exception", kGlobal, "message", Raise},
    {"range", kGlobal, "start stop? step?", Range},
    {"reject", kFilter, "x test? other?", Select<false, false>},
    {"rejectattr", kFilter, "x attribute test? other?", Select<false, true>},
    {"replace", kFilter | kStringMethod, "x old new", Replace},
    {"rstrip", kStringMethod, "x chars?", Strip<false, true>},
    {"safe", kFilter, "x", ToText},
    {"select", kFilter, "x test? other?", Select<true, false>},
    {"selectattr", kFilter, "x attribute test? other?", Select<true, true>},
    {"sequence", kTest, "x", IsKind<kString, kList, kTuple, kDict, kUndefined>},
    {"sort", kFilter, "x reverse? case_sensitive? attribute?", Sort},
    {"split", kStringMethod, "x sep maxsplit?", Split},
    {"startswith", kStringMethod, "x prefix", Begins<false>},
    {"strftime_now", kGlobal, "format", TimeNow},
    {"string", kFilter, "x", ToText},
    {"string", kTest, "x", IsKind<kString>},
    {"strip", kStringMethod, "x chars?", Strip<true, true>},
    {"title", kFilter, "x", Case<AfterSpaceOrBracket, false>},
    {"title", kStringMethod, "x", Case<AfterNoLetter, true>},
    {"tojson", kFilter, "x ensure_ascii? indent? separators?", ToJson},
    {"trim", kFilter, "x chars?", Strip<true, true>},
    {"true", kTest, "x", IsBool<true>},
    {"undefined", kTest, "x", IsKind<kUndefined>},
    {"unique", kFilter, "x", Unique},
    {"upper", kFilter, "x", Case<Always, false>},
};

}  // namespace

const JinjaBuiltin* FindBuiltin(JinjaUse use, View name) {
  const auto found =
      absl::c_find_if(kBuiltins, [&](const auto& each) { return each.name == name && (each.uses & use) != 0; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

}  // namespace weft
