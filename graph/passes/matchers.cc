// Matchers walk from one value towards its inputs, through ops that do not change the meaning of a pattern: casts,
// reshapes, broadcasts, scales. The rules of attention and of norms share them, so that both accept the same spellings.
#include "weft/graph/passes/matchers.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
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

std::optional<double> MatchNumber(const Program& program, ValueId id) {
  const Node& node = program.producer(id);
  if (node.op == &kFill) return node.attrs.as<FillAttrs>().value;
  if (node.op == &kReshape || node.op == &kBroadcastTo) return MatchNumber(program, node.inputs[0]);
  if (node.op == &kCast && IsFloat(program.value(id).type.dtype)) return MatchNumber(program, node.inputs[0]);
  if (node.op == &kScale) {
    const std::optional<double> x = MatchNumber(program, node.inputs[0]);
    return x.has_value() ? std::optional<double>(*x * node.attrs.as<ScaleAttrs>().factor) : std::nullopt;
  }
  if (node.op != &kConstantOp) return std::nullopt;
  const ConstantData& data = program.constant(node);
  return data.type.dtype == kF32   ? OnlyElement<float>(*data.bytes)
         : data.type.dtype == kF64 ? OnlyElement<double>(*data.bytes)
                                   : std::nullopt;
}

std::optional<Scaled> MatchScaled(const Program& program, ValueId id) {
  const Node& node = program.producer(id);
  if (node.op == &kScale) return Scaled{node.attrs.as<ScaleAttrs>().factor, node.inputs[0]};
  if (node.op != &kMul && node.op != &kDiv) return std::nullopt;
  if (node.op == &kMul) {
    if (const auto left = MatchNumber(program, node.inputs[0])) return Scaled{*left, node.inputs[1]};
  }
  const auto right = MatchNumber(program, node.inputs[1]);
  if (!right.has_value()) return std::nullopt;
  return Scaled{node.op == &kDiv ? 1 / *right : *right, node.inputs[0]};
}

std::optional<Shifted> MatchShifted(const Program& program, ValueId id) {
  const Node& node = program.producer(id);
  if (node.op != &kAdd) return std::nullopt;
  for (int i : {0, 1}) {
    if (const auto number = MatchNumber(program, node.inputs[i])) return Shifted{*number, node.inputs[1 - i]};
  }
  return std::nullopt;
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
  while (const auto one = MatchScaled(r_.program(), all.x)) {
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
