// Values, and how Python prints, compares and strips them.
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/text/templates/jinja_run.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Json = nlohmann::ordered_json;

// Returns the shortest digits that give `number` again, with an exponent from 1e16 on and below 1e-4.
std::string FloatText(double number) {
  const bool plain = number == 0 || (std::abs(number) >= 1e-4 && std::abs(number) < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  char digits[400];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number, format);
  const std::string text(digits, end.ptr);
  return plain && text.find('.') == text.npos ? text + ".0" : text;
}

// Reports whether Python's repr writes the character as it is. From ZS on, categories are separators and controls.
bool IsPrintable(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return code_point == ' ' || (category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS);
}

std::string Quote(absl::string_view text) {
  const char mark = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string quoted(1, mark);
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    const size_t escape = absl::string_view("\\\n\r\t").find(character[0]);
    if (escape != text.npos || character[0] == mark) {
      absl::StrAppend(&quoted, "\\", escape == text.npos ? character : absl::string_view("\\nrt").substr(escape, 1));
    } else if (c < 0 || IsPrintable(c)) {
      absl::StrAppend(&quoted, character);
    } else {
      const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
      absl::StrAppendFormat(&quoted, "\\%c%0*x", digits == 2 ? 'x' : digits == 4 ? 'u' : 'U', digits, c);
    }
  });
  return quoted + mark;
}

}  // namespace

Value Value::List(JinjaList items, Kind kind) {
  constexpr size_t kMaxBytes = size_t{1} << 40;  // of estimates, so that they don't overflow
  Value value = {kind};
  for (const Value& item : items) {
    value.depth = std::max(value.depth, item.depth + 1);
    value.bytes = std::min(value.bytes + item.bytes + kItemBytes, kMaxBytes);
  }
  value.data = std::make_shared<const JinjaList>(std::move(items));
  return value;
}

Value Value::FromJson(const Json& json) {
  if (json.is_null()) return None();
  if (json.is_boolean()) return Bool(json.get<bool>());
  if (json.is_number_integer()) return Integer(json.get<int64_t>());
  if (json.is_number()) return {kFloat, json.get<double>()};
  if (json.is_string()) return String(json.get_ref<const std::string&>());
  JinjaList list;
  for (const auto& [key, item] : json.items()) {
    if (json.is_object()) list.push_back(String(key));
    list.push_back(FromJson(item));
  }
  return List(std::move(list), json.is_array() ? kList : kDict);
}

bool Value::Truthy() const {
  if (is_number()) return number() != 0;
  if (is(kString)) return !text().empty();
  return is_container() ? !list().empty() : !is(kUndefined) && !is(kNone);
}

std::string Value::Text() const {
  if (is(kString)) return text();
  std::string all;
  if (!is(kUndefined)) Append(*this, {}, 0, &all);
  return all;
}

std::string Value::KindName() const {
  constexpr const char* kNames[] = {"undefined", "None",    "a bool", "an int",      "a float",   "a str",
                                    "a list",    "a tuple", "a dict", "a namespace", "a function"};
  return is(kUndefined) ? absl::StrCat("the undefined value '", text(), "'") : kNames[kind];
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind != b.kind) return false;
  if (a.is(Value::kUndefined)) return true;
  if (a.is_list()) return a.list() == b.list();
  if (!a.is(Value::kDict)) return a.data == b.data;
  const JinjaList &x = a.list(), &y = b.list();
  for (size_t i = 0; i < x.size(); i += 2) {
    const Value* const other = Find(y, x[i]);
    if (other == nullptr || !(*other == x[i + 1])) return false;
  }
  return x.size() == y.size();
}

std::optional<bool> Less(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (!a.is(Value::kString) || !b.is(Value::kString)) return std::nullopt;
  return a.text() < b.text();  // the order of bytes is that of code points
}

const Value* Find(const JinjaList& dict, const Value& key) {
  for (size_t i = 0; i < dict.size(); i += 2) {
    if (dict[i] == key) return &dict[i + 1];
  }
  return nullptr;
}

void Set(JinjaList* dict, const Value& key, const Value& value) {
  if (const Value* const old = Find(*dict, key)) {
    (*dict)[old - dict->data()] = value;
  } else {
    dict->insert(dict->end(), {key, value});
  }
}

bool Append(const Value& value, const JinjaStyle& style, size_t level, std::string* text) {
  const auto append = [text](absl::string_view part) { return text->append(part.data(), part.size()), true; };
  if (value.is(Value::kUndefined) && !style.json) return append("Undefined");
  if (value.is(Value::kNone)) return append(style.json ? "null" : "None");
  const char* const words[] = {"False", "True", "false", "true"};
  if (value.is(Value::kBool)) return append(words[value.integer() + (style.json ? 2 : 0)]);
  if (value.is(Value::kInteger)) return append(absl::StrCat(value.integer()));
  if (value.is(Value::kFloat)) return append(FloatText(value.number()));
  if (value.is(Value::kString) && !style.json) return append(Quote(value.text()));
  if (value.is(Value::kString)) {
    return append(Json(value.text()).dump(-1, ' ', style.ascii, Json::error_handler_t::replace));
  }
  if (!value.is_container()) return !style.json && append(absl::StrCat("<", value.KindName(), ">"));
  const JinjaList& list = value.list();
  const bool is_dict = value.is(Value::kDict), round = value.is(Value::kTuple) && !style.json;
  const auto break_line = [&](size_t spaces) {
    if (style.indent.has_value() && !list.empty())
      absl::StrAppend(text, "\n", std::string(spaces * *style.indent, ' '));
  };
  append(is_dict ? "{" : round ? "(" : "[");
  for (size_t i = 0; i < list.size(); ++i) {
    append(i > 0 ? style.comma : "");
    break_line(level + 1);
    if (is_dict) {
      if (style.json && !list[i].is(Value::kString)) return false;
      Append(list[i++], style, 0, text);
      append(style.colon);
    }
    if (!Append(list[i], style, level + 1, text)) return false;
  }
  break_line(level);
  return append(is_dict ? "}" : !round ? "]" : list.size() == 1 ? ",)" : ")");
}

absl::string_view PythonStrip(absl::string_view text, bool left, bool right, const std::string* characters) {
  const auto strips = [&](size_t begin) {
    const Utf8Character c = CharacterAt(text, begin);
    if (characters != nullptr) return c.bytes > 0 && absl::StrContains(*characters, text.substr(begin, c.bytes));
    return IsSpace(c.code_point) || (c.code_point >= 0x1C && c.code_point <= 0x1F);
  };
  while (left && !text.empty() && strips(0)) text.remove_prefix(CharacterAt(text, 0).bytes);
  while (right && !text.empty() && strips(CharacterBegin(text, text.size() - 1))) {
    text = text.substr(0, CharacterBegin(text, text.size() - 1));
  }
  return text;
}

}  // namespace weft
