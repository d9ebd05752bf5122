#include "weft/text/templates/jinja_expression.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using View = absl::string_view;
using Expression = JinjaExpression;

JinjaArguments Before(Expression first, JinjaArguments rest) {
  rest.insert(rest.begin(), {"", std::move(first)});
  return rest;
}

JinjaCall Evaluate(const JinjaArguments& arguments, Run& run) {
  JinjaCall call;
  for (const auto& [name, argument] : arguments) {
    if (name == "*") {
      for (Value& each : Elements(run, argument(run))) call.arguments.push_back(std::move(each));
    } else if (name.empty()) {
      call.arguments.push_back(argument(run));
    } else {
      call.named.emplace_back(name, argument(run));
    }
  }
  return call;
}

}  // namespace

Expression JinjaConstant(const Value& value) {
  return [value](Run& run) { return run.Charge(value.bytes) ? value : Value(); };
}

void JinjaExpressions::Expect(View text) {
  if (!Take(text)) Fail("got '", now().text, "', wanted ", text);
}

std::string JinjaExpressions::ExpectName() {
  std::string name = now().text;
  if (now().kind != JinjaToken::kName) Fail("got '", name, "', wanted a name");
  Skip();
  return name;
}

Expression JinjaExpressions::Apply(const JinjaFunction& function, JinjaArguments arguments) {
  constexpr int kMaxOperators = 1000;  // what is evaluated nests as deep as there are operators
  if (++operators_ > kMaxOperators) Fail("a tag has more than ", kMaxOperators, " operators");
  // Shared, because expressions are copied while larger ones are made of them.
  const auto parts = std::make_shared<const std::pair<JinjaFunction, JinjaArguments>>(function, std::move(arguments));
  return [parts](Run& run) {
    const JinjaCall call = Evaluate(parts->second, run);
    return run.ok() ? parts->first(run, call) : Value();
  };
}

Expression JinjaExpressions::Parse() {
  const auto nested = Nest();
  Expression value = ParseBinary(kOrLevel);
  if (!Take("if")) return value;
  Expression condition = ParseBinary(kOrLevel);
  Expression otherwise = Take("else") ? Parse() : JinjaConstant(Value::Undefined("a value without else"));
  return [value = std::move(value), condition = std::move(condition), otherwise = std::move(otherwise)](Run& run) {
    return condition(run).Truthy() ? value(run) : otherwise(run);
  };
}

Expression JinjaExpressions::ParseTuple(bool conditional) {
  const auto parse = [&] { return conditional ? Parse() : ParseBinary(kOrLevel); };
  JinjaArguments items = {{"", parse()}};
  if (!Is(",")) return items[0].second;
  while (Take(",") && !Is(")") && !Is("}}") && !Is("%}")) items.emplace_back("", parse());
  return Apply(JinjaMakeTuple, std::move(items));
}

Expression JinjaExpressions::ParseLogical(int level) {
  std::vector<Expression> operands = {ParseBinary(level + 1)};
  while (Take(level == kOrLevel ? "or" : "and")) operands.push_back(ParseBinary(level + 1));
  if (operands.size() == 1) return operands[0];
  return [operands = std::move(operands), decisive = level == kOrLevel](Run& run) {
    Value value;
    for (const Expression& operand : operands) {
      value = operand(run);
      if (value.Truthy() == decisive) break;
    }
    return value;
  };
}

Expression JinjaExpressions::ParseBinary(int level) {
  if (level < kNotLevel) return ParseLogical(level);
  if (level > kMaxLevel) return ParseUnary(/*filters=*/true);
  if (level == kNotLevel && Take("not")) {
    const auto nested = Nest();
    return Apply(JinjaNot, {{"", ParseBinary(level)}});
  }
  Expression left = ParseBinary(level + 1);
  const auto find = [&] {
    const View symbol = Is("not") && tokens_[at_ + 1].text == "in" ? View("not in") : View(now().text);
    return Is(now().text) ? FindOperator(level, symbol) : nullptr;
  };
  for (const JinjaOperator* op = find(); op != nullptr; op = find()) {
    if (op->compute == nullptr) return Fail("the operator ", op->symbol, " is not supported");
    Take("not");
    Skip();
    left = Apply(op->compute, {{"", std::move(left)}, {"", ParseBinary(level + 1)}});
    if (level == kCompareLevel && find() != nullptr) Fail("comparisons in a chain are not supported");
  }
  return left;
}

