// This header declares the attributes, sizes and checks that attention and attention_gradient share.
#ifndef WEFT_OPS_ATTENTION_ATTENTION_H_
#define WEFT_OPS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "weft/core/op.h"
#include "weft/ops/kernels/attention/attention.h"

namespace weft {

// Query, key and value are [B, positions, columns]. The columns of an operand's heads lie side by side, from
// `query_column`, `key_column` or `value_column` on, so one array may hold all three operands. The op attention, but
// not attention_gradient, also accepts operands by head: [B, heads, positions, width].
struct AttentionAttrs {
  int32_t heads = 1, groups = 1;  // query heads; key-value heads, each shared by heads / groups query heads
  int32_t key_width = 1, value_width = 1;
  int64_t query_column = 0, key_column = 0, value_column = 0;
  double scale = 1;
  double soft_cap = 0;
  double dropout = 0;
  uint32_t stream = 0;
  // Limits of the band (ops/kernels/attention/attention.h): a target at position p sees sources p - left to p + right.
  // They have 32 bits because Attrs hold at most 80 bytes.
  int32_t left = -1, right = -1;
  bool by_lse = false;  // for attention_gradient: true if the gradient of lse is an input
  auto Fields() const {
    return std::tuple{AttrField{"heads", heads},
                      AttrField{"groups", groups},
                      AttrField{"key_width", key_width},
                      AttrField{"value_width", value_width},
                      AttrField{"query_column", query_column},
                      AttrField{"key_column", key_column},
                      AttrField{"value_column", value_column},
                      AttrField{"scale", scale},
                      AttrField{"soft_cap", soft_cap},
                      AttrField{"dropout", dropout},
                      AttrField{"stream", stream},
                      AttrField{"left", left},
                      AttrField{"right", right},
                      AttrField{"by_lse", by_lse}};
  }
};

// Holds the sizes of a node, computed from its attributes and from `in`, which begins with the types of query and key.
struct AttentionSizes {
  int64_t batch, targets, sources, heads, groups, key_width, value_width;

  AttentionSizes(const Attrs& attrs, TypeSpan in);
  Shape y() const { return {batch, targets, heads * value_width}; }
  Shape lse() const { return {batch, targets, heads}; }
  Shape scores() const { return {batch, heads, targets, sources}; }
  int64_t group_heads() const { return heads / groups; }
};

// Returns `limit`, a limit of a band, in the 32 bits of AttentionAttrs. A larger limit becomes 2^31 - 1. That hides the
// same sources, because no sequence is longer.
inline int32_t BandLimit(int64_t limit) {
  return static_cast<int32_t>(std::min<int64_t>(limit, std::numeric_limits<int32_t>::max()));
}

// Checks the attributes, query, key, value and the masks. `first_mask`: index of the first mask in `in`.
absl::Status CheckAttention(const char* op, const Attrs& attrs, TypeSpan in, size_t first_mask);

// Returns the cost of a node with `features` multiply-adds for each computed score. Scores after the band are not
// computed, and before it only those of the block in which the band begins.
Cost AttentionCost(const OpArgs& args, int64_t features);

// Returns the rows of head `head` in batch `b`. The operand is [B, n, columns], with head 0 at `column`, or by head,
// [B, heads, n, width].
template <class T>
Matrix<T> HeadRows(T* data, const Shape& shape, int64_t b, int64_t head, int64_t column, int64_t width) {
  if (shape.rank() == 4) return {data + (b * shape.dim(1) + head) * shape.dim(2) * width, width};
  return {data + b * shape.dim(1) * shape.dim(2) + column + head * width, shape.dim(2)};
}

// Return the workspace and the column quantum of attention and of paged_attention. A tile has whole heads.
size_t ForwardWorkspace(const OpArgs& args, absl::Span<const Rect> tiles);
int64_t HeadColumns(const OpArgs& args);

// Returns the part of a mask, which broadcasts to `scores` [B, H, T, S], for head `head` in batch `b`.
AttentionMask MaskOfHead(const Tensor& mask, const Shape& scores, int64_t b, int64_t head);

// Returns the operands and options of head `head` in batch `b`. `first_mask`: index of the first mask among the inputs.
template <class T>
AttentionHead<T> HeadOf(const KernelArgs& args, const AttentionSizes& sizes, size_t first_mask, int64_t b,
                        int64_t head) {
  const AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const int64_t group = head / sizes.group_heads();
  AttentionHead<T> result = {
      .query = HeadRows(args.input<T>(0), args.input_shape(0), b, head, attrs.query_column, sizes.key_width),
      .key = HeadRows(args.input<T>(1), args.input_shape(1), b, group, attrs.key_column, sizes.key_width),
      .value = HeadRows(args.input<T>(2), args.input_shape(2), b, group, attrs.value_column, sizes.value_width),
      .one_by_one = sizes.targets <= kFewTargets,
      .targets = sizes.targets,
      .sources = sizes.sources,
      .key_width = sizes.key_width,
      .value_width = sizes.value_width,
      .scale = attrs.scale,
      .soft_cap = attrs.soft_cap,
      .band = Band(attrs.left, attrs.right),
      .dropout = {.rate = attrs.dropout,
                  .random = args.random,
                  .first = (b * sizes.heads + head) * sizes.targets * sizes.sources}};
  result.dropout.random.stream = attrs.stream;
  for (size_t i = first_mask; i < args.inputs.size(); ++i) {
    result.masks[result.mask_count++] = MaskOfHead(args.inputs[i], sizes.scores(), b, head);
  }
  return result;
}

// Holds values that the elementary spellings of attention and attention_gradient share, in f32 for bf16 inputs. Query
// is [B, H, T, width]. Key and value are [B, H, S, width], with each key-value head repeated for its query heads.
// Scores are masked, [B, H, T, S].
struct ElementaryAttention {
  Var query, key, value, scores;
  Var slope;  // derivative of the soft cap, [B, H, T, S]; empty without a cap
};
ElementaryAttention SpellAttention(const Attrs& attrs, VarSpan inputs, size_t first_mask);
Var DropWeights(const Attrs& attrs, Var weights);  // applies the dropout of the attributes
Var ByRow(Var x);                                  // [B, heads, n, width] → [B, n, heads · width]

// Records, in elementary ops, the gradient by the masked scores [B, H, T, S]. `inputs`: those of attention_gradient.
Var ScoreGradient(const AttentionAttrs& attrs, VarSpan inputs);

}  // namespace weft

#endif  // WEFT_OPS_ATTENTION_ATTENTION_H_
