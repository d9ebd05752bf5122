// This file has the tags of templates. As for expressions, each rule of the grammar returns the function that runs it.
#include "weft/text/templates/jinja_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/text/templates/jinja_expression.h"

namespace weft {
namespace {

using Value = JinjaValue;
using Run = JinjaRun;
using View = absl::string_view;
using Expression = JinjaExpression;
using Statement = std::function<void(Run&)>;
using Block = std::vector<Statement>;

void Execute(const Block& block, Run& run) {
  for (const Statement& statement : block) {
    if (run.ok() && run.flow == Run::kNext) statement(run);
  }
}

// Executes `block` in a scope of its own below `parent`, which `prepare` fills.
void ExecuteInside(
    const Block& block, JinjaScope* parent, Run& run, absl::FunctionRef<void()> prepare = [] {}) {
  JinjaScope* const outer = run.scope;
  run.Enter(parent);
  prepare();
  Execute(block, run);
  run.Leave(outer);
}

// Returns what `block` writes.
Value Capture(
    const Block& block, JinjaScope* parent, Run& run, absl::FunctionRef<void()> prepare = [] {}) {
  std::string outer = std::exchange(run.out, "");
  ExecuteInside(block, parent, run, prepare);
  return Value::String(std::exchange(run.out, std::move(outer)));
}

// What is assigned to: a name, several names, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string attribute;

  void Assign(const Value& value, Run& run) const {
    if (!attribute.empty()) {
      const Value space = run.Lookup(names[0]);
      if (space.is(Value::kNamespace)) return Set(space.attributes(), Value::String(attribute), value);
      run.Fail("can't assign to '", names[0], ".", attribute, "', which is no attribute of a namespace");
    } else if (names.size() == 1) {
      run.scope->variables[names[0]] = value;
    } else {
      const JinjaList items = Elements(run, value);
      if (items.size() != names.size()) run.Fail("got ", items.size(), " values, wanted ", names.size());
      for (size_t i = 0; run.ok() && i < names.size(); ++i) run.scope->variables[names[i]] = items[i];
    }
  }
};

struct Macro {
  std::string name, names;                                     // its own, and those of its parameters for Bind
  std::vector<std::pair<std::string, Expression>> parameters;  // with their defaults, which may be null
  Block body;

  // Returns the macro as a value, which sees the variables of `defined`.
  static Value In(JinjaScope* defined, const std::shared_ptr<const Macro>& macro) {
    defined->kept = true;
    return Value::Function([=](Run& run, JinjaCall call) { return macro->Call(run, defined, std::move(call)); });
  }

  Value Call(Run& run, JinjaScope* defined, JinjaCall call) const {
    const size_t given = call.arguments.size();  // the last parameter is `caller`, which has no place in the call
    if (given >= parameters.size()) return run.Fail("the macro ", name, " has fewer than ", given, " parameters");
    Bind(run, name, names, &call);
    if (!run.ok()) return {};
    return Capture(body, defined, run, [&] {
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto& [parameter, otherwise] = parameters[i];
        Value& value = call.arguments[i];
        if (value.is_missing()) value = otherwise != nullptr ? otherwise(run) : Value::Undefined(parameter);
        run.scope->variables[parameter] = value;
      }
    });
  }
};

// Returns the variable `loop` at element `i` of `items`. `depth` counts recursive loops, which are not supported.
Value LoopAt(const JinjaList& items, size_t i) {
  const auto size = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
  const auto number = [](int64_t n) { return Value::Integer(n); };
  const auto item = [&](int64_t n) {
    return n >= 0 && n < size ? items[n] : Value::Undefined("an item outside of the loop");
  };
  const std::pair<const char*, Value> variables[] = {
      {"index", number(at + 1)},       {"index0", number(at)},
      {"revindex", number(size - at)}, {"revindex0", number(size - at - 1)},
      {"first", Value::Bool(at == 0)}, {"last", Value::Bool(at + 1 == size)},
      {"length", number(size)},        {"depth", number(1)},
      {"depth0", number(0)},           {"previtem", item(at - 1)},
      {"nextitem", item(at + 1)}};
  JinjaList loop;
  for (const auto& [name, value] : variables) loop.insert(loop.end(), {Value::String(name), value});
  return Value::List(std::move(loop), Value::kDict);
}

