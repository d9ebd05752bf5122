// The filters of templates, with the parameters that Jinja gives them. Every filter charges the run for the size of
// what it makes. `safe` and `e` return ordinary strings; what Jinja adds to them with + would be escaped.
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/text/templates/jinja_lexer.h"
#include "weft/text/templates/jinja_run.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using Call = JinjaCall;
using View = absl::string_view;

bool Given(const Call& call, size_t i) { return !At(call, i).is(Value::kUndefined); }

int64_t IntegerAt(Run& run, const Call& call, size_t i, int64_t otherwise) {
  if (!Given(call, i)) return otherwise;
  if (At(call, i).is(Value::kInteger) || At(call, i).is(Value::kBool)) return At(call, i).integer();
  run.Fail("got a ", At(call, i).KindName(), ", wanted a whole number");
  return otherwise;
}

Value Text(Run& run, const std::string& text) { return run.Charge(text.size() + 1) ? Value::String(text) : Value(); }
Value List(Run& run, JinjaList list, Value::Kind kind = Value::kList) {
  return run.ChargeItems(list.size() + 1) ? run.Checked(Value::List(std::move(list), kind)) : Value();
}

enum class Case : uint8_t { kUpper, kLower, kTitle };
void AppendCased(View character, Case to, std::string* text) {
  const int32_t c = CharacterAt(character, 0).code_point;
  if (c == 0xDF && to != Case::kLower) {
    text->append(to == Case::kUpper ? "SS" : "Ss");
  } else if (c < 0) {
    absl::StrAppend(text, character);
  } else if (to == Case::kLower) {
    AppendLowercase(c, text);
  } else {
    text->append(ToUtf8(to == Case::kUpper ? utf8proc_toupper(c) : utf8proc_totitle(c)));
  }
}

// Returns `text` with each character in the case that `choose` returns for the character and the one before it.
template <class Choose>
std::string Cased(View text, Choose choose) {
  std::string cased;
  View before;
  for (size_t i = 0; i < text.size(); i += before.size()) {
    const View character = text.substr(i, std::max<size_t>(CharacterAt(text, i).bytes, 1));
    AppendCased(character, choose(before), &cased);
    before = character;
  }
  return cased;
}
std::string Upper(View text) {
  return Cased(text, [](View) { return Case::kUpper; });
}
std::string Lower(View text) {
  return Cased(text, [](View) { return Case::kLower; });
}

Value Keyed(Run& run, const Value& x, const Value& attribute) {
  if (attribute.is(Value::kUndefined) || attribute.is(Value::kNone)) return x;
  if (!attribute.is(Value::kString)) return Item(run, x, attribute);
  Value value = x;
  for (const View part : absl::StrSplit(attribute.text(), '.')) {
    int64_t index = 0;
    value = Item(run, value, absl::SimpleAtoi(part, &index) ? Value::Integer(index) : Value::String(part));
  }
  return value;
}

// Sorts by keys, as Python does it: equal keys keep their order, also in reverse.
Value Sorted(Run& run, std::vector<std::pair<Value, Value>> keyed, bool reverse, bool ignore_case) {
  for (auto& [key, item] : keyed) {
    run.Charge(20 * key.bytes);  // of the comparisons
    if (ignore_case && key.is(Value::kString)) key = Text(run, Lower(key.text()));
    if (!Less(keyed[0].first, key)) return run.Fail("can't order ", keyed[0].first.KindName(), " and ", key.KindName());
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return Less(reverse ? b.first : a.first, reverse ? a.first : b.first).value_or(false);
  });
  JinjaList list;
  for (auto& [key, item] : keyed) list.push_back(std::move(item));
  return List(run, std::move(list));
}

Value Sort(Run& run, const Value& x, const Call& call) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : Elements(run, x)) keyed.emplace_back(Keyed(run, item, At(call, 2)), item);
  return Sorted(run, std::move(keyed), At(call, 0).Truthy(), !At(call, 1).Truthy());
}

JinjaList Pairs(Run& run, const Value& x) {
  JinjaList pairs;
  if (!x.is(Value::kDict) && !x.is(Value::kUndefined)) run.Fail("got a ", x.KindName(), ", wanted a dict");
  if (!x.is(Value::kDict)) return pairs;
  for (const auto& [key, item] : x.dict()) pairs.push_back(Value::List({key, item}, Value::kTuple));
  return pairs;
}

Value DictSort(Run& run, const Value& x, const Call& call) {
  std::vector<std::pair<Value, Value>> keyed;
  const bool by_value = At(call, 1) == Value::String("value");
  for (const Value& pair : Pairs(run, x)) keyed.emplace_back(pair.list()[by_value ? 1 : 0], pair);
  return Sorted(run, std::move(keyed), At(call, 2).Truthy(), !At(call, 0).Truthy());
}

