// Matchers walk through ops that do not change the meaning of a pattern: casts, reshapes, broadcasts, scales. The rules
// of attention and of norms share them, so that both accept the same spellings.
#include "weft/graph/compile/passes/pattern.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"

namespace weft {
namespace {

template <class T>
std::optional<double> OnlyElement(const std::vector<std::byte>& bytes) {
  const T* const begin = reinterpret_cast<const T*>(bytes.data());
  const T* const end = begin + bytes.size() / sizeof(T);
  if (begin == end || std::any_of(begin, end, [&](T x) { return x != *begin; })) return std::nullopt;
  return static_cast<double>(*begin);
}

}  // namespace

PatternRewriter::PatternRewriter(Rewrite& rewrite)
    : rewrite_(rewrite), uses_(rewrite), gradients_(rewrite.program.nodes.size(), 0) {
  // Counts, for each node, the nested gradient nodes that differentiate it, from the last node to the first. No
  // gradient passes through a write. Of a gradient node's inputs, only the loss is differentiated.
  for (size_t n = program().nodes.size(); n-- > 0;) {
    const Node& node = program().nodes[n];
    if (node.op->writes > 0) continue;
    const bool gradient = node.op == &kGradientOp;
    const uint8_t count = static_cast<uint8_t>(std::min(gradients_[n] + gradient, 2));
    for (size_t i = 0; i < (gradient ? 1 : node.inputs.size()); ++i) {
      uint8_t& above = gradients_[program().value(node.inputs[i]).producer];
      above = std::max(above, count);
    }
  }
}

bool PatternRewriter::UnderTwoGradients(const Node& node) const {
  return node.output_count > 0 && gradients_[program().value(node.output(0)).producer] >= 2;
}

ValueId PatternRewriter::UsedElsewhere(absl::Span<const ValueId> inside, const Node& last) const {
  const auto fetched = absl::c_find_if(inside, [&](ValueId id) { return uses_.fetched(id); });
  return fetched == inside.end() ? ReadElsewhere(inside, last) : *fetched;
}

ValueId PatternRewriter::ReadElsewhere(absl::Span<const ValueId> inside, const Node& last) const {
  for (ValueId id : inside) {
    int64_t reads_inside = absl::c_count(last.inputs, id);
    for (ValueId other : inside) reads_inside += absl::c_count(producer(other).inputs, id);
    if (uses_.reads(id) != reads_inside) return id;
  }
  return kNoValue;
}

VarList PatternRewriter::Decline(const Node& last, const char* pattern, std::string reason) {
  rewrite_.explanations.push_back({program().scope(last), pattern, std::move(reason)});
  return {};
}

Replay& PatternRewriter::replay() {
  if (!replay_.has_value()) {
    replay_.emplace(rewrite_);
    replay_->tape().SetScope(program().nodes[node_].scope);
  }
  replay_->CopyUntil(node_);
  return *replay_;
}

absl::Status PatternRewriter::Try(const Node& node, absl::Span<const PatternRule> rules) {
  for (const PatternRule& rule : rules) {
    if (rule.last != node.op) continue;
    if (replay_.has_value()) replay_->tape().SetScope(node.scope);
    const VarList outputs = rule.rewrite(*this, node);
    if (replay_.has_value()) WEFT_RETURN_IF_ERROR(replay_->tape().status());
    if (outputs.empty()) continue;
    if (rule.pattern != nullptr) rewrite_.explanations.push_back({program().scope(node), rule.pattern, ""});
    changed_ = true;
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const ValueId before = node.output(i);
      const bool fits =
          i < outputs.size() && (outputs[i] ? outputs[i].type() == type(before) : uses_.count(before) == 0);
      if (fits) continue;
      replay().tape().Fail(
          absl::InternalError(absl::StrCat("a rule of ", node.op->name, ": output ", i,
                                           " has a replacement of another type, or is used and has no replacement")));
      return replay_->tape().status();
    }
    replay().Replace(node, outputs);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status RewritePatterns(Rewrite& rewrite, absl::Span<const PatternRule> rules) {
  const auto ends = [&](const Node& node) {
    return absl::c_any_of(rules, [&](const PatternRule& rule) { return rule.last == node.op; });
  };
  if (absl::c_none_of(rewrite.program.nodes, ends)) return absl::OkStatus();
  PatternRewriter rewriter(rewrite);
  for (uint32_t& n = rewriter.node_; n < rewrite.program.nodes.size(); ++n) {
    WEFT_RETURN_IF_ERROR(rewriter.Try(rewrite.program.nodes[n], rules));
  }
  if (!rewriter.changed_) return absl::OkStatus();
  rewriter.replay().Finish();
  return DropDead(rewrite);
}

std::optional<double> MatchNumber(const PatternRewriter& r, ValueId id) {
  const Node& node = r.producer(id);
  if (r.uses().differentiated_by(id)) return std::nullopt;
  if (node.op == &kFill) return node.attrs.as<FillAttrs>().value;
  if (node.op == &kReshape || node.op == &kBroadcastTo) return MatchNumber(r, node.inputs[0]);
  if (node.op == &kCast && IsFloat(r.type(id).dtype)) return MatchNumber(r, node.inputs[0]);
  if (node.op == &kScale) {
    const std::optional<double> x = MatchNumber(r, node.inputs[0]);
    return x.has_value() ? std::optional<double>(*x * node.attrs.as<ScaleAttrs>().factor) : std::nullopt;
  }
  if (node.op != &kConstantOp) return std::nullopt;
  const ConstantData& data = r.program().constant(node);
  return data.type.dtype == kF32   ? OnlyElement<float>(*data.bytes)
         : data.type.dtype == kF64 ? OnlyElement<double>(*data.bytes)
                                   : std::nullopt;
}

std::optional<Scaled> MatchScaled(const PatternRewriter& r, ValueId id) {
  const Node& node = r.producer(id);
  if (node.op == &kScale) return Scaled{node.attrs.as<ScaleAttrs>().factor, node.inputs[0]};
  if (node.op != &kMul && node.op != &kDiv) return std::nullopt;
  if (node.op == &kMul) {
    if (const auto left = MatchNumber(r, node.inputs[0])) return Scaled{*left, node.inputs[1]};
  }
  const auto right = MatchNumber(r, node.inputs[1]);
  if (!right.has_value()) return std::nullopt;
  return Scaled{node.op == &kDiv ? 1 / *right : *right, node.inputs[0]};
}

std::optional<Shifted> MatchShifted(const PatternRewriter& r, ValueId id) {
  const Node& node = r.producer(id);
  if (node.op != &kAdd) return std::nullopt;
  for (int i : {0, 1}) {
    if (const auto number = MatchNumber(r, node.inputs[i])) return Shifted{*number, node.inputs[1 - i]};
  }
  return std::nullopt;
}

bool Permutes(const Node& node, absl::Span<const int32_t> axes) {
  if (node.op != &kPermute) return false;
  const PermuteAttrs p = node.attrs.as<PermuteAttrs>();
  return std::equal(axes.begin(), axes.end(), p.axes.begin(), p.axes.begin() + p.rank);
}

const Node& Pattern::Enter(ValueId id) {
  if (!absl::c_linear_search(inside_, id)) inside_.push_back(id);
  return r_.producer(id);
}

ValueId Pattern::BeforeReshapes(ValueId id) {
  while (r_.producer(id).op == &kReshape) id = Enter(id).inputs[0];
  return id;
}

ValueId Pattern::EnterBeforeReshapes(ValueId id) {
  id = BeforeReshapes(id);
  Enter(id);
  return id;
}

Scaled Pattern::BeforeScales(ValueId id) {
  Scaled all = {1, BeforeReshapes(id)};
  while (const auto one = MatchScaled(r_, all.x)) {
    Enter(all.x);
    all = {all.factor * one->factor, BeforeReshapes(one->x)};
  }
  return all;
}

ValueId SkipReshapes(const PatternRewriter& rewriter, ValueId id) {
  while (rewriter.producer(id).op == &kReshape && !rewriter.uses().differentiated_by(id)) {
    id = rewriter.producer(id).inputs[0];
  }
  return id;
}

}  // namespace weft
