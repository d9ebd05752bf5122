// This file has the tags of templates. As for expressions, each rule of the grammar returns the function that runs it.
#include "weft/text/templates/jinja_template.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/text/templates/jinja_expression.h"
#include "weft/text/templates/jinja_lexer.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using View = absl::string_view;
using Expression = JinjaExpression;

enum class Flow : uint8_t { kNext, kBreak, kContinue };
using Statement = std::function<Flow(Run&)>;
using Block = std::vector<Statement>;

Flow Execute(const Block& block, Run& run) {
  for (const Statement& statement : block) {
    const Flow flow = run.ok() ? statement(run) : Flow::kBreak;
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

// Executes `block` in a scope of its own below `parent`, which `prepare` fills.
template <class Prepare>
Flow ExecuteInside(const Block& block, JinjaScope* parent, Run& run, Prepare prepare) {
  JinjaScope* const outer = run.scope;
  run.Enter(parent);
  prepare(run.scope->variables);
  const Flow flow = Execute(block, run);
  run.Leave(outer);
  return flow;
}

// Returns what `block` writes.
std::string Capture(
    const Block& block, JinjaScope* parent, Run& run,
    const std::function<void(absl::flat_hash_map<std::string, Value>&)>& prepare = [](auto&) {}) {
  std::string outer = std::exchange(run.out, "");
  ExecuteInside(block, parent, run, prepare);
  return std::exchange(run.out, std::move(outer));
}

// What is assigned to: names, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool tuple = false;
  std::string attribute;

  void Assign(const Value& value, absl::flat_hash_map<std::string, Value>* variables, Run& run) const {
    if (!attribute.empty()) {
      const Value space = run.Lookup(names[0]);
      if (!space.is(Value::kNamespace)) {
        run.Fail("can't assign to '", names[0], ".", attribute, "', which is no attribute of a namespace");
        return;
      }
      JinjaDict& items = *space.attributes();
      const Value key = Value::String(attribute);
      const auto old = absl::c_find_if(items, [&](const auto& item) { return item.first == key; });
      (old == items.end() ? items.emplace_back(key, Value()) : *old).second = value;
    } else if (!tuple) {
      (*variables)[names[0]] = value;
    } else {
      const JinjaList items = Elements(run, value);
      if (items.size() != names.size()) run.Fail("got ", items.size(), " values, wanted ", names.size());
      for (size_t i = 0; run.ok() && i < names.size(); ++i) (*variables)[names[i]] = items[i];
    }
  }
};

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, Expression>> parameters;  // with their defaults, which may be null
  Block body;

  // Returns the macro as a value, which sees the variables of `defined`.
  static Value In(JinjaScope* defined, const std::shared_ptr<const Macro>& macro) {
    defined->kept = true;
    return Value::Function(
        [macro, defined](Run& run, const JinjaCall& call) { return macro->Call(run, defined, call); });
  }

  Value Call(Run& run, JinjaScope* defined, const JinjaCall& call) const {
    if (call.arguments.size() > parameters.size()) {
      return run.Fail("the macro ", name, " has ", parameters.size(), " parameters, but got ", call.arguments.size());
    }
    for (const auto& [given, value] : call.named) {
      if (absl::c_none_of(parameters, [&given = given](const auto& each) { return each.first == given; })) {
        return run.Fail("the macro ", name, " has no parameter '", given, "'");
      }
    }
    const Value caller = std::exchange(run.caller, Value::Undefined("caller"));
    return Value::String(Capture(body, defined, run, [&](auto& variables) {
      if (!caller.is(Value::kUndefined)) variables["caller"] = caller;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto& [parameter, otherwise] = parameters[i];
        Value value = i < call.arguments.size() ? call.arguments[i] : Value::Undefined(parameter);
        const auto named =
            absl::c_find_if(call.named, [&parameter = parameter](const auto& each) { return each.first == parameter; });
        if (named != call.named.end()) {
          value = named->second;
        } else if (i >= call.arguments.size() && otherwise != nullptr) {
          value = otherwise(run);
        }
        variables[parameter] = std::move(value);
      }
    }));
  }
};

