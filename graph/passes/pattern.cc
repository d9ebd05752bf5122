#include "weft/graph/passes/pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"

namespace weft {
namespace {

size_t Index(ValueId id) { return static_cast<size_t>(id); }

template <class T>
absl::optional<double> OnlyElement(const std::vector<std::byte>& bytes) {
  const T* const begin = reinterpret_cast<const T*>(bytes.data());
  const T* const end = begin + bytes.size() / sizeof(T);
  if (begin == end || std::any_of(begin, end, [&](T x) { return x != *begin; })) return absl::nullopt;
  return static_cast<double>(*begin);
}

}  // namespace

PatternRewriter::PatternRewriter(Rewrite& rewrite)
    : rewrite_(rewrite),
      program_(rewrite.program),
      tape_(rewrite.program),
      recorded_(rewrite.program.values.size()),
      uses_(rewrite.program.values.size(), 0),
      user_(rewrite.program.values.size(), kNoNode),
      fetched_(rewrite.program.values.size(), false),
      differentiated_by_(rewrite.program.values.size(), false) {
  for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
    const Node& node = program_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const size_t in = Index(node.inputs[i]);
      ++uses_[in];
      user_[in] = NodeId{n};
      if (node.op == &kGradientOp && i > 0) differentiated_by_[in] = true;
    }
  }
  for (ValueId root : rewrite.roots) {
    ++uses_[Index(root)];
    fetched_[Index(root)] = true;
  }
  CountGradients();
}

// Backwards, from users to what they use. What a gradient is taken by is not differentiated for that, and nothing is
// differentiated through a write.
void PatternRewriter::CountGradients() {
  gradients_.assign(program_.nodes.size(), 0);
  for (size_t n = program_.nodes.size(); n-- > 0;) {
    const Node& node = program_.nodes[n];
    if (node.op->writes > 0) continue;
    const bool gradient = node.op == &kGradientOp;
    const uint8_t count = static_cast<uint8_t>(std::min(gradients_[n] + gradient, 2));
    for (size_t i = 0; i < (gradient ? 1 : node.inputs.size()); ++i) {
      uint8_t& above = gradients_[static_cast<size_t>(program_.value(node.inputs[i]).producer)];
      above = std::max(above, count);
    }
  }
}

bool PatternRewriter::UnderTwoGradients(const Node& node) const {
  return node.output_count > 0 && gradients_[static_cast<size_t>(program_.value(node.output(0)).producer)] >= 2;
}

ValueId PatternRewriter::BeforeReshapes(ValueId id) const {
  while (producer(id).op == &kReshape) id = producer(id).inputs[0];
  return id;
}

const Node* PatternRewriter::OnlyUser(ValueId id) const {
  return OnlyUse(id) && !Fetched(id) ? &program_.node(user_[Index(id)]) : nullptr;
}

ValueId PatternRewriter::UsedElsewhere(absl::Span<const ValueId> inside, const Node& last) const {
  for (ValueId id : inside) {
    int uses_inside = static_cast<int>(std::count(last.inputs.begin(), last.inputs.end(), id));
    for (ValueId other : inside) {
      const auto& inputs = producer(other).inputs;
      uses_inside += static_cast<int>(std::count(inputs.begin(), inputs.end(), id));
    }
    if (uses(id) != uses_inside) return id;
  }
  return kNoValue;
}

absl::optional<double> PatternRewriter::Number(ValueId id) const {
  const Node& node = producer(id);
  if (node.op == &kFill) return node.attrs.as<FillAttrs>().value;
  if (node.op == &kReshape || node.op == &kBroadcastTo) return Number(node.inputs[0]);
  if (node.op == &kCast && IsFloat(type(id).dtype)) return Number(node.inputs[0]);
  if (node.op == &kScale) {
    const absl::optional<double> x = Number(node.inputs[0]);
    return x.has_value() ? absl::optional<double>(*x * node.attrs.as<ScaleAttrs>().factor) : absl::nullopt;
  }
  if (node.op != &kConstantOp) return absl::nullopt;
  const ConstantData& data = program_.constants[static_cast<size_t>(node.attrs.as<SourceAttrs>().index)];
  return data.type.dtype == kF32   ? OnlyElement<float>(*data.bytes)
         : data.type.dtype == kF64 ? OnlyElement<double>(*data.bytes)
                                   : absl::nullopt;
}

VarList PatternRewriter::Decline(const Node& last, const char* pattern, std::string reason) {
  rewrite_.explanations.push_back({program_.scope(last), pattern, std::move(reason)});
  return {};
}

VarList PatternRewriter::Try(const Node& node, absl::Span<const PatternRule> rules) {
  for (const PatternRule& rule : rules) {
    if (rule.last != node.op) continue;
    tape_.SetScope(node.scope);
    VarList outputs = rule.rewrite(*this, node);
    if (outputs.empty()) continue;
    if (rule.pattern != nullptr) rewrite_.explanations.push_back({program_.scope(node), rule.pattern, ""});
    changed_ = true;
    if (!tape_.status().ok()) return outputs;
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const bool fits =
          i < outputs.size() && (outputs[i] ? outputs[i].type() == type(node.output(i)) : uses(node.output(i)) == 0);
      if (fits) continue;
      tape_.Fail(absl::InternalError(absl::StrCat("a rule of ", node.op->name, ": output ", i,
                                                  " became another type, or is used and nothing stands for it")));
    }
    return outputs;
  }
  return {};
}

absl::Status PatternRewriter::Run(absl::Span<const PatternRule> rules) {
  for (const Node& node : program_.nodes) {
    VarList outputs = Try(node, rules);
    WEFT_RETURN_IF_ERROR(tape_.status());
    if (outputs.empty()) {
      VarList inputs;
      for (ValueId in : node.inputs) inputs.push_back(Now(in));
      outputs = tape_.Copy(program_, node, inputs);
    }
    for (uint32_t i = 0; i < node.output_count; ++i) recorded_[Index(node.output(i))] = outputs[i];
  }
  if (!changed_) return absl::OkStatus();
  for (ValueId& root : rewrite_.roots) root = Now(root).id;
  rewrite_.program = std::move(tape_).TakeProgram();
  return DropDead(rewrite_);
}

absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules) {
  const auto ends = [&](const Node& node) {
    return std::any_of(rules.begin(), rules.end(), [&](const PatternRule& rule) { return rule.last == node.op; });
  };
  const std::vector<Node>& nodes = rewrite.program.nodes;
  if (std::none_of(nodes.begin(), nodes.end(), ends)) return absl::OkStatus();
  return PatternRewriter(rewrite).Run(rules);
}

}  // namespace weft
