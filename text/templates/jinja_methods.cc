// The methods and global functions of templates, calls, and the access to elements and attributes.
//
// As in the immutable sandbox of Jinja that transformers uses, no list and no dict can be changed, so append, update
// and their like do not exist.
#include <algorithm>
#include <ctime>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

Value Strings(Run& run, const std::vector<std::string>& texts) {
  JinjaList list;
  for (const std::string& text : texts) {
    if (run.Charge(text.size() + kJinjaItemBytes)) list.push_back(Value::String(text));
  }
  return Value::List(std::move(list));
}

// Splits at `sep` or, without one, at white space. With `from_end`, the first `maxsplit` cuts from the end count.
template <bool from_end>
Value Split(Run& run, const Value& x, const Call& call) {
  const bool spaces = At(call, 0).is(Value::kUndefined) || At(call, 0).is(Value::kNone);
  if (!spaces && run.Text(At(call, 0)).empty()) return run.Fail("split: the separator is empty");
  View rest = x.text();
  const std::string separator = run.Text(At(call, 0));
  int64_t left = At(call, 1).is(Value::kInteger) ? At(call, 1).integer() : -1;
  std::vector<std::string> parts;
  for (; run.Charge(1); --left) {
    if (spaces) rest = PythonStrip(rest, !from_end, from_end);
    if (spaces && rest.empty()) break;
    size_t at = rest.npos, size = separator.size();
    if (!spaces) {
      at = from_end ? rest.rfind(separator) : rest.find(separator);
    } else {
      for (size_t i = 0; i < rest.size(); i += std::max<size_t>(CharacterAt(rest, i).bytes, 1)) {
        const Utf8Character c = CharacterAt(rest, i);
        if (!IsPythonSpace(c.code_point)) continue;
        at = i;
        size = c.bytes;
        if (!from_end) break;
      }
    }
    if (left == 0 || at == rest.npos) {
      parts.emplace_back(rest);
      break;
    }
    parts.emplace_back(from_end ? rest.substr(at + size) : rest.substr(0, at));
    rest = from_end ? rest.substr(0, at) : rest.substr(at + size);
  }
  if (from_end) std::reverse(parts.begin(), parts.end());
  return Strings(run, parts);
}

// startswith and endswith, of a text or of any text of a tuple.
template <bool end>
Value Begins(Run& run, const Value& x, const Call& call) {
  const JinjaList texts = At(call, 0).is(Value::kTuple) ? At(call, 0).list() : JinjaList{At(call, 0)};
  return Value::Bool(absl::c_any_of(texts, [&](const Value& text) {
    if (!text.is(Value::kString)) return run.Fail("got a ", text.KindName(), ", wanted a text").Truthy();
    return end ? absl::EndsWith(x.text(), text.text()) : absl::StartsWith(x.text(), text.text());
  }));
}

template <bool last, bool must>
Value FindText(Run& run, const Value& x, const Call& call) {
  const std::string part = run.Text(At(call, 0));
  const size_t at = last ? x.text().rfind(part) : x.text().find(part);
  if (at == std::string::npos && must) return run.Fail("index: the text has no '", part, "'");
  if (at == std::string::npos) return Value::Integer(-1);
  return Value::Integer(static_cast<int64_t>(CountCharacters(View(x.text()).substr(0, at))));
}

template <bool left>
Value StripSide(Run& run, const Value& x, const Call& call) {
  const std::string given = run.Text(At(call, 0));
  const View characters = given;
  const bool spaces = At(call, 0).is(Value::kUndefined) || At(call, 0).is(Value::kNone);
  run.Charge(x.text().size());
  return Value::String(PythonStrip(x.text(), left, !left, spaces ? nullptr : &characters));
}

Value Title(Run& run, const Value& x, const Call&) {
  std::string title;  // each word begins with an upper case letter; a word is of cased characters
  for (size_t i = 0, begin = 0; i <= x.text().size() && run.Charge(1);) {
    const bool end = i == x.text().size();
    const Utf8Character c = end ? Utf8Character{-1, 1} : CharacterAt(x.text(), i);
    const size_t next = i + std::max<size_t>(c.bytes, 1);
    if (!end && IsCased(c.code_point)) {
      i = next;
      continue;
    }
    const Value word = Value::String(View(x.text()).substr(begin, i - begin));
    absl::StrAppend(&title, CallBuiltin(run, *FindFilter("capitalize"), word, {}).Text());
    if (!end) absl::StrAppend(&title, View(x.text()).substr(i, next - i));
    begin = i = next;
  }
  return Value::String(title);
}