// Returns the variable `loop` at element `i` of `items`. `depth` counts recursive loops, which are not supported.
Value LoopAt(const JinjaList& items, size_t i) {
  const auto size = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
  const auto cycle = [at](Run& run, const JinjaCall& call) {
    if (call.arguments.empty()) return run.Fail("loop.cycle: wanted values");
    return call.arguments[static_cast<size_t>(at) % call.arguments.size()];
  };
  return Value::Dict({{Value::String("index"), Value::Integer(at + 1)},
                      {Value::String("index0"), Value::Integer(at)},
                      {Value::String("revindex"), Value::Integer(size - at)},
                      {Value::String("revindex0"), Value::Integer(size - at - 1)},
                      {Value::String("first"), Value::Bool(i == 0)},
                      {Value::String("last"), Value::Bool(at + 1 == size)},
                      {Value::String("length"), Value::Integer(size)},
                      {Value::String("depth"), Value::Integer(1)},
                      {Value::String("depth0"), Value::Integer(0)},
                      {Value::String("previtem"), i > 0 ? items[i - 1] : Value::Undefined("loop.previtem")},
                      {Value::String("nextitem"), at + 1 < size ? items[i + 1] : Value::Undefined("loop.nextitem")},
                      {Value::String("cycle"), Value::Function(cycle)}});
}

class Parser {
 public:
  explicit Parser(const std::vector<JinjaToken>& tokens) : in_(tokens) {}

  // Parses up to a tag of `ends`, whose name is then the current token, or up to the end.
  Block ParseBlock(std::initializer_list<View> ends) {
    const JinjaExpressions::Nested nested(&in_);
    Block block;
    while (in_.now().kind != JinjaToken::kEnd) {
      const JinjaToken token = in_.now();
      in_.BeginTag();
      in_.Skip();
      if (token.kind == JinjaToken::kText) {
        block.push_back([text = token.text](Run& run) {
          if (run.Charge(text.size())) run.out += text;
          return Flow::kNext;
        });
      } else if (token.kind == JinjaToken::kOutput) {
        block.push_back(ParseOutput(token.line));
      } else if (absl::c_linear_search(ends, in_.now().text)) {
        return block;
      } else {
        block.push_back(ParseTag());
      }
    }
    if (ends.size() > 0) in_.Fail("the template ends, wanted ", absl::StrJoin(ends, " or "));
    return block;
  }
  const absl::Status& status() const { return in_.status(); }

 private:
  void Close() { in_.Expect(JinjaToken::kClose, ""); }

  // Parses the rest of a tag, and a block that ends with the tag `end`.
  Block ParseBody(View end) {
    Close();
    Block body = ParseBlock({end});
    in_.Skip();
    Close();
    return body;
  }

  Statement ParseOutput(int line) {
    Expression value = in_.ParseTuple();
    Close();
    return [value = std::move(value), line](Run& run) {
      run.line = line;
      const Value result = value(run);
      if (result.is(Value::kNamespace) || result.is(Value::kFunction)) {
        run.Fail("a ", result.KindName(), " can't be printed");
      }
      if (run.ok()) run.out += run.Text(result);
      return Flow::kNext;
    };
  }

