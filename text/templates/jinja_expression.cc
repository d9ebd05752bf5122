#include "weft/text/templates/jinja_expression.h"

#include <algorithm>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using View = absl::string_view;
using Expression = JinjaExpression;
constexpr auto kOperator = JinjaToken::kOperator;
constexpr auto kName = JinjaToken::kName;

}  // namespace

JinjaCall Evaluate(const JinjaArguments& arguments, Run& run) {
  JinjaCall call;
  for (const Expression& each : arguments.arguments) call.arguments.push_back(each(run));
  if (arguments.rest != nullptr) {
    for (Value& each : Elements(run, arguments.rest(run))) call.arguments.push_back(std::move(each));
  }
  for (const auto& [name, value] : arguments.named) call.named.emplace_back(name, value(run));
  return call;
}

void JinjaExpressions::Expect(JinjaToken::Kind kind, View text) {
  if (Take(kind, text)) return;
  Fail("got '", now().text, "', wanted ", kind == JinjaToken::kClose ? "the end of the tag" : text);
}

std::string JinjaExpressions::ExpectName() {
  if (now().kind != kName) Fail("got '", now().text, "', wanted a name");
  std::string name = now().text;
  Skip();
  return name;
}

void JinjaExpressions::CountOperator() {
  constexpr int kMaxOperators = 1000;  // what is evaluated nests as deep as there are operators
  if (++operators_ > kMaxOperators) Fail("a tag has more than ", kMaxOperators, " operators");
}

Expression JinjaExpressions::Parse() {
  const Nested nested(this);
  Expression value = ParseOr();
  while (TakeName("if")) {
    CountOperator();
    Expression condition = ParseOr();
    Expression otherwise = TakeName("else") ? Parse() : [](Run&) { return Value::Undefined("a value without else"); };
    value = [value = std::move(value), condition = std::move(condition), otherwise = std::move(otherwise)](Run& run) {
      return condition(run).Truthy() ? value(run) : otherwise(run);
    };
  }
  return value;
}

Expression JinjaExpressions::ParseTuple(bool conditional) {
  Expression first = conditional ? Parse() : ParseOr();
  if (!Is(kOperator, ",")) return first;
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (TakeOperator(",") && now().kind != JinjaToken::kClose && !Is(kOperator, ")")) {
    items.push_back(conditional ? Parse() : ParseOr());
  }
  return [items = std::move(items)](Run& run) {
    JinjaList list;
    if (!run.ChargeItems(items.size())) return Value();
    for (const Expression& item : items) list.push_back(item(run));
    return run.Checked(Value::List(std::move(list), Value::kTuple));
  };
}

Expression JinjaExpressions::ParseOr() {
  Expression left = ParseAnd();
  while (TakeName("or")) {
    CountOperator();
    left = [left = std::move(left), right = ParseAnd()](Run& run) {
      Value value = left(run);
      return value.Truthy() ? value : right(run);
    };
  }
  return left;
}

Expression JinjaExpressions::ParseAnd() {
  Expression left = ParseNot();
  while (TakeName("and")) {
    CountOperator();
    left = [left = std::move(left), right = ParseNot()](Run& run) {
      Value value = left(run);
      return value.Truthy() ? right(run) : value;
    };
  }
  return left;
}

Expression JinjaExpressions::ParseNot() {
  const Nested nested(this);
  if (!TakeName("not")) return ParseComparison();
  return [value = ParseNot()](Run& run) { return Value::Bool(!value(run).Truthy()); };
}

Expression JinjaExpressions::ParseComparison() {
  Expression left = ParseSum();
  std::vector<std::pair<std::string, Expression>> rest;
  for (;;) {
    const bool symbol =
        now().kind == kOperator &&
        absl::c_linear_search(std::initializer_list<View>{"==", "!=", "<", "<=", ">", ">="}, now().text);
    const bool negated = Is(kName, "not") && next().kind == kName && next().text == "in";
    if (!symbol && !negated && !Is(kName, "in")) break;
    CountOperator();
    std::string op = negated ? "not in" : now().text;
    Skip();
    if (negated) Skip();
    rest.emplace_back(std::move(op), ParseSum());
  }
  if (rest.empty()) return left;
  return [left = std::move(left), rest = std::move(rest)](Run& run) {
    Value value = left(run);
    for (const auto& [op, right] : rest) {
      Value other = right(run);
      if (!run.ok() || !JinjaCompare(run, op, value, other)) return Value::Bool(false);
      value = std::move(other);
    }
    return Value::Bool(true);
  };
}

Expression JinjaExpressions::Binary(char op, Expression left, Expression right) {
  CountOperator();
  return [op, left = std::move(left), right = std::move(right)](Run& run) {
    const Value a = left(run), b = right(run);
    return run.ok() ? JinjaCompute(run, op, a, b) : Value();
  };
}

Expression JinjaExpressions::ParseSum() {
  Expression left = ParseConcatenation();
  while (Is(kOperator, "+") || Is(kOperator, "-")) {
    const char op = now().text[0];
    Skip();
    left = Binary(op, std::move(left), ParseConcatenation());
  }
  return left;
}