class Parser {
 public:
  explicit Parser(const std::vector<JinjaToken>& tokens) : in_(tokens) {}

  // Parses up to a tag of `ends`, whose name is then the current token, or up to the end.
  Block ParseBlock(std::initializer_list<View> ends) {
    const auto nested = in_.Nest();
    Block block;
    while (in_.now().kind != JinjaToken::kEnd) {
      const JinjaToken token = in_.now();
      in_.BeginTag();
      in_.Skip();
      if (token.kind == JinjaToken::kTag && absl::c_linear_search(ends, in_.now().text)) return block;
      Statement statement = token.kind == JinjaToken::kText     ? Print(JinjaConstant(Value::String(token.text)))
                            : token.kind == JinjaToken::kOutput ? ParseOutput()
                                                                : ParseTag();
      block.push_back([statement = std::move(statement), line = token.line](Run& run) {
        run.line = line;
        statement(run);
      });
    }
    if (ends.size() > 0) in_.Fail("the template ends, wanted ", absl::StrJoin(ends, " or "));
    return block;
  }
  const absl::Status& status() const { return in_.status(); }

 private:
  // Parses the rest of a tag, and a block that ends with the tag `end`. `loops`: of how many loops the block can leave.
  Block ParseBody(View end, int loops = 0) {
    in_.Expect("%}");
    std::swap(loops_, loops);
    Block body = ParseBlock({end});
    std::swap(loops_, loops);
    in_.Skip();
    in_.Expect("%}");
    return body;
  }

  // Returns the statement that writes `value`.
  static Statement Print(Expression value) {
    return [value = std::move(value)](Run& run) {
      const Value result = value(run);
      const bool has_text = !result.is(Value::kNamespace) && !result.is(Value::kFunction);
      if (!has_text) run.Fail(result.KindName(), " can't be printed");
      if (run.ok()) run.out += run.Text(result);
    };
  }
  Statement ParseOutput() {
    Expression value = in_.ParseTuple();
    in_.Expect("}}");
    return Print(std::move(value));
  }

  Statement ParseTag() {
    if (in_.Take("if")) return ParseIf();
    if (in_.Take("for")) return ParseFor();
    if (in_.Take("set")) return ParseSet();
    if (in_.Take("macro")) return ParseMacro();
    if (in_.Take("call")) return ParseCall();
    if (in_.Take("generation")) return ParseGeneration();
    if (in_.Take("break")) return ParseLeave(Run::kBreak);
    if (in_.Take("continue")) return ParseLeave(Run::kContinue);
    in_.Fail("the tag '", in_.now().text, "' is not supported here");
    return nullptr;
  }

  Statement ParseIf() {
    std::vector<std::pair<Expression, Block>> branches;
    const auto parse = [&](Expression condition) {
      in_.Expect("%}");
      branches.emplace_back(std::move(condition), ParseBlock({"elif", "else", "endif"}));
    };
    do parse(in_.ParseTuple(/*conditional=*/false));
    while (in_.Take("elif"));
    if (in_.Take("else")) parse([](Run&) { return Value::Bool(true); });
    in_.Expect("endif");
    in_.Expect("%}");
    return [branches = std::move(branches)](Run& run) {
      const auto holds = [&](const auto& branch) { return branch.first(run).Truthy(); };
      const auto found = absl::c_find_if(branches, holds);
      if (found != branches.end()) Execute(found->second, run);
    };
  }

  Target ParseTarget() {
    Target target = {.names = {in_.ExpectName()}};
    while (in_.Take(",")) target.names.push_back(in_.ExpectName());
    if (target.names.size() == 1 && in_.Take(".")) target.attribute = in_.ExpectName();
    return target;
  }