Value Join(Run& run, const JinjaList& items, const std::string& separator) {
  std::string joined;
  for (size_t i = 0; i < items.size() && run.Charge(separator.size() + 1); ++i) {
    absl::StrAppend(&joined, i > 0 ? separator : "", run.Text(items[i]));
  }
  return Text(run, joined);
}

Value Indent(Run& run, const Value& x, const Call& call) {
  const int64_t width = At(call, 0).is(Value::kString) ? 0 : IntegerAt(run, call, 0, 4);
  if (!run.Charge(static_cast<size_t>(std::max<int64_t>(width, 0)))) return {};
  const std::string space =
      At(call, 0).is(Value::kString) ? At(call, 0).text() : std::string(std::max<int64_t>(width, 0), ' ');
  std::string all = At(call, 1).Truthy() ? space : "";
  const std::vector<std::string> lines = PythonLines(run.Text(x) + "\n");
  for (size_t i = 0; i < lines.size() && run.Charge(space.size()); ++i) {
    const bool indents = i > 0 && (!lines[i].empty() || At(call, 2).Truthy());
    absl::StrAppend(&all, i > 0 ? "\n" : "", indents ? space : "", lines[i]);
  }
  return Text(run, all);
}

Value ToJson(Run& run, const Value& x, const Call& call) {
  JsonStyle style = {.ascii = At(call, 0).Truthy(), .sorted = At(call, 3).Truthy()};
  if (Given(call, 1) && !At(call, 1).is(Value::kNone)) {
    const bool text = At(call, 1).is(Value::kString);
    style.indent = text ? At(call, 1).text() : std::string(std::clamp<int64_t>(IntegerAt(run, call, 1, 0), 0, 64), ' ');
    style.comma = std::string(1, ',');
  }
  if (Given(call, 2) && !At(call, 2).is(Value::kNone)) {
    const JinjaList both = Elements(run, At(call, 2));
    if (both.size() != 2) return run.Fail("tojson: separators must be two texts");
    style.comma = run.Text(both[0]);
    style.colon = run.Text(both[1]);
  }
  if (!run.Charge(x.bytes * (1 + style.indent.value_or("").size()))) return {};
  std::string json;
  if (!AppendJson(x, style, 0, &json)) return run.Fail("tojson: ", x.KindName(), " has no form in JSON");
  return Text(run, json);
}

Value Round(Run& run, const Value& x, const Call& call) {
  const int64_t precision = IntegerAt(run, call, 0, 0);
  const std::string method = Given(call, 1) ? run.Text(At(call, 1)) : "common";
  if (!x.is_number()) return run.Fail("round: got a ", x.KindName(), ", wanted a number");
  if (precision < 0 || precision > 100) return run.Fail("round: the precision ", precision, " is not supported");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::Float(std::ceil(x.number() * scale) / scale);
  if (method == "floor") return Value::Float(std::floor(x.number() * scale) / scale);
  if (method != "common") return run.Fail("round: the method must be common, ceil or floor");
  if (!x.is(Value::kFloat)) return Value::Integer(x.integer());
  return Value::Float(std::stod(absl::StrFormat("%.*f", static_cast<int>(precision), x.number())));
}

Value ToInteger(Run& run, const Value& x, const Call& call) {
  if (Given(call, 1)) return run.Fail("int: a base is not supported");
  int64_t integer = 0;
  double number = x.is_number() ? x.number() : 0;
  const View text = x.is(Value::kString) ? PythonStrip(x.text(), true, true) : "";
  if (absl::SimpleAtoi(text, &integer)) return Value::Integer(integer);
  if (x.is(Value::kInteger) || x.is(Value::kBool)) return Value::Integer(x.integer());
  const bool found = x.is(Value::kFloat) || absl::SimpleAtod(text, &number);
  if (found && std::abs(number) < 9e18) return Value::Integer(static_cast<int64_t>(number));
  return Given(call, 0) ? At(call, 0) : Value::Integer(0);
}

Value ToFloat(Run&, const Value& x, const Call& call) {
  double number = 0;
  if (x.is_number()) return Value::Float(x.number());
  if (x.is(Value::kString) && absl::SimpleAtod(PythonStrip(x.text(), true, true), &number)) return Value::Float(number);
  return Given(call, 0) ? At(call, 0) : Value::Float(0);
}