Expression JinjaExpressions::ParseConcatenation() {
  Expression first = ParseProduct();
  if (!Is(kOperator, "~")) return first;
  std::vector<Expression> parts;
  parts.push_back(std::move(first));
  while (TakeOperator("~")) parts.push_back(ParseProduct());
  return [parts = std::move(parts)](Run& run) {
    std::string text;
    for (const Expression& part : parts) {
      text += run.Text(part(run));
    }
    return Value::String(text);
  };
}

Expression JinjaExpressions::ParseProduct() {
  Expression left = ParseUnary();
  for (;;) {
    if (Is(kOperator, "**")) return Fail("the operator ** is not supported");
    const bool floor = Is(kOperator, "//");
    if (!floor && !Is(kOperator, "*") && !Is(kOperator, "/") && !Is(kOperator, "%")) return left;
    const char op = floor ? '_' : now().text[0];
    Skip();
    left = Binary(op, std::move(left), ParseUnary());
  }
}

Expression JinjaExpressions::ParseUnary(bool filters) {
  const Nested nested(this);
  Expression value;
  if (TakeOperator("-")) {
    value = Binary(
        '*', [](Run&) { return Value::Integer(-1); }, ParseUnary(false));
  } else {
    value = TakeOperator("+") ? ParseUnary(false) : ParsePrimary();
  }
  value = ParsePostfix(std::move(value));
  while (filters) {
    if (Is(kOperator, "|")) {
      value = ParseFilters(std::move(value));
    } else if (Is(kName, "is")) {
      value = ParseTest(std::move(value));
    } else {
      break;
    }
  }
  return value;
}

Expression JinjaExpressions::ParsePrimary() {
  const JinjaToken token = now();
  const auto constantly = [](Value value) {
    return [value](Run& run) { return run.Charge(value.bytes) ? value : Value(); };
  };
  Skip();
  if (token.kind == JinjaToken::kString) {
    std::string text = token.text;
    for (; now().kind == JinjaToken::kString; Skip()) text += now().text;
    return constantly(Value::String(text));
  }
  if (token.kind == JinjaToken::kInteger) {
    int64_t integer = 0;
    if (!absl::SimpleAtoi(token.text, &integer)) return Fail(token.text, " has more than 64 bits");
    return constantly(Value::Integer(integer));
  }
  if (token.kind == JinjaToken::kFloat) {
    double number = 0;
    if (!absl::SimpleAtod(token.text, &number)) return Fail(token.text, " is no number");
    return constantly(Value::Float(number));
  }
  if (token.kind == kName) {
    if (token.text == "true" || token.text == "True") return constantly(Value::Bool(true));
    if (token.text == "false" || token.text == "False") return constantly(Value::Bool(false));
    if (token.text == "none" || token.text == "None") return constantly(Value::None());
    return [name = token.text](Run& run) {
      Value value = run.Lookup(name);
      return run.Charge(value.is(Value::kString) ? value.bytes : 1) ? value : Value();
    };
  }
  if (token.kind == kOperator && token.text == "[") return ParseList("]", Value::kList);
  if (token.kind == kOperator && token.text == "{") return ParseDict();
  if (token.kind != kOperator || token.text != "(") return Fail("got '", token.text, "', wanted an expression");
  if (Is(kOperator, ")")) return ParseList(")", Value::kTuple);
  Expression inside = ParseTuple();
  Expect(kOperator, ")");
  return inside;
}

Expression JinjaExpressions::ParseList(View close, Value::Kind kind) {
  std::vector<Expression> items;
  while (status_.ok() && !TakeOperator(close)) {
    items.push_back(Parse());
    if (!Is(kOperator, close)) Expect(kOperator, ",");
  }
  return [items = std::move(items), kind](Run& run) {
    JinjaList list;
    if (!run.ChargeItems(items.size())) return Value();
    for (const Expression& item : items) list.push_back(item(run));
    return run.Checked(Value::List(std::move(list), kind));
  };
}

Expression JinjaExpressions::ParseDict() {
  std::vector<std::pair<Expression, Expression>> items;
  while (status_.ok() && !TakeOperator("}")) {
    Expression key = Parse();
    Expect(kOperator, ":");
    items.emplace_back(std::move(key), Parse());
    if (!Is(kOperator, "}")) Expect(kOperator, ",");
  }
  return [items = std::move(items)](Run& run) {
    JinjaDict dict;
    if (!run.ChargeItems(items.size() * (1 + items.size() / 16))) return Value();
    for (const auto& [key, item] : items) {
      Value name = key(run);
      if (name.depth > 0) return run.Fail("a ", name.KindName(), " is not supported as a key");
      const auto same = absl::c_find_if(dict, [&](const auto& old) { return old.first == name; });
      if (same == dict.end()) {
        dict.emplace_back(std::move(name), item(run));
      } else {
        same->second = item(run);
      }
    }
    return run.Checked(Value::Dict(std::move(dict)));
  };
}