  Statement ParseFor() {
    const bool brackets = in_.Take("(");
    Target target = ParseTarget();
    if (brackets) in_.Expect(")");
    in_.Expect("in");
    Expression items = in_.ParseTuple(/*conditional=*/false);
    Expression filter = in_.Take("if") ? in_.Parse() : nullptr;
    Block body = ParseBody("endfor", loops_ + 1);
    return [=, body = std::move(body), target = std::move(target)](Run& run) {
      JinjaList kept;
      for (Value& item : Elements(run, items(run))) {
        bool keeps = true;
        if (filter != nullptr) {
          ExecuteInside({}, run.scope, run, [&] {
            target.Assign(item, run);
            keeps = filter(run).Truthy();
          });
        }
        if (keeps) kept.push_back(std::move(item));
      }
      for (size_t i = 0; i < kept.size() && run.Charge(100); ++i) {
        ExecuteInside(body, run.scope, run, [&] {
          target.Assign(kept[i], run);
          run.scope->variables["loop"] = LoopAt(kept, i);
        });
        if (std::exchange(run.flow, Run::kNext) == Run::kBreak) break;
      }
    };
  }

  // Parses {% set a = b %} and {% set a %}text{% endset %}.
  Statement ParseSet() {
    Target target = ParseTarget();
    Expression value;
    if (in_.Take("=")) {
      value = in_.ParseTuple();
      in_.Expect("%}");
    } else {
      value = [body = ParseBody("endset")](Run& run) { return Capture(body, run.scope, run); };
    }
    return [target = std::move(target), value = std::move(value)](Run& run) {
      const Value result = value(run);
      if (run.ok()) target.Assign(result, run);
    };
  }

  // Parses the body of `macro`, which ends with the tag `end`.
  std::shared_ptr<const Macro> ParseMacroBody(Macro macro, View end) {
    macro.parameters.emplace_back("caller", nullptr);
    for (const auto& [parameter, otherwise] : macro.parameters) absl::StrAppend(&macro.names, parameter, "? ");
    macro.body = ParseBody(end);
    return std::make_shared<const Macro>(std::move(macro));
  }

  Statement ParseMacro() {
    Macro macro = {.name = in_.ExpectName()};
    in_.Expect("(");
    in_.ParseList(")", [&] {
      std::string parameter = in_.ExpectName();
      macro.parameters.emplace_back(std::move(parameter), in_.Take("=") ? in_.Parse() : nullptr);
    });
    return [macro = ParseMacroBody(std::move(macro), "endmacro")](Run& run) {
      run.scope->variables[macro->name] = Macro::In(run.scope, macro);
    };
  }

  // Parses {% call macro(a) %}, whose body the macro calls as caller().
  Statement ParseCall() {
    Expression macro = [name = in_.ExpectName()](Run& run) { return run.Lookup(name); };
    JinjaArguments arguments = in_.ParseArguments({{"", std::move(macro)}});
    arguments.emplace_back("caller", [body = ParseMacroBody({.name = "caller"}, "endcall")](Run& run) {
      return Macro::In(run.scope, body);
    });
    return Print(in_.Apply(JinjaCallValue, std::move(arguments)));
  }

  Statement ParseLeave(Run::Flow flow) {
    if (loops_ == 0) in_.Fail("break and continue are not supported outside of loops");
    in_.Expect("%}");
    return [flow](Run& run) { run.flow = flow; };
  }

  // Parses a block that marks the text of the model, for training. It is rendered as any other.
  Statement ParseGeneration() {
    return [body = ParseBody("endgeneration")](Run& run) { ExecuteInside(body, run.scope, run); };
  }

  JinjaExpressions in_;
  int loops_ = 0;  // around the current tag, which break and continue can leave
};

}  // namespace

absl::StatusOr<JinjaTemplate> JinjaTemplate::Parse(View source) {
  if (source.size() > kMaxBytes) {
    return InvalidArgument("the template has ", source.size(), " bytes, but at most ", kMaxBytes, " are supported");
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<JinjaToken> tokens, JinjaTokens(source));
  Parser parser(tokens);
  Block block = parser.ParseBlock({});
  WEFT_RETURN_IF_ERROR(parser.status());
  JinjaTemplate parsed;
  parsed.run_ = [block = std::move(block)](Run& run) { Execute(block, run); };
  return parsed;
}

absl::StatusOr<std::string> JinjaTemplate::Render(const nlohmann::ordered_json& variables) const {
  JinjaRun run;
  run.Enter(nullptr);
  for (const auto& [name, value] : variables.items()) run.scope->variables[name] = Value::FromJson(value);
  run.Enter(run.scope);  // the template's own variables
  run_(run);
  WEFT_RETURN_IF_ERROR(run.status());
  return std::move(run.out);
}

}  // namespace weft
