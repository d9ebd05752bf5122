#include "weft/text/templates/jinja_value.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Value = JinjaValue;

// Returns the shortest digits that give `number` again, with an exponent from 1e16 on and below 1e-4.
std::string FloatText(double number, bool json) {
  if (std::isnan(number)) return json ? "NaN" : "nan";
  if (std::isinf(number)) return absl::StrCat(number < 0 ? "-" : "", json ? "Infinity" : "inf");
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  return plain && text.find('.') == text.npos ? text + ".0" : text;
}

// Reports whether Python's repr writes the character as it is.
bool IsPrintable(int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code_point == ' ';
    default:
      return true;
  }
}

std::string Quote(absl::string_view text) {
  const char mark = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string quoted(1, mark);
  for (size_t i = 0, bytes; i < text.size(); i += bytes) {
    const Utf8Character c = CharacterAt(text, i);
    bytes = std::max<size_t>(c.bytes, 1);
    if (text[i] == mark || text[i] == '\\') {
      absl::StrAppend(&quoted, "\\", text.substr(i, 1));
    } else if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
      absl::StrAppend(&quoted, "\\", text[i] == '\n' ? "n" : text[i] == '\r' ? "r" : "t");
    } else if (c.bytes == 0 || IsPrintable(c.code_point)) {
      absl::StrAppend(&quoted, text.substr(i, bytes));
    } else {
      const int digits = c.code_point < 0x100 ? 2 : c.code_point < 0x10000 ? 4 : 8;
      absl::StrAppendFormat(&quoted, "\\%c%0*x", digits == 2 ? 'x' : digits == 4 ? 'u' : 'U', digits, c.code_point);
    }
  }
  return quoted + mark;
}

constexpr size_t kMaxBytes = size_t{1} << 40;  // of estimates, so that they don't overflow

// Counts `item` as an element of `value`.
void Count(const Value& item, Value* value) {
  value->depth = std::max(value->depth, item.depth + 1);
  value->bytes = std::min(value->bytes + item.bytes + kJinjaItemBytes, kMaxBytes);
}

}  // namespace

Value Value::List(JinjaList items, Kind kind) {
  Value value = {kind, {}, 1};
  for (const Value& item : items) Count(item, &value);
  value.data = std::make_shared<const JinjaList>(std::move(items));
  return value;
}

Value Value::Dict(JinjaDict items) {
  Value value = {kDict, {}, 1};
  for (const auto& [key, item] : items) Count(key, &value), Count(item, &value);
  value.data = std::make_shared<const JinjaDict>(std::move(items));
  return value;
}

Value Value::FromJson(const nlohmann::ordered_json& json) {
  if (json.is_null()) return None();
  if (json.is_boolean()) return Bool(json.get<bool>());
  if (json.is_number_integer()) return Integer(json.get<int64_t>());
  if (json.is_number()) return Float(json.get<double>());
  if (json.is_string()) return String(json.get_ref<const std::string&>());
  JinjaList list;
  JinjaDict dict;
  if (json.is_array()) {
    for (const auto& item : json) list.push_back(FromJson(item));
    return List(std::move(list));
  }
  for (const auto& [key, item] : json.items()) dict.emplace_back(String(key), FromJson(item));
  return Dict(std::move(dict));
}

bool Value::Truthy() const {
  switch (kind) {
    case kUndefined:
    case kNone:
      return false;
    case kBool:
    case kInteger:
      return integer() != 0;
    case kFloat:
      return number() != 0;
    case kString:
      return !text().empty();
    case kList:
    case kTuple:
      return !list().empty();
    case kDict:
      return !dict().empty();
    default:
      return true;
  }
}

std::string Value::Text() const {
  if (kind == kUndefined) return "";
  return kind == kString ? text() : Repr();
}