// Fills the {}, {0} and {name} of a format.
Value Format(Run& run, const Value& x, const Call& call) {
  std::string text;
  size_t next = 0;
  for (View rest = x.text(); !rest.empty() && run.Charge(1);) {
    const size_t at = std::min(rest.find_first_of("{}"), rest.size()), end = rest.find('}', at);
    absl::StrAppend(&text, rest.substr(0, at));
    rest.remove_prefix(at);
    if (rest.empty()) break;
    if (absl::StartsWith(rest, "{{") || absl::StartsWith(rest, "}}")) {
      text += rest[0];
      rest.remove_prefix(2);
      continue;
    }
    const View name = rest[0] == '{' && end != rest.npos ? rest.substr(1, end - at - 1) : "}";
    size_t index = 0;
    const auto named = absl::c_find_if(call.named, [&](const auto& each) { return each.first == name; });
    const bool is_index = name.empty() || absl::SimpleAtoi(name, &index);
    if (name.empty()) index = next++;
    if (named == call.named.end() && !(is_index && index < call.arguments.size())) {
      return run.Fail("format: '", name, "' names no argument, or is a format that is not supported");
    }
    text += run.Text(is_index ? call.arguments[index] : named->second);
    rest.remove_prefix(name.size() + 2);
  }
  return Value::String(text);
}

template <bool all>
Value CountOf(Run& run, const Value& x, const Call& call) {
  const JinjaList& list = x.list();
  run.Charge(x.bytes);
  if (all) return Value::Integer(absl::c_count(list, At(call, 0)));
  const auto found = absl::c_find(list, At(call, 0));
  if (found == list.end()) return run.Fail("index: the list has no such element");
  return Value::Integer(found - list.begin());
}

template <bool is_value>
Value Half(Run& run, const Value& x, const Call&) {
  JinjaList half;
  run.ChargeItems(x.dict().size());
  for (const auto& [key, item] : x.dict()) half.push_back(is_value ? item : key);
  return Value::List(std::move(half));
}

// A method of a string, a list or a dict. Without a function, it is the filter of the name `parameters`.
constexpr JinjaBuiltin kStringMethods[] = {
    {"capitalize", "capitalize", nullptr},
    {"count", "sub",
     [](Run& run, const Value& x, const Call& call) {
       const size_t cuts = Split<false>(run, x, {{At(call, 0), Value()}}).list().size();
       return Value::Integer(static_cast<int64_t>(cuts) - 1);
     }},
    {"endswith", "suffix", Begins<true>},
    {"find", "sub", FindText<false, false>},
    {"format", "*", Format},
    {"index", "sub", FindText<false, true>},
    {"join", "iterable",
     [](Run& run, const Value& x, const Call& call) {
       return CallBuiltin(run, *FindFilter("join"), At(call, 0), {{x}});
     }},
    {"lower", "lower", nullptr},
    {"lstrip", "chars", StripSide<true>},
    {"replace", "replace", nullptr},
    {"rfind", "sub", FindText<true, false>},
    {"rsplit", "sep maxsplit", Split<true>},
    {"rstrip", "chars", StripSide<false>},
    {"split", "sep maxsplit", Split<false>},
    {"startswith", "prefix", Begins<false>},
    {"strip", "trim", nullptr},
    {"title", "", Title},
    {"upper", "upper", nullptr},
};
constexpr JinjaBuiltin kListMethods[] = {{"count", "value", CountOf<true>}, {"index", "value", CountOf<false>}};
constexpr JinjaBuiltin kDictMethods[] = {
    {"copy", "", [](Run&, const Value& x, const Call&) { return x; }},
    {"get", "key default",
     [](Run& run, const Value& x, const Call& call) {
       run.Charge(x.dict().size());
       const Value* const found = Find(x.dict(), At(call, 0));
       return found != nullptr ? *found : At(call, 1).is(Value::kUndefined) ? Value::None() : At(call, 1);
     }},
    {"items", "items", nullptr},
    {"keys", "", Half<false>},
    {"values", "", Half<true>},
};