  Statement ParseTag() {
    static const auto* const kTags = new std::map<View, Statement (Parser::*)()>{
        {"if", &Parser::ParseIf},
        {"for", &Parser::ParseFor},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"break", &Parser::ParseBreak},
        {"continue", &Parser::ParseContinue},
        {"generation", &Parser::ParseGeneration},
        {"call", &Parser::ParseCall},
    };
    const int line = in_.now().line;
    const std::string name = in_.now().text;
    const auto found = kTags->find(name);
    if (found == kTags->end()) {
      in_.Fail("the tag '", name, "' is not supported here");
      return nullptr;
    }
    in_.Skip();
    return [statement = (this->*found->second)(), line](Run& run) {
      run.line = line;
      return statement(run);
    };
  }

  Statement ParseIf() {
    std::vector<std::pair<Expression, Block>> branches;
    const auto parse = [&](Expression condition) {
      Close();
      branches.emplace_back(std::move(condition), ParseBlock({"elif", "else", "endif"}));
    };
    parse(in_.ParseTuple(/*conditional=*/false));
    while (in_.TakeName("elif")) parse(in_.ParseTuple(/*conditional=*/false));
    if (in_.TakeName("else")) parse([](Run&) { return Value::Bool(true); });
    in_.Expect(JinjaToken::kName, "endif");
    Close();
    return [branches = std::move(branches)](Run& run) {
      for (const auto& [condition, block] : branches) {
        const bool holds = condition(run).Truthy();
        if (!run.ok()) break;
        if (holds) return Execute(block, run);
      }
      return Flow::kNext;
    };
  }

  Target ParseTarget() {
    Target target = {.names = {in_.ExpectName()}};
    if (in_.TakeOperator(".")) target.attribute = in_.ExpectName();
    while (in_.TakeOperator(",")) {
      target.tuple = true;
      target.names.push_back(in_.ExpectName());
    }
    if (target.tuple && !target.attribute.empty()) in_.Fail("a list of names with a dot is not supported");
    return target;
  }

  Statement ParseFor() {
    const bool brackets = in_.TakeOperator("(");
    Target target = ParseTarget();
    if (brackets) in_.Expect(JinjaToken::kOperator, ")");
    in_.Expect(JinjaToken::kName, "in");
    Expression items = in_.ParseTuple(/*conditional=*/false);
    Expression filter = in_.TakeName("if") ? in_.Parse() : nullptr;
    if (in_.TakeName("recursive")) in_.Fail("recursive loops are not supported");
    Close();
    ++loops_;
    Block body = ParseBlock({"else", "endfor"}), otherwise;
    --loops_;
    const bool has_else = in_.TakeName("else");
    if (has_else) otherwise = ParseBody("endfor");
    if (!has_else) in_.Skip(), Close();
    return [=, body = std::move(body), otherwise = std::move(otherwise), target = std::move(target)](Run& run) {
      JinjaList all = Elements(run, items(run)), kept;
      JinjaScope* const outer = run.scope;
      for (Value& item : all) {
        bool keeps = filter == nullptr;
        if (!keeps) {
          ExecuteInside({}, outer, run, [&](auto& variables) {
            target.Assign(item, &variables, run);
            keeps = filter(run).Truthy();
          });
        }
        if (keeps) kept.push_back(std::move(item));
      }
      for (size_t i = 0; i < kept.size() && run.Charge(100); ++i) {
        const Flow flow = ExecuteInside(body, outer, run, [&](auto& variables) {
          target.Assign(kept[i], &variables, run);
          variables["loop"] = LoopAt(kept, i);
        });
        if (flow == Flow::kBreak) break;
      }
      return kept.empty() ? Execute(otherwise, run) : Flow::kNext;
    };
  }

  Statement ParseSet() {
    Target target = ParseTarget();
    if (in_.TakeOperator("=")) {
      Expression value = in_.ParseTuple();
      Close();
      return [target = std::move(target), value = std::move(value)](Run& run) {
        const Value result = value(run);
        if (run.ok()) target.Assign(result, &run.scope->variables, run);
        return Flow::kNext;
      };
    }
    Expression value = in_.ParseFilters([](Run& run) { return run.captured; });  // {% set x | trim %}
    Block body = ParseBody("endset");
    return [target = std::move(target), value = std::move(value), body = std::move(body)](Run& run) {
      run.captured = Value::String(Capture(body, run.scope, run));
      const Value result = value(run);
      if (run.ok()) target.Assign(result, &run.scope->variables, run);
      return Flow::kNext;
    };
  }

  // Parses (a, b=1) and the body of a macro, which ends with the tag `end`.
  void ParseParameters(Macro* macro) {
    in_.Expect(JinjaToken::kOperator, "(");
    while (in_.status().ok() && !in_.TakeOperator(")")) {
      std::string parameter = in_.ExpectName();
      Expression otherwise = in_.TakeOperator("=") ? in_.Parse() : nullptr;
      macro->parameters.emplace_back(std::move(parameter), std::move(otherwise));
      if (!in_.Is(JinjaToken::kOperator, ")")) in_.Expect(JinjaToken::kOperator, ",");
    }
  }
  // Parses a body from which break and continue don't leave the loops around it.
  Block ParseClosedBody(View end) {
    const int loops = std::exchange(loops_, 0);
    Block body = ParseBody(end);
    loops_ = loops;
    return body;
  }

  Statement ParseMacro() {
    auto macro = std::make_shared<Macro>();
    macro->name = in_.ExpectName();
    ParseParameters(macro.get());
    macro->body = ParseClosedBody("endmacro");
    return [macro](Run& run) {
      run.scope->variables[macro->name] = Macro::In(run.scope, macro);
      return Flow::kNext;
    };
  }

  // Parses {% call(a) macro(b) %}, whose body the macro calls as caller(a).
  Statement ParseCall() {
    auto caller = std::make_shared<Macro>(Macro{.name = "caller"});
    if (in_.Is(JinjaToken::kOperator, "(")) ParseParameters(caller.get());
    Expression macro = in_.ParsePostfixed();
    caller->body = ParseClosedBody("endcall");
    return [caller, macro = std::move(macro)](Run& run) {
      run.caller = Macro::In(run.scope, caller);
      run.out += run.Text(macro(run));
      return Flow::kNext;
    };
  }

  Statement ParseLeave(const char* name, Flow flow) {
    if (loops_ == 0) in_.Fail("'", name, "' is outside of a loop");
    Close();
    return [flow](Run&) { return flow; };
  }
  Statement ParseBreak() { return ParseLeave("break", Flow::kBreak); }
  Statement ParseContinue() { return ParseLeave("continue", Flow::kContinue); }

  // Marks the text of the model, for training; it is rendered as any other.
  Statement ParseGeneration() {
    Block body = ParseClosedBody("endgeneration");
    return [body = std::move(body)](Run& run) { return ExecuteInside(body, run.scope, run, [](auto&) {}); };
  }

  JinjaExpressions in_;
  int loops_ = 0;  // the number of loops around the current tag
};

}  // namespace

absl::StatusOr<JinjaTemplate> JinjaTemplate::Parse(absl::string_view source) {
  if (source.size() > kMaxBytes) {
    return InvalidArgument("the template has ", source.size(), " bytes, but at most ", kMaxBytes, " are supported");
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<JinjaToken> tokens, JinjaTokens(source));
  Parser parser(tokens);
  auto block = std::make_shared<const Block>(parser.ParseBlock({}));
  WEFT_RETURN_IF_ERROR(parser.status());
  JinjaTemplate parsed;
  parsed.run_ = std::make_shared<const std::function<void(Run&)>>([block](Run& run) { Execute(*block, run); });
  return parsed;
}

absl::StatusOr<std::string> JinjaTemplate::Render(const nlohmann::ordered_json& variables) const {
  JinjaRun run;
  run.Enter(nullptr);
  for (const auto& [name, value] : variables.items()) run.scope->variables[name] = Value::FromJson(value);
  run.Enter(run.scope);  // the template's own variables
  (*run_)(run);
  WEFT_RETURN_IF_ERROR(run.status());
  return std::move(run.out);
}

}  // namespace weft