std::string Value::Repr() const {
  std::string all;
  switch (kind) {
    case kUndefined:
      return "Undefined";
    case kNone:
      return "None";
    case kBool:
      return integer() != 0 ? "True" : "False";
    case kInteger:
      return absl::StrCat(integer());
    case kFloat:
      return FloatText(number(), /*json=*/false);
    case kString:
      return Quote(text());
    case kList:
    case kTuple:
      for (const Value& item : list()) absl::StrAppend(&all, all.empty() ? "" : ", ", item.Repr());
      if (kind == kList) return absl::StrCat("[", all, "]");
      return absl::StrCat("(", all, list().size() == 1 ? ",)" : ")");
    case kDict:
      for (const auto& [key, item] : dict()) {
        absl::StrAppend(&all, all.empty() ? "" : ", ", key.Repr(), ": ", item.Repr());
      }
      return absl::StrCat("{", all, "}");
    default:
      return absl::StrCat("<", KindName(), ">");
  }
}

const char* Value::KindName() const {
  constexpr const char* kNames[] = {"undefined", "None",  "bool", "int",       "float",   "str",
                                    "list",      "tuple", "dict", "namespace", "function"};
  return kNames[kind];
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is(Value::kFloat) || b.is(Value::kFloat) ? a.number() == b.number() : a.integer() == b.integer();
  }
  if (a.kind != b.kind) return false;
  if (a.is(Value::kUndefined) || a.is(Value::kNone)) return true;
  if (a.is_list()) return a.list() == b.list();
  if (!a.is(Value::kDict)) return a.data == b.data;
  return a.dict().size() == b.dict().size() && std::all_of(a.dict().begin(), a.dict().end(), [&](const auto& item) {
           const Value* const other = Find(b.dict(), item.first);
           return other != nullptr && item.second == *other;
         });
}

std::optional<bool> Less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is(Value::kFloat) || b.is(Value::kFloat) ? a.number() < b.number() : a.integer() < b.integer();
  }
  if (a.kind != b.kind) return std::nullopt;
  if (a.is(Value::kString)) return a.text() < b.text();  // the order of bytes is that of code points
  if (!a.is_list()) return std::nullopt;
  const auto [x, y] = std::mismatch(a.list().begin(), a.list().end(), b.list().begin(), b.list().end());
  if (y == b.list().end()) return false;
  return x == a.list().end() ? true : Less(*x, *y);
}

const Value* Find(const JinjaDict& dict, const Value& key) {
  for (const auto& [each, value] : dict) {
    if (each == key) return &value;
  }
  return nullptr;
}

bool AppendJson(const Value& value, const JsonStyle& style, int level, std::string* json) {
  if (value.is(Value::kString)) {
    using Handler = nlohmann::ordered_json::error_handler_t;
    absl::StrAppend(json, nlohmann::ordered_json(value.text()).dump(-1, ' ', style.ascii, Handler::replace));
    return true;
  }
  if (value.is(Value::kNone)) return json->append("null"), true;
  if (value.is(Value::kBool)) return json->append(value.Truthy() ? "true" : "false"), true;
  if (value.is(Value::kFloat)) return json->append(FloatText(value.number(), /*json=*/true)), true;
  if (value.is(Value::kInteger)) return json->append(value.Text()), true;
  const bool is_dict = value.is(Value::kDict);
  if (!is_dict && !value.is_list()) return false;
  const size_t size = is_dict ? value.dict().size() : value.list().size();
  json->push_back(is_dict ? '{' : '[');
  const auto break_line = [&](int at) {
    if (!style.indent.has_value() || size == 0) return;
    json->push_back('\n');
    for (int i = 0; i < at; ++i) json->append(*style.indent);
  };
  JinjaDict sorted = is_dict ? value.dict() : JinjaDict();
  if (style.sorted) {
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return Less(a.first, b.first).value_or(false); });
  }
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) json->append(style.comma);
    break_line(level + 1);
    if (is_dict) {
      const Value& key = sorted[i].first;
      std::string text;
      if (!AppendJson(key, style, 0, &text) || key.depth > 0) return false;
      absl::StrAppend(json, key.is(Value::kString) ? text : absl::StrCat("\"", text, "\""), style.colon);
    }
    if (!AppendJson(is_dict ? sorted[i].second : value.list()[i], style, level + 1, json)) return false;
  }
  break_line(level);
  json->push_back(is_dict ? '}' : ']');
  return true;
}

}  // namespace weft