absl::Span<const JinjaBuiltin> MethodsOf(const Value& x) {
  if (x.is(Value::kString)) return kStringMethods;
  if (x.is(Value::kDict)) return kDictMethods;
  return x.is_list() ? absl::MakeConstSpan(kListMethods) : absl::Span<const JinjaBuiltin>();
}

Value Range(Run& run, const Call& call) {
  constexpr int64_t kMaxRange = 100'000;  // of Jinja's sandbox
  std::vector<int64_t> limits;
  for (const Value& each : call.arguments) {
    if (!each.is(Value::kInteger)) return run.Fail("range: got a ", each.KindName(), ", wanted a whole number");
    limits.push_back(each.integer());
  }
  if (limits.empty() || limits.size() > 3) return run.Fail("range: wanted 1 to 3 numbers");
  if (limits.size() == 1) limits.insert(limits.begin(), 0);
  const int64_t step = limits.size() == 3 ? limits[2] : 1;
  if (step == 0) return run.Fail("range: the step is 0");
  JinjaList numbers;
  // The limits are compared first, so the sum of `i` and `step` does not overflow before the loop ends.
  for (int64_t i = limits[0]; step > 0 ? i < limits[1] : i > limits[1];) {
    numbers.push_back(Value::Integer(i));
    if (static_cast<int64_t>(numbers.size()) > kMaxRange) return run.Fail("range: more than ", kMaxRange, " numbers");
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  run.ChargeItems(numbers.size());
  return Value::List(std::move(numbers));
}

// Returns the items of dict(a, b=1) and namespace(a, b=1).
JinjaDict ItemsOf(Run& run, const Call& call) {
  if (call.arguments.size() > 1 || (!call.arguments.empty() && !call.arguments[0].is(Value::kDict))) {
    run.Fail("wanted a dict and named arguments");
    return {};
  }
  JinjaDict items = call.arguments.empty() ? JinjaDict() : call.arguments[0].dict();
  for (const auto& [name, value] : call.named) {
    const auto old =
        absl::c_find_if(items, [&name = name](const auto& item) { return item.first == Value::String(name); });
    if (old != items.end()) items.erase(old);
    items.emplace_back(Value::String(name), value);
  }
  run.ChargeItems(items.size());
  return items;
}

Value TimeNow(Run& run, const Call& call) {
  if (call.arguments.size() != 1) return run.Fail("strftime_now: wanted a format");
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[1000];
  return Value::String(View(text, std::strftime(text, sizeof(text), run.Text(call.arguments[0]).c_str(), &local)));
}

}  // namespace