Expression JinjaExpressions::ParseUnary(bool filters) {
  const auto nested = Nest();
  Expression value =
      Take("-") ? Apply(JinjaNegate, {{"", ParseUnary(/*filters=*/false)}}) : ParsePostfix(ParsePrimary());
  while (filters && (Is("|") || Is("is"))) {
    const bool test = Is("is");
    Skip();
    const bool negated = test && Take("not");
    value = ParseUse(test ? kTest : kFilter, std::move(value));
    if (negated) value = Apply(JinjaNot, {{"", std::move(value)}});
  }
  return value;
}

Expression JinjaExpressions::ParsePrimary() {
  const JinjaToken token = now();
  Skip();
  if (token.kind == JinjaToken::kString) return JinjaConstant(Value::String(token.text));
  if (token.kind == JinjaToken::kInteger) {
    int64_t integer = 0;
    if (!absl::SimpleAtoi(token.text, &integer)) return Fail(token.text, " has more than 64 bits");
    return JinjaConstant(Value::Integer(integer));
  }
  if (token.kind == JinjaToken::kName) {
    if (token.text == "true" || token.text == "True") return JinjaConstant(Value::Bool(true));
    if (token.text == "false" || token.text == "False") return JinjaConstant(Value::Bool(false));
    if (token.text == "none" || token.text == "None") return JinjaConstant(Value::None());
    return [name = token.text](Run& run) {
      Value value = run.Lookup(name);
      return run.Charge(value.is(Value::kString) ? value.bytes : 1) ? value : Value();
    };
  }
  JinjaArguments items;
  if (token.text == "(" && !Is(")")) {
    Expression inside = ParseTuple();
    Expect(")");
    return inside;
  }
  if (token.kind != JinjaToken::kOperator || !absl::StrContains("([{", token.text))
    return Fail("got '", token.text, "', wanted an expression");
  ParseList(token.text == "("   ? ")"
            : token.text == "[" ? "]"
                                : "}",
            [&] {
              items.emplace_back("", Parse());
              if (token.text != "{") return;
              Expect(":");
              items.emplace_back("", Parse());
            });
  return Apply(token.text == "("   ? JinjaMakeTuple
               : token.text == "[" ? JinjaMakeList
                                   : JinjaMakeDict,
               std::move(items));
}

JinjaArguments JinjaExpressions::ParseArguments() {
  JinjaArguments arguments;
  Expect("(");
  ParseList(")", [&] {
    std::string name = Take("*") ? "*" : "";
    if (now().kind == JinjaToken::kName && tokens_[at_ + 1].text == "=") {
      name = ExpectName();
      Skip();
    }
    arguments.emplace_back(std::move(name), Parse());
  });
  return arguments;
}

Expression JinjaExpressions::ParsePostfix(Expression object) {
  for (;;) {
    if (Take(".")) {
      const bool index = now().kind == JinjaToken::kInteger;
      Expression key = index ? ParsePrimary() : JinjaConstant(Value::String(ExpectName()));
      object = Apply(index ? JinjaItem : JinjaAttribute, {{"", std::move(object)}, {"", std::move(key)}});
    } else if (Take("[")) {
      object = ParseSubscript(std::move(object));
    } else if (Is("(")) {
      object = Apply(JinjaCallValue, Before(std::move(object), ParseArguments()));
    } else {
      return object;
    }
  }
}

Expression JinjaExpressions::ParseSubscript(Expression object) {
  JinjaArguments arguments = {{"", std::move(object)}};
  bool slice = false;
  do {
    const bool missing = Is(":") || (slice && Is("]"));
    arguments.emplace_back("", missing ? JinjaConstant(Value::None()) : Parse());
  } while (arguments.size() < 4 && Take(":") && (slice = true));
  Expect("]");
  if (!slice) return Apply(JinjaItem, std::move(arguments));
  arguments.resize(4, {"", JinjaConstant(Value::None())});
  return Apply(JinjaSlice, std::move(arguments));
}

Expression JinjaExpressions::ParseUse(JinjaUse use, Expression input) {
  const std::string name = ExpectName();
  // A name that is not supported is an error only where it is evaluated.
  const auto call = [builtin = FindBuiltin(use, name), use, name](Run& run, const JinjaCall& call) {
    if (builtin != nullptr) return CallBuiltin(run, *builtin, call);
    return run.Fail("the ", use == kTest ? "test" : "filter", " '", name, "' is not supported");
  };
  return Apply(call, Before(std::move(input), Is("(") ? ParseArguments() : JinjaArguments()));
}

}  // namespace weft