Value Length(Run& run, const Value& x, const Call&) {
  if (x.is(Value::kString)) return Value::Integer(static_cast<int64_t>(CountCharacters(x.text())));
  if (x.is(Value::kDict)) return Value::Integer(static_cast<int64_t>(x.dict().size()));
  if (x.is(Value::kUndefined)) return Value::Integer(0);
  if (x.is_list()) return Value::Integer(static_cast<int64_t>(x.list().size()));
  return run.Fail("a ", x.KindName(), " has no length");
}

Value Reverse(Run& run, const Value& x, const Call&) {
  JinjaList items = Elements(run, x);
  std::reverse(items.begin(), items.end());
  return x.is(Value::kString) ? Join(run, items, "") : List(run, std::move(items));
}

Value Unique(Run& run, const Value& x, const Call& call) {
  JinjaList seen, kept;
  for (const Value& item : Elements(run, x)) {
    Value key = Keyed(run, item, At(call, 1));
    if (key.is(Value::kString) && !At(call, 0).Truthy()) key = Value::String(Lower(key.text()));
    if (absl::c_any_of(seen, [&](const Value& each) { return run.Equal(each, key); })) continue;
    seen.push_back(std::move(key));
    kept.push_back(item);
  }
  return List(run, std::move(kept));
}

// min and max, which ignore the case of letters.
template <bool greatest>
Value Extreme(Run& run, const Value& x, const Call& call) {
  const Value sorted = Sort(run, x, {{Value::Bool(greatest), At(call, 0), At(call, 1)}});
  return run.ok() && !sorted.list().empty() ? sorted.list()[0] : Value::Undefined("an element of an empty list");
}

Value Map(Run& run, const Value& x, const Call& call) {
  if (!x.Truthy()) return Value::List({});
  JinjaList mapped;
  Call rest = call;
  Value attribute, otherwise;
  for (const auto& [name, value] : call.named) {
    if (!call.arguments.empty()) break;
    if (name != "attribute" && name != "default") return run.Fail("map: unknown argument ", name);
    (name == "attribute" ? attribute : otherwise) = value;
  }
  const JinjaBuiltin* const filter = call.arguments.empty() ? nullptr : FindFilter(run.Text(call.arguments[0]));
  if (filter == nullptr && attribute.is(Value::kUndefined)) return run.Fail("map: wanted a filter or an attribute");
  if (filter != nullptr) rest.arguments.erase(rest.arguments.begin());
  for (const Value& item : Elements(run, x)) {
    if (!run.ok()) return {};
    Value value = filter != nullptr ? CallBuiltin(run, *filter, item, rest) : Keyed(run, item, attribute);
    mapped.push_back(value.is(Value::kUndefined) && !otherwise.is(Value::kUndefined) ? otherwise : std::move(value));
  }
  return List(run, std::move(mapped));
}

// select, reject, selectattr and rejectattr.
template <bool keep, bool by_attribute>
Value Select(Run& run, const Value& x, const Call& call) {
  if (!x.Truthy()) return Value::List({});
  Call rest = call;
  Value attribute;
  for (int i = 0; i < (by_attribute ? 1 : 0); ++i) {
    if (rest.arguments.empty()) return run.Fail("wanted the name of an attribute");
    attribute = rest.arguments[0];
    rest.arguments.erase(rest.arguments.begin());
  }
  const JinjaBuiltin* test = nullptr;
  if (!rest.arguments.empty()) {
    test = FindTest(run.Text(rest.arguments[0]));
    if (test == nullptr) return run.Fail("the test '", run.Text(rest.arguments[0]), "' is not supported");
    rest.arguments.erase(rest.arguments.begin());
  }
  JinjaList kept;
  for (const Value& item : Elements(run, x)) {
    if (!run.ok()) return {};
    const Value value = Keyed(run, item, attribute);
    if ((test == nullptr ? value : CallBuiltin(run, *test, value, rest)).Truthy() == keep) kept.push_back(item);
  }
  return List(run, std::move(kept));
}

Value Replace(Run& run, const Value& x, const Call& call) {
  const std::string text = run.Text(x), from = run.Text(At(call, 0)), to = run.Text(At(call, 1));
  int64_t left = At(call, 2).is(Value::kNone) ? -1 : IntegerAt(run, call, 2, -1);
  std::string replaced;
  size_t done = 0;
  while (left != 0 && run.Charge(to.size() + 1)) {
    // An empty `from` is found before each character and at the end.
    const size_t at = text.find(from, done);
    if (at == text.npos) break;
    absl::StrAppend(&replaced, View(text).substr(done, at - done), to);
    done = at + from.size();
    --left;
    if (!from.empty()) continue;
    if (done == text.size()) break;
    const size_t bytes = std::max<size_t>(CharacterAt(text, done).bytes, 1);
    absl::StrAppend(&replaced, View(text).substr(done, bytes));
    done += bytes;
    if (left == 0) break;
  }
  absl::StrAppend(&replaced, View(text).substr(done));
  return Text(run, replaced);
}