const JinjaBuiltin* FindIn(absl::Span<const JinjaBuiltin> table, View name) {
  const auto found = absl::c_find_if(table, [&](const JinjaBuiltin& each) { return each.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Value JinjaRun::Lookup(const std::string& name) const {
  for (const JinjaScope* each = scope; each != nullptr; each = each->parent) {
    const auto found = each->variables.find(name);
    if (found != each->variables.end()) return found->second;
  }
  return GlobalFunction(name);
}

Value JinjaRun::Call(const Value& function, const JinjaCall& call) {
  if (function.is(Value::kUndefined)) return Fail("'", function.text(), "' is undefined, and can't be called");
  if (!function.is(Value::kFunction)) return Fail("a ", function.KindName(), " can't be called");
  const auto used = std::abs(stack_ - static_cast<const char*>(__builtin_frame_address(0)));
  if (used > static_cast<ptrdiff_t>(kMaxStackBytes)) return Fail("too many macros call each other");
  if (!Charge(20)) return {};
  const int outer = line;
  Value value = function.function()(*this, call);
  line = outer;
  return value;
}

Value CallBuiltin(Run& run, const JinjaBuiltin& builtin, const Value& x, const Call& call) {
  if (!run.Charge(x.is(Value::kString) ? x.bytes + 20 : 20)) return {};
  if (builtin.function == nullptr) return CallBuiltin(run, *FindFilter(builtin.parameters), x, call);
  if (builtin.parameters == "*") return builtin.function(run, x, call);
  const std::vector<View> names = absl::StrSplit(builtin.parameters, ' ', absl::SkipEmpty());
  Call bound = {JinjaList(names.size())};
  if (call.arguments.size() > names.size()) return run.Fail(builtin.name, ": more than ", names.size(), " arguments");
  absl::c_copy(call.arguments, bound.arguments.begin());
  for (const auto& [name, value] : call.named) {
    const auto found = absl::c_find(names, name);
    if (found == names.end()) return run.Fail(builtin.name, ": the argument '", name, "' is not supported");
    bound.arguments[found - names.begin()] = value;
  }
  return builtin.function(run, x, bound);
}

Value GlobalFunction(const std::string& name) {
  static constexpr std::pair<const char*, Value (*)(Run&, const Call&)> kFunctions[] = {
      {"range", Range},
      {"strftime_now", TimeNow},
      {"dict", [](Run& run, const Call& call) { return run.Checked(Value::Dict(ItemsOf(run, call))); }},
      {"namespace", [](Run& run, const Call& call) { return run.NewNamespace(ItemsOf(run, call)); }},
      {"raise_exception",
       [](Run& run, const Call& call) {
         return run.Fail("the template says: ", call.arguments.empty() ? "" : run.Text(call.arguments[0]));
       }},
  };
  for (const auto& [each, function] : kFunctions) {
    if (name == each) return Value::Function(function);
  }
  return Value::Undefined(name);
}

Value Attribute(Run& run, const Value& x, const std::string& name) {
  if (x.is(Value::kUndefined)) return run.Fail("'", x.text(), "' is undefined, and has no attribute '", name, "'");
  if (const JinjaBuiltin* const method = FindIn(MethodsOf(x), name)) {
    return Value::Function([method, x](Run& run, const Call& call) { return CallBuiltin(run, *method, x, call); });
  }
  const JinjaDict* const items = x.is(Value::kDict) ? &x.dict() : x.is(Value::kNamespace) ? x.attributes() : nullptr;
  if (!run.Charge(items == nullptr ? 1 : items->size())) return {};
  const Value* const found = items == nullptr ? nullptr : Find(*items, Value::String(name));
  return found != nullptr ? *found : Value::Undefined(absl::StrCat(x.KindName(), ".", name));
}

Value Item(Run& run, const Value& x, const Value& key) {
  if (x.is(Value::kUndefined)) return run.Fail("'", x.text(), "' is undefined, and has no element ", key.Repr());
  if (x.is(Value::kDict)) {
    if (!run.Charge(x.dict().size())) return {};
    if (const Value* const found = Find(x.dict(), key)) return *found;
  } else if (key.is(Value::kInteger) && (x.is_list() || x.is(Value::kString))) {
    const JinjaList characters = x.is_list() ? JinjaList() : Elements(run, x);
    const JinjaList& items = x.is_list() ? x.list() : characters;
    const int64_t size = static_cast<int64_t>(items.size()), at = key.integer() + (key.integer() < 0 ? size : 0);
    if (at >= 0 && at < size) return items[static_cast<size_t>(at)];
  }
  return key.is(Value::kString) ? Attribute(run, x, key.text())
                                : Value::Undefined(absl::StrCat(x.KindName(), "[", key.Repr(), "]"));
}

JinjaList Elements(Run& run, const Value& x) {
  JinjaList elements;
  if (x.is(Value::kUndefined)) return elements;
  if (x.is_list()) return run.ChargeItems(x.list().size()) ? x.list() : elements;
  if (x.is(Value::kDict)) return Half<false>(run, x, {}).list();
  if (!x.is(Value::kString)) {
    run.Fail("a ", x.KindName(), " has no elements");
    return elements;
  }
  for (size_t i = 0, bytes; i < x.text().size() && run.ChargeItems(1); i += bytes) {
    bytes = std::max<size_t>(CharacterAt(x.text(), i).bytes, 1);
    elements.push_back(Value::String(View(x.text()).substr(i, bytes)));
  }
  return elements;
}

bool Contains(Run& run, const Value& container, const Value& x) {
  if (container.is(Value::kString)) {
    run.Charge(container.text().size());
    if (!x.is(Value::kString)) run.Fail("in: got a ", x.KindName(), ", wanted a text");
    return x.is(Value::kString) && absl::StrContains(container.text(), x.text());
  }
  return absl::c_any_of(Elements(run, container), [&](const Value& each) { return run.Equal(each, x); });
}

}  // namespace weft
