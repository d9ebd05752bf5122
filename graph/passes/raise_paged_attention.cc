// This pass recognises attention of single tokens to pages of a cache, and replaces it by the op `paged_attention`. So
// the pages are read where they are, and of them only the positions that a token sees. The pass follows the one that
// raises attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/graph/passes/matchers.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr char kPattern[] = "paged attention";
constexpr size_t kFirstMask = 3;

struct Pages {
  ValueId cache = kNoValue, pages = kNoValue;
};

// Matches keys or values [B, G, P·S, D] that ReadPages reads from a cache [N, G, S, D], with S of at most kCachePage.
Pages MatchPages(const PatternRewriter& r, ValueId id) {
  const Node& permute = r.producer(SkipReshapes(r, id));
  if (permute.op != &kPermute) return {};
  const Shape& by_page = r.type(permute.inputs[0]).shape;  // [B, P, G, S, D]
  const PermuteAttrs order = permute.attrs.as<PermuteAttrs>();
  constexpr std::array kOrder = {0, 2, 1, 3, 4};
  if (order.rank != 5 || !std::equal(kOrder.begin(), kOrder.end(), order.axes.begin())) return {};
  const Node& embedding = r.producer(SkipReshapes(r, permute.inputs[0]));
  if (embedding.op != &kEmbedding) return {};
  const Pages result = {SkipReshapes(r, embedding.inputs[0]), embedding.inputs[1]};
  const Shape &cache = r.type(result.cache).shape, &pages = r.type(result.pages).shape;
  if (cache.rank() != 4 || cache.dim(2) > kCachePage || pages.rank() != 2 ||
      by_page != Shape({pages.dim(0), pages.dim(1), cache.dim(1), cache.dim(2), cache.dim(3)})) {
    return {};
  }
  return result;
}

struct PositionMask {
  ValueId positions = kNoValue;  // i32 [B, 1]; kNoValue: the mask is another one
  int32_t left = -1;             // -1: the mask hides the sources after the target's position
};
// Matches a mask [B, 1, 1, S] of `batch` rows with one target each: positions < iota, or iota < positions + number,
// where `left` is -number.
PositionMask MatchPositionMask(const PatternRewriter& r, ValueId mask, int64_t batch) {
  const Node& less = r.producer(SkipReshapes(r, mask));
  const Shape& shape = r.type(mask).shape;
  if (less.op != &kLess || shape.rank() != 4 || shape != Shape({batch, 1, 1, shape.dim(3)})) return {};
  const bool hides_later = r.producer(less.inputs[1]).op == &kIota;
  PositionMask result;
  ValueId position = less.inputs[0];
  if (!hides_later) {
    const std::optional<Shifted> begin = MatchShifted(r.program(), less.inputs[1]);
    constexpr double kMaxLeft = std::numeric_limits<int32_t>::max();
    const double left = begin ? -begin->number : -1;
    if (r.producer(less.inputs[0]).op != &kIota || !(left >= 0 && left <= kMaxLeft && left == std::trunc(left))) {
      return {};
    }
    result.left = static_cast<int32_t>(left);
    position = begin->x;
  }
  const Node& cast = r.producer(SkipReshapes(r, position));
  const DType dtype = r.type(position).dtype;
  if (cast.op != &kCast || (dtype != kF32 && dtype != kF64)) return {};
  result.positions = SkipReshapes(r, cast.inputs[0]);
  const bool fits =
      r.type(position).shape == Shape({batch, 1, 1, 1}) && r.type(result.positions) == TensorType{kI32, {batch, 1}};
  return fits ? result : PositionMask{};
}

// Rewrite attention(q, read_pages(k), read_pages(v), positions < iota, iota < positions - left, masks) to
// paged_attention(q, k, v, pages, positions, masks) with the attribute `left`. The second mask by position is optional.
VarList ToPagedAttention(PatternRewriter& r, const Node& attention) {
  AttentionAttrs attrs = attention.attrs.as<AttentionAttrs>();
  const Pages keys = MatchPages(r, attention.inputs[1]), values = MatchPages(r, attention.inputs[2]);
  if (keys.cache == kNoValue || values.cache == kNoValue) return {};
  if (keys.pages != values.pages) return r.Decline(attention, kPattern, "keys and values are in different pages");
  if (r.type(attention.inputs[0]).shape.dim(-2) != 1) {
    return r.Decline(attention, kPattern, "a row has several targets");
  }
  if (attrs.dropout > 0 || attrs.left >= 0 || attrs.right >= 0) {
    return r.Decline(attention, kPattern, "it has a band or dropout");
  }
  if (r.uses().count(attention.output(1)) > 0) return r.Decline(attention, kPattern, "its lse is used");
  const auto masks = absl::MakeConstSpan(attention.inputs).subspan(kFirstMask);
  std::vector<PositionMask> limits;
  for (ValueId mask : masks) limits.push_back(MatchPositionMask(r, mask, r.type(attention.inputs[0]).shape.dim(0)));
  const auto end = absl::c_find_if(limits, [](const PositionMask& m) { return m.positions != kNoValue && m.left < 0; });
  if (end == limits.end()) {
    return r.Decline(attention, kPattern, "no mask hides the positions after a row's own");
  }
  VarList inputs = {r.Now(attention.inputs[0]), r.Now(keys.cache), r.Now(values.cache), r.Now(keys.pages),
                    r.Now(end->positions)};
  for (size_t i = 0; i < masks.size(); ++i) {
    if (limits[i].positions != end->positions) {
      inputs.push_back(r.Now(masks[i]));
    } else if (limits[i].left >= 0) {
      attrs.left = attrs.left < 0 ? limits[i].left : std::min(attrs.left, limits[i].left);
    }
  }
  return {RecordAll(kPagedAttention, inputs, Attrs::Of(attrs))[0], Var{}};
}

}  // namespace

absl::Status RaisePagedAttention(Rewrite& rewrite) {
  return RewritePatterns(rewrite, {{&kAttention, kPattern, ToPagedAttention}});
}

}  // namespace weft
