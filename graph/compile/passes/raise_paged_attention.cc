// This pass recognises attention of single tokens to pages of a cache, and replaces it by the op `paged_attention`. So
// the pages are read where they are, and of them only the positions that a token sees. The pass follows the one that
// raises attention.
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
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

// Matches keys or values [batch, groups, P·S, width] that ReadPages reads from all of a cache, S at most kCachePage.
Pages MatchPages(const PatternRewriter& r, ValueId id, int64_t batch, int64_t groups, int64_t width) {
  const Node& permute = r.producer(SkipReshapes(r, id));
  if (!Permutes(permute, {0, 2, 1, 3, 4})) return {};
  const Shape& by_page = r.type(permute.inputs[0]).shape;  // [B, P, G, S, D]
  const Node& embedding = r.producer(SkipReshapes(r, permute.inputs[0]));
  if (embedding.op != &kEmbedding) return {};
  const Pages result = {SkipReshapes(r, embedding.inputs[0]), embedding.inputs[1]};
  const Shape &cache = r.type(result.cache).shape, &pages = r.type(result.pages).shape;
  const bool fits = cache.rank() == 4 && cache.dim(1) == groups && cache.dim(2) <= kCachePage &&
                    cache.dim(3) == width && pages.rank() == 2 &&
                    by_page == Shape({batch, pages.dim(1), groups, cache.dim(2), width});
  return fits ? result : Pages();
}

// Reports whether `mask` is the bool mask that RaiseAttention records for a band that ends at the positions i32 [B, 1]:
// true in all columns that a row does not see.
bool HidesLater(const PatternRewriter& r, ValueId mask, int64_t batch) {
  const Node& band = r.producer(mask);
  if (band.op != &kBandMask || band.inputs.size() < 2 || r.type(band.inputs[1]) != TensorType{kI32, {batch, 1}}) {
    return false;
  }
  const auto [value, left, right] = band.attrs.as<BandMaskAttrs>();
  const Node& nothing = r.producer(band.inputs[0]);
  const TensorType& type = r.type(mask);
  return right == 0 && value == 1 && nothing.op == &kFill && nothing.attrs.as<FillAttrs>().value == 0 &&
         type == TensorType{kBool, {batch, 1, 1, type.shape.dim(-1)}};
}

// Rewrite attention(q, read_pages(k), read_pages(v), band_mask(positions, left, 0), masks) to
// paged_attention(q, k, v, pages, positions, masks) with the attribute `left`. All targets are at `positions`. Further
// bands stay masks.
VarList ToPagedAttention(PatternRewriter& r, const Node& attention) {
  AttentionAttrs attrs = attention.attrs.as<AttentionAttrs>();
  const int64_t batch = r.type(attention.inputs[0]).shape.dim(0);
  const Pages keys = MatchPages(r, attention.inputs[1], batch, attrs.groups, attrs.key_width);
  const Pages values = MatchPages(r, attention.inputs[2], batch, attrs.groups, attrs.value_width);
  if (keys.cache == kNoValue || values.cache == kNoValue) return {};
  if (keys.pages != values.pages) return r.Decline(attention, kPattern, "keys and values are in different pages");
  if (r.type(attention.inputs[0]).shape.dim(-2) != 1) {
    return r.Decline(attention, kPattern, "a row has several targets");
  }
  if (attrs.dropout > 0 || attrs.left >= 0 || attrs.right >= 0) {
    return r.Decline(attention, kPattern, "it has a band or dropout");
  }
  if (r.uses().count(attention.output(1)) > 0) return r.Decline(attention, kPattern, "its lse is used");
  std::vector<ValueId> masks(attention.inputs.begin() + kFirstMask, attention.inputs.end());
  const auto hides_later = [&](ValueId mask) { return HidesLater(r, mask, batch); };
  const auto end = absl::c_find_if(masks, hides_later);
  if (end == masks.end()) return r.Decline(attention, kPattern, "no mask hides the positions after a row's own");
  const Node& band = r.producer(*end);
  if (const int64_t left = band.attrs.as<BandMaskAttrs>().left; left >= 0) attrs.left = BandLimit(left);
  masks.erase(end);
  VarList inputs = {r.Now(attention.inputs[0]), r.Now(keys.cache), r.Now(values.cache), r.Now(keys.pages),
                    r.Now(band.inputs[1])};
  for (ValueId mask : masks) inputs.push_back(r.Now(mask));
  return {RecordAll(kPagedAttention, inputs, Attrs::Of(attrs))[0], Var{}};
}

}  // namespace

absl::Status RaisePagedAttention(Rewrite& rewrite) {
  return RewritePatterns(rewrite, {{&kAttention, kPattern, ToPagedAttention}});
}

}  // namespace weft
