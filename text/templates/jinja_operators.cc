// The operators of expressions, with the meaning that Python gives them. Whole numbers have 64 bits.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "weft/text/templates/jinja_run.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;

Value Repeat(Run& run, const Value& x, int64_t count) {
  const size_t size = x.is(Value::kString) ? x.text().size() : x.list().size() * kJinjaItemBytes;
  count = std::max<int64_t>(count, 0);
  if (size > 0 && count > static_cast<int64_t>(Run::kMaxWork / size)) count = Run::kMaxWork;
  if (!run.Charge(size * static_cast<size_t>(count))) return {};
  std::string text;
  JinjaList list;
  for (int64_t i = 0; i < count && size > 0; ++i) {
    if (x.is(Value::kString)) text += x.text();
    if (x.is_list()) list.insert(list.end(), x.list().begin(), x.list().end());
  }
  return x.is(Value::kString) ? Value::String(text) : run.Checked(Value::List(std::move(list), x.kind));
}

Value Numbers(Run& run, char op, const Value& a, const Value& b) {
  const double x = a.number(), y = b.number();
  const bool divides = op == '/' || op == '%' || op == '_';
  if (divides && y == 0) return run.Fail("division by zero");
  if (op == '/') return Value::Float(x / y);
  if (a.is(Value::kFloat) || b.is(Value::kFloat)) {
    const double remainder = std::fmod(x, y) + (std::fmod(x, y) != 0 && (x < 0) != (y < 0) ? y : 0);
    return Value::Float(op == '+'   ? x + y
                        : op == '-' ? x - y
                        : op == '*' ? x * y
                        : op == '_' ? std::floor(x / y)
                                    : remainder);
  }
  const int64_t i = a.integer(), j = b.integer();
  int64_t result = 0;
  bool overflow = false;
  if (op == '+') overflow = __builtin_add_overflow(i, j, &result);
  if (op == '-') overflow = __builtin_sub_overflow(i, j, &result);
  if (op == '*') overflow = __builtin_mul_overflow(i, j, &result);
  if (divides && j == -1) {  // the quotient of the least integer is too large
    overflow = op == '_' && __builtin_sub_overflow(int64_t{0}, i, &result);
  } else if (divides) {
    const bool rounds = i % j != 0 && (i < 0) != (j < 0);
    result = op == '_' ? i / j - (rounds ? 1 : 0) : i % j + (rounds ? j : 0);
  }
  return overflow ? run.Fail("a whole number of more than 64 bits is not supported") : Value::Integer(result);
}

}  // namespace

Value JinjaCompute(Run& run, char op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return Numbers(run, op, a, b);
  const bool texts = a.is(Value::kString) && b.is(Value::kString);
  if (op == '+' && texts) {
    return run.Charge(a.text().size() + b.text().size()) ? Value::String(a.text() + b.text()) : Value();
  }
  if (op == '+' && a.is_list() && a.kind == b.kind) {
    JinjaList all = Elements(run, a);
    for (Value& each : Elements(run, b)) all.push_back(std::move(each));
    return run.Checked(Value::List(std::move(all), a.kind));
  }
  const bool repeats = op == '*' && (a.is(Value::kInteger) || b.is(Value::kInteger));
  if (repeats && (a.is(Value::kString) || a.is_list())) return Repeat(run, a, b.integer());
  if (repeats && (b.is(Value::kString) || b.is_list())) return Repeat(run, b, a.integer());
  const std::string name = op == '_' ? "//" : std::string(1, op);
  for (const Value* each : {&a, &b}) {
    if (each->is(Value::kUndefined)) return run.Fail("'", each->text(), "' is undefined, and has no ", name);
  }
  return run.Fail("can't compute ", a.KindName(), " ", name, " ", b.KindName());
}

Value JinjaSlice(Run& run, const Value& x, const Value (&limits)[3]) {
  if (x.is(Value::kUndefined)) return run.Fail("'", x.text(), "' is undefined, and has no elements");
  if (!x.is(Value::kString) && !x.is_list()) return run.Fail("a ", x.KindName(), " has no slices");
  const JinjaList items = Elements(run, x);
  const auto size = static_cast<int64_t>(items.size());
  for (const Value& limit : limits) {
    if (limit.is(Value::kNone) || limit.is(Value::kInteger)) continue;
    return run.Fail("the limit of a slice is a ", limit.KindName(), ", wanted a whole number");
  }
  const int64_t step = limits[2].is(Value::kNone) ? 1 : limits[2].integer();
  if (step == 0) return run.Fail("the step of a slice is 0");
  const auto limit = [&](const Value& given, int64_t otherwise) {
    if (given.is(Value::kNone)) return otherwise;
    const int64_t at = given.integer() + (given.integer() < 0 ? size : 0);
    return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
  };
  const int64_t end = limit(limits[1], step > 0 ? size : -1);
  JinjaList kept;
  for (int64_t i = limit(limits[0], step > 0 ? 0 : size - 1); step > 0 ? i < end : i > end;) {
    kept.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (!x.is(Value::kString)) return Value::List(std::move(kept), x.kind);
  std::string text;
  for (const Value& each : kept) text += each.text();
  return Value::String(text);
}

bool JinjaCompare(Run& run, const std::string& op, const Value& a, const Value& b) {
  if (op == "in") return Contains(run, b, a);
  if (op == "not in") return !Contains(run, b, a);
  return CallBuiltin(run, *FindTest(op), a, {{b}}).Truthy();
}

}  // namespace weft
