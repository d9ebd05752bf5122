// Records ONNX's forms of attention, and rotary positions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// [B, T, heads · D] → [B, heads, T, D].
Var ByHead(Var x, int64_t heads) {
  if (x.shape().rank() == 4) return x;
  if (heads < 1 || x.dim(2) % heads != 0) {
    return x.tape->Fail(InvalidArgument(heads, " heads do not divide ", ToString(x.type())));
  }
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Var ByRow(Var x) { return Reshape(Permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}); }
Var RepeatHeads(Var x, int64_t times) {
  const Shape shape = x.shape();
  const Var apart = BroadcastTo(Unsqueeze(x, 2), {shape.dim(0), shape.dim(1), times, shape.dim(2), shape.dim(3)});
  return Reshape(apart, {shape.dim(0), shape.dim(1) * times, shape.dim(2), shape.dim(3)});
}

struct Problem {
  Var query, key, value;  // [B, heads, length, D]
  double scale, soft_cap;
  VarList masks;  // bools hide scores, numbers are added to them
};

// Returns a mask for Weft, where true hides a source. In the node's bool masks, true shows it. Float masks are added to
// scores and stay as they are. Sources beyond the mask's end are hidden.
Var Hides(Var mask, int64_t sources) {
  const int64_t missing = sources - mask.dim(-1);
  if (mask.dtype() == kBool) return Pad(Not(mask), -1, 0, missing, 1);
  return Pad(mask, -1, 0, missing, kHidden);
}
Var AtLeastRank(Var x, int rank) {
  while (x.tape->status().ok() && x.shape().rank() < rank) x = Unsqueeze(x, 0);
  return x;
}

Problem ProblemOf(const OnnxNode& node) {
  Problem p = {.soft_cap = node.Float("softcap", 0)};
  const int64_t groups = node.Int("kv_num_heads", 1);
  p.query = ByHead(node.in(0), node.Int("q_num_heads", 1));
  p.key = ByHead(node.in(1), groups);
  p.value = ByHead(node.in(2), groups);
  int64_t past = 0;
  if (node.has(4)) {
    past = node.in(4).dim(2);
    p.key = Concat({node.in(4), p.key}, 2);
    p.value = Concat({node.in(5), p.value}, 2);
  }
  p.scale = node.Float("scale", 1 / std::sqrt(static_cast<double>(p.query.dim(3))));
  const int64_t targets = p.query.dim(2), sources = p.key.dim(2);
  if (node.has(3)) p.masks.push_back(AtLeastRank(Hides(node.in(3), sources), 2));
  const Var column = Iota(node.tape(), kI32, sources);
  if (node.Int("is_causal", 0) != 0) {
    const Var row = Reshape(Iota(node.tape(), kI32, targets), {targets, 1});
    p.masks.push_back(Greater(column, row + static_cast<double>(past)));
  }
  if (node.has(6)) {
    const Var length = node.in(6);
    p.masks.push_back(GreaterEqual(column, Reshape(length, {length.dim(0), 1, 1, 1})));
  }
  return p;
}

// Returns the scores that the node may output: with `mode` 0 or 1 before masks, with 2 after masks, with 3 after
// softmax.
Var Scores(const Problem& p, int64_t mode) {
  const Var key = RepeatHeads(p.key, p.query.dim(1) / std::max<int64_t>(p.key.dim(1), 1));
  Var scores = p.scale * MatMul(p.query, key, {.transpose_b = true});
  if (p.soft_cap > 0) scores = p.soft_cap * Tanh(scores / p.soft_cap);
  if (mode < 2) return scores;
  for (Var mask : p.masks) {
    scores = mask.dtype() == kBool ? Where(mask, Number(scores, kHidden), scores) : scores + mask;
  }
  return mode == 2 ? scores : Softmax(scores);
}

OnnxResult Attention(const OnnxNode& node) {
  const Problem p = ProblemOf(node);
  const int64_t heads = p.query.dim(1), mode = node.Int("qk_matmul_output_mode", 0);
  const ScaledDotProductOptions options = {
      .heads = heads, .key_value_heads = p.key.dim(1), .scale = p.scale, .soft_cap = p.soft_cap};
  const Var y = ScaledDotProductAttention(p.query, p.key, p.value, options, p.masks);
  VarList outputs = {node.in(0).shape().rank() == 4 ? ByHead(y, heads) : y};
  if (node.output_count() > 1) outputs.push_back(p.key + 0);
  if (node.output_count() > 2) outputs.push_back(p.value + 0);
  if (node.output_count() > 3) outputs.push_back(Scores(p, mode));
  return outputs;
}

OnnxResult Rotation(const OnnxNode& node) {
  const bool by_head = node.in(0).shape().rank() == 4;
  const Var x = ByHead(node.in(0), node.Int("num_heads", 1));
  int64_t width = node.Int("rotary_embedding_dim", 0);
  if (width == 0) width = x.dim(3);
  Var cosine = node.in(1), sine = node.in(2);  // [B, T, width / 2], or of all positions
  if (node.has(3)) {
    const Var positions = node.ids(3);
    cosine = Gather(cosine, positions, 0);
    sine = Gather(sine, positions, 0);
  }
  const RotaryLayout layout = node.Int("interleaved", 0) != 0 ? RotaryLayout::kPairs : RotaryLayout::kHalves;
  Var y = Rotary(Slice(x, 3, 0, width), Unsqueeze(cosine, 1), Unsqueeze(sine, 1), layout);
  if (width < x.dim(3)) y = Concat({y, Slice(x, 3, width, x.dim(3))}, 3);
  return VarList{by_head ? y : ByRow(y)};
}

constexpr OnnxOp kOps[] = {
    {"Attention", Attention},
    {.name = "FlexAttention", .build = Attention, .domain = "ai.onnx.preview"},
    {"RotaryEmbedding", Rotation},
};

}  // namespace

absl::Span<const OnnxOp> OnnxAttention() { return kOps; }

}  // namespace weft