JinjaArguments JinjaExpressions::ParseArguments() {
  JinjaArguments arguments;
  Expect(kOperator, "(");
  while (status_.ok() && !TakeOperator(")")) {
    if (Is(kOperator, "**")) Fail("arguments with ** are not supported");
    if (arguments.rest == nullptr && arguments.named.empty() && TakeOperator("*")) {
      arguments.rest = Parse();
    } else if (now().kind == kName && next().kind == kOperator && next().text == "=") {
      std::string name = ExpectName();
      Skip();
      arguments.named.emplace_back(std::move(name), Parse());
    } else {
      if (!arguments.named.empty() || arguments.rest != nullptr) Fail("an argument must have a name here");
      arguments.arguments.push_back(Parse());
    }
    if (!Is(kOperator, ")")) Expect(kOperator, ",");
  }
  return arguments;
}

Expression JinjaExpressions::ParsePostfix(Expression object) {
  for (;;) {
    if (TakeOperator(".")) {
      CountOperator();
      const JinjaToken name = now();
      if (name.kind != kName && name.kind != JinjaToken::kInteger) return Fail("wanted a name behind the dot");
      Skip();
      int64_t index = 0;
      const bool is_index = name.kind == JinjaToken::kInteger && absl::SimpleAtoi(name.text, &index);
      object = [object = std::move(object), name = name.text, is_index, index](Run& run) {
        const Value value = object(run);
        if (!run.ok()) return Value();
        return is_index ? Item(run, value, Value::Integer(index)) : Attribute(run, value, name);
      };
    } else if (Is(kOperator, "[")) {
      object = ParseSubscript(std::move(object));
    } else if (Is(kOperator, "(")) {
      CountOperator();
      object = [object = std::move(object), arguments = ParseArguments()](Run& run) {
        const Value function = object(run);
        const JinjaCall call = Evaluate(arguments, run);
        return run.ok() ? run.Call(function, call) : Value();
      };
    } else {
      return object;
    }
  }
}

Expression JinjaExpressions::ParseSubscript(Expression object) {
  CountOperator();
  Skip();
  Expression limits[3];
  int colons = 0;
  while (status_.ok() && !Is(kOperator, "]") && colons < 3) {
    if (TakeOperator(":")) {
      ++colons;
    } else {
      limits[colons] = Parse();
      if (!Is(kOperator, ":")) break;
    }
  }
  Expect(kOperator, "]");
  if (colons > 2 || (colons == 0 && limits[0] == nullptr)) return Fail("wanted an index or a slice");
  if (colons == 0) {
    return [object = std::move(object), index = std::move(limits[0])](Run& run) {
      const Value value = object(run), at = index(run);
      return run.ok() ? Item(run, value, at) : Value();
    };
  }
  return [object = std::move(object), begin = std::move(limits[0]), end = std::move(limits[1]),
          step = std::move(limits[2])](Run& run) {
    const Value value = object(run);
    const Value given[3] = {begin ? begin(run) : Value::None(), end ? end(run) : Value::None(),
                            step ? step(run) : Value::None()};
    return run.ok() ? JinjaSlice(run, value, given) : Value();
  };
}

Expression JinjaExpressions::ParseFilters(Expression input) {
  while (TakeOperator("|")) {
    CountOperator();
    const std::string name = ExpectName();
    JinjaArguments arguments;
    if (Is(kOperator, "(")) arguments = ParseArguments();
    input = [input = std::move(input), arguments = std::move(arguments), name, filter = FindFilter(name)](Run& run) {
      if (filter == nullptr) return run.Fail("the filter '", name, "' is not supported");
      const Value value = input(run);
      const JinjaCall call = Evaluate(arguments, run);
      return run.ok() ? CallBuiltin(run, *filter, value, call) : Value();
    };
  }
  return input;
}

Expression JinjaExpressions::ParseTest(Expression input) {
  CountOperator();
  Skip();
  const bool negated = TakeName("not");
  const std::string name = ExpectName();
  JinjaArguments arguments;
  const bool word =
      now().kind == kName &&
      !absl::c_linear_search(std::initializer_list<View>{"else", "or", "and", "if", "is", "in", "not"}, now().text);
  if (Is(kOperator, "(")) {
    arguments = ParseArguments();
  } else if (word || now().kind == JinjaToken::kString || now().kind == JinjaToken::kInteger ||
             now().kind == JinjaToken::kFloat || Is(kOperator, "[") || Is(kOperator, "{")) {
    arguments.arguments.push_back(ParsePostfixed());
  }
  return [input = std::move(input), arguments = std::move(arguments), name, test = FindTest(name), negated](Run& run) {
    if (test == nullptr) return run.Fail("the test '", name, "' is not supported");
    const Value value = input(run);
    const JinjaCall call = Evaluate(arguments, run);
    return Value::Bool(run.ok() && CallBuiltin(run, *test, value, call).Truthy() != negated);
  };
}

}  // namespace weft