Value Strip(Run& run, const Value& x, const Call& call, bool left, bool right) {
  const std::string text = run.Text(x), given = run.Text(At(call, 0));
  const View characters = given;
  const bool all_space = !Given(call, 0) || At(call, 0).is(Value::kNone);
  return Text(run, std::string(PythonStrip(text, left, right, all_space ? nullptr : &characters)));
}

Value Title(Run& run, const Value& x, const Call&) {
  return Text(run, Cased(run.Text(x), [](View before) {
                const bool starts = before.empty() || absl::StrContains("-({[<", before) ||
                                    IsPythonSpace(CharacterAt(before, 0).code_point);
                return starts ? Case::kUpper : Case::kLower;
              }));
}

Value Capitalize(Run& run, const Value& x, const Call&) {
  return Text(run, Cased(run.Text(x), [](View before) { return before.empty() ? Case::kTitle : Case::kLower; }));
}

Value Default(Run&, const Value& x, const Call& call) {
  const bool replaces = x.is(Value::kUndefined) || (At(call, 1).Truthy() && !x.Truthy());
  return !replaces ? x : Given(call, 0) ? At(call, 0) : Value::String("");
}

template <bool last>
Value End(Run& run, const Value& x, const Call&) {
  const JinjaList items = Elements(run, x);
  return items.empty() ? Value::Undefined("an element of an empty list") : last ? items.back() : items[0];
}

Value Absolute(Run& run, const Value& x, const Call&) {
  if (!x.is_number()) return run.Fail("abs: got a ", x.KindName(), ", wanted a number");
  return x.is(Value::kFloat) ? Value::Float(std::abs(x.number())) : Value::Integer(std::max(x.integer(), -x.integer()));
}

Value Escape(Run& run, const Value& x, const Call&) {
  return Text(run, absl::StrReplaceAll(
                       run.Text(x), {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}));
}

constexpr JinjaBuiltin kFilters[] = {
    {"abs", "", Absolute},
    {"capitalize", "", Capitalize},
    {"count", "", Length},
    {"d", "default_value boolean", Default},
    {"default", "default_value boolean", Default},
    {"dictsort", "case_sensitive by reverse", DictSort},
    {"e", "", Escape},
    {"escape", "", Escape},
    {"first", "", End<false>},
    {"float", "default", ToFloat},
    {"indent", "width first blank", Indent},
    {"int", "default base", ToInteger},
    {"items", "", [](Run& run, const Value& x, const Call&) { return List(run, Pairs(run, x)); }},
    {"join", "d attribute",
     [](Run& run, const Value& x, const Call& call) {
       JinjaList items = Elements(run, x);
       for (Value& item : items) item = Keyed(run, item, At(call, 1));
       return Join(run, items, run.Text(At(call, 0)));
     }},
    {"last", "", End<true>},
    {"length", "", Length},
    {"list", "", [](Run& run, const Value& x, const Call&) { return List(run, Elements(run, x)); }},
    {"lower", "", [](Run& run, const Value& x, const Call&) { return Text(run, Lower(run.Text(x))); }},
    {"map", "*", Map},
    {"max", "case_sensitive attribute", Extreme<true>},
    {"min", "case_sensitive attribute", Extreme<false>},
    {"reject", "*", Select<false, false>},
    {"rejectattr", "*", Select<false, true>},
    {"replace", "old new count", Replace},
    {"reverse", "", Reverse},
    {"round", "precision method", Round},
    {"safe", "", [](Run& run, const Value& x, const Call&) { return Value::String(run.Text(x)); }},
    {"select", "*", Select<true, false>},
    {"selectattr", "*", Select<true, true>},
    {"sort", "reverse case_sensitive attribute", Sort},
    {"string", "", [](Run& run, const Value& x, const Call&) { return Value::String(run.Text(x)); }},
    {"title", "", Title},
    {"tojson", "ensure_ascii indent separators sort_keys", ToJson},
    {"trim", "chars", [](Run& run, const Value& x, const Call& call) { return Strip(run, x, call, true, true); }},
    {"unique", "case_sensitive attribute", Unique},
    {"upper", "", [](Run& run, const Value& x, const Call&) { return Text(run, Upper(run.Text(x))); }},
};

}  // namespace

const JinjaBuiltin* FindFilter(View name) { return FindIn(kFilters, name); }

}  // namespace weft
