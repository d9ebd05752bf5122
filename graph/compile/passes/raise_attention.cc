// This pass recognises attention in elementary ops: scores, masks, softmax and the product with the values. It replaces
// them by the op `attention`, whose kernel never writes the scores of all positions to memory.
//
// Models split projections [B, T, H·width] by head, permute them to [B, H, T, width] and scale them. The op reads the
// projections as they are in memory, without reshapes and permutations, even if one product made all three.
//
// Axes: B batch, H heads, T targets (positions of queries), S sources (positions of keys and values). Keys and values
// have G <= H heads, the key-value groups: each serves H / G heads of queries.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

constexpr char kPattern[] = "attention";
constexpr char kBroadcast[] = "queries, keys and values broadcast against one another";

bool SameLeadingAxes(const Shape& a, const Shape& b) {
  return a.dims().first(a.rank() - 2) == b.dims().first(b.rank() - 2);
}

bool IsMasked(const Node& node) { return node.op == &kMaskFill || node.op == &kBandMask; }

// Reports whether `id` is a product of matrices, or comes from one through scales, reshapes, masks, sums and tanh. Of a
// sum, only the first addend is examined.
bool LeadsToProduct(const PatternRewriter& r, ValueId id) {
  while (true) {
    const Node& node = r.producer(id);
    if (node.op == &kMatmul) return true;
    if (const auto scaled = MatchScaled(r, id)) {
      id = scaled->x;
    } else if (node.op == &kReshape || node.op == &kAdd || node.op == &kTanh || IsMasked(node)) {
      id = node.inputs[0];
    } else {
      return false;
    }
  }
}

// Returns the smaller limit of a band. A negative number is no limit.
int32_t Smaller(int32_t a, int64_t b) { return b >= 0 && (a < 0 || b < a) ? BandLimit(b) : a; }

// AttentionMatch finds the parts of softmax(scale · q kᵀ, capped, masked) · v, upwards from the product with the
// values.
class AttentionMatch {
 public:
  AttentionMatch(PatternRewriter& rewriter, const Node& last) : r_(rewriter), pattern_(rewriter), last_(last) {}

  // Returns false if the first factor of the product is no softmax. If it is one, sets `problem` to the reason why the
  // pattern can't be raised, or to "" if it can.
  bool Match() {
    const Node* const softmax = FindSoftmax();
    if (softmax == nullptr) return false;
    const ValueId scores = pattern_.EnterBeforeReshapes(softmax->inputs[0]);
    problem = MatchShapes(r_.type(softmax->output(0)).shape);
    if (problem.empty()) problem = MatchScores(scores);
    if (problem.empty()) problem = MatchOperands();
    if (problem.empty() && r_.ReadElsewhere(pattern_.inside(), last_) != kNoValue) {
      problem = "a value inside it is used elsewhere";
    }
    if (problem.empty() && r_.UnderTwoGradients(last_)) problem = "it is differentiated twice";
    return true;
  }

  // Records the op `attention`. If several operands are in one array, the op reads the same Var for each: by it, its
  // gradient recognises them.
  Var Record() {
    VarList inputs = {Record(query_, /*in_scores=*/true, &attrs_.query_column),
                      Record(key_, /*in_scores=*/true, &attrs_.key_column),
                      Record(value_, /*in_scores=*/false, &attrs_.value_column)};
    for (const Mask& mask : masks_) inputs.push_back(Record(mask));
    const Var y = RecordAll(kAttention, inputs, Attrs::Of(attrs_))[0];  // [B, T, H·width]
    const Shape by_row = {batch_, targets_, query_.heads, attrs_.value_width};
    return Reshape(Permute(Reshape(y, by_row), {0, 2, 1, 3}), r_.type(last_.output(0)).shape);
  }

  std::string problem;

 private:
  struct Operand {  // queries, keys or values, as the product reads them: [B, heads, positions, width]
    ValueId id = kNoValue;
    int64_t heads = 0, positions = 0, width = 0;
  };
  struct Mask {
    ValueId id = kNoValue;       // the mask or, of a band whose rows have positions, the positions
    double factor = 1;           // of the mask, before it is added to the scores
    const Node* band = nullptr;  // null: `id` is a mask
  };

  // Returns the softmax whose result, after dropout and reshapes, is the first factor of the last product. If there is
  // none, returns null. Sets the dropout of `attrs_`.
  const Node* FindSoftmax() {
    ValueId id = pattern_.EnterBeforeReshapes(last_.inputs[0]);
    if (r_.producer(id).op == &kDropout) {
      const auto [rate, stream] = r_.producer(id).attrs.as<DropoutAttrs>();
      attrs_.dropout = rate;
      attrs_.stream = stream;
      id = pattern_.EnterBeforeReshapes(r_.producer(id).inputs[0]);
    }
    return r_.producer(id).op == &kSoftmax ? &r_.producer(id) : nullptr;
  }

  // The following functions return why the pattern can't be raised, or "" if it can.

  // Sets the sizes that follow from the shape of the scores. Scores of [T, S] have batch 1 and one head; scores of
  // [B, T, S] have one head.
  std::string MatchShapes(const Shape& scores) {
    if (scores.rank() < 2 || scores.rank() > 4) return absl::StrCat("the scores have rank ", scores.rank());
    if (scores.elements() == 0) return "there are no scores";
    const auto [transpose_a, transpose_b, f32_output] = last_.attrs.as<MatMulAttrs>();
    if (transpose_a || transpose_b) return "the last product takes a transposed factor";
    scores_ = scores;
    batch_ = scores.rank() == 2 ? 1 : scores.dim(0);
    targets_ = scores.dim(-2);
    sources_ = scores.dim(-1);
    return "";
  }

  // Walks from `next`, the softmax's input, up to the product of queries and keys, and finds masks, cap and scale.
  // Models scale before or after masks, hide elements by mask_fill, band_mask or an added mask, and cap scores by
  // c · tanh(scores / c).
  std::string MatchScores(ValueId next) {
    double factor = 1;  // between the value `next` and the softmax
    for (;; next = pattern_.EnterBeforeReshapes(next)) {
      const Node& node = r_.producer(next);
      if (node.op == &kMatmul) break;
      if (const auto scaled = MatchScaled(r_, next)) {
        factor *= scaled->factor;
        next = scaled->x;
      } else if (node.op == &kTanh) {
        if (attrs_.soft_cap > 0) return "scores are capped twice";
        if (!(factor > 0 && std::isfinite(factor))) return "scores are capped by a number that is not positive";
        attrs_.soft_cap = factor;
        next = node.inputs[0];
      } else if (attrs_.soft_cap > 0) {
        return absl::StrCat("the scores are not a product where they are capped, but ", node.op->name);
      } else if (IsMasked(node)) {
        if (std::string reason = AddMask(node); !reason.empty()) return reason;
        if (!(factor > 0)) return "scores are scaled by a number that is not positive after they are masked";
        next = node.inputs[0];
      } else if (node.op == &kAdd) {
        const int side = LeadsToProduct(r_, node.inputs[0]) ? 0 : 1;
        if (!LeadsToProduct(r_, node.inputs[side])) return "the scores are not a product";
        if (r_.type(node.inputs[side]).shape != scores_) return "a mask is of scores of another shape";
        masks_.push_back({node.inputs[1 - side], factor});
        next = node.inputs[side];
      } else {
        return absl::StrCat("the scores are not a product, but ", node.op->name);
      }
    }
    product_ = next;
    attrs_.scale = factor;
    if (masks_.size() > kMaxAttentionMasks) return absl::StrCat("there are ", masks_.size(), " masks");
    for (const Mask& mask : masks_) {
      if (mask.band == nullptr && r_.type(mask.id).shape.rank() > scores_.rank()) {
        return "a mask has more axes than the scores";
      }
    }
    return "";
  }

  // Adds the mask of a mask_fill or band_mask. A band whose last row is at the last column becomes limits of `attrs_`.
  std::string AddMask(const Node& node) {
    const bool is_band = node.op == &kBandMask;
    const double value = is_band ? node.attrs.as<BandMaskAttrs>().value : node.attrs.as<MaskAttrs>().value;
    if (value != -std::numeric_limits<double>::infinity())
      return absl::StrCat("hidden scores are ", value, ", not -inf");
    if (r_.type(node.inputs[0]).shape != scores_) return "a mask is of scores of another shape";
    if (node.inputs.size() > 1) {
      masks_.push_back({node.inputs[1], 1, is_band ? &node : nullptr});
    } else {
      const auto [hidden, left, right] = node.attrs.as<BandMaskAttrs>();
      attrs_.left = Smaller(attrs_.left, left);
      attrs_.right = Smaller(attrs_.right, right);
    }
    return "";
  }

  // Finds queries, keys and values, and sets the sizes of `attrs_`.
  std::string MatchOperands() {
    const Node& product = r_.producer(product_);
    const auto [transpose_a, transpose_b, f32_output] = product.attrs.as<MatMulAttrs>();
    if (transpose_a) return "the queries are transposed";
    if (!std::isfinite(attrs_.scale)) return "the scores are scaled by a number that is not finite";
    for (const Node* each : {&product, &last_}) {
      const TensorType &a = r_.type(each->inputs[0]), &b = r_.type(each->inputs[1]);
      if (a.shape.rank() != b.shape.rank() || !SameLeadingAxes(a.shape, b.shape)) return kBroadcast;
      if (a.dtype != r_.type(product.inputs[0]).dtype || r_.type(each->output(0)).dtype != a.dtype) {
        return "queries, keys, values and weights have several dtypes";
      }
    }
    ValueId query = product.inputs[0], key = SkipScales(product.inputs[1]), value = last_.inputs[1];
    if (!transpose_b) {  // here a permutation transposes the keys
      const Node& node = r_.producer(key);
      const bool transposed = Permutes(node, {0, 1, 3, 2}) || Permutes(node, {0, 2, 1}) || Permutes(node, {1, 0});
      if (!transposed || r_.uses().differentiated_by(key)) return "the keys are not transposed";
      key = SkipScales(node.inputs[0]);
    }
    query = SkipScales(query);
    const Shape &keys = r_.type(key).shape, &values = r_.type(value).shape, &queries = r_.type(query).shape;
    const int64_t heads = scores_.rank() == 4 ? scores_.dim(1) : 1, groups = keys.rank() == 4 ? keys.dim(1) : 1;
    const int64_t width = keys.dim(-1), value_width = values.dim(-1);
    const bool fits = groups > 0 && heads % groups == 0 && keys.elements() == batch_ * groups * sources_ * width &&
                      values.elements() == batch_ * groups * sources_ * value_width &&
                      (values.rank() == 4 ? values.dim(1) : 1) == groups && keys.dim(-2) == sources_ &&
                      values.dim(-2) == sources_ && queries.elements() == batch_ * heads * targets_ * width &&
                      r_.type(product_).shape.elements() == scores_.elements();
    if (!fits || width == 0 || value_width == 0) return kBroadcast;
    attrs_.heads = static_cast<int32_t>(heads);
    attrs_.groups = static_cast<int32_t>(groups);
    attrs_.key_width = static_cast<int32_t>(width);
    attrs_.value_width = static_cast<int32_t>(value_width);
    query_ = {query, heads, targets_, width};
    key_ = {key, groups, sources_, width};
    value_ = {value, groups, sources_, value_width};
    return "";
  }

  // Returns the value before the scales that end in `id`, and multiplies these scales into `attrs_.scale`. Stops at a
  // scale that changes the type, is not finite, or has a result by which a gradient is taken.
  ValueId SkipScales(ValueId id) {
    while (true) {
      const auto scaled = MatchScaled(r_, id);
      if (!scaled.has_value() || !std::isfinite(attrs_.scale * scaled->factor) || r_.uses().differentiated_by(id) ||
          r_.type(scaled->x) != r_.type(id)) {
        return id;
      }
      attrs_.scale *= scaled->factor;
      id = scaled->x;
    }
  }

  // Returns the array [B, positions, columns] that has the operand's heads in its columns, and sets `*column` to the
  // first of these columns. If there is no such array, returns the operand by head. `in_scores`: scales of queries and
  // keys are scales of the scores.
  Var Record(const Operand& operand, bool in_scores, int64_t* column) {
    const int64_t columns = operand.heads * operand.width;
    ValueId id = SkipReshapes(r_, operand.id);
    const Node& permute = r_.producer(id);
    const Shape by_row = {batch_, operand.positions, operand.heads, operand.width};
    const bool permuted = Permutes(permute, {0, 2, 1, 3}) && !r_.uses().differentiated_by(id) &&
                          r_.type(permute.inputs[0]).shape == by_row;
    if (!permuted && operand.heads > 1) {
      return Reshape(r_.Now(id), {batch_, operand.heads, operand.positions, operand.width});
    }
    if (permuted) id = SkipReshapes(r_, permute.inputs[0]);
    if (in_scores) id = SkipReshapes(r_, SkipScales(id));
    const Node& slice = r_.producer(id);
    const Shape& shape = r_.type(id).shape;
    const int last = shape.rank() - 1;
    const bool whole_rows = shape.rank() >= 2 && shape.dim(-1) == columns && !r_.uses().differentiated_by(id);
    if (whole_rows && slice.op == &kSplit && slice.attrs.as<SplitAttrs>().axis == last) {
      *column = (id - slice.first_output) * columns;
    } else if (whole_rows && slice.op == &kSlice && slice.attrs.as<SliceAttrs>().axis == last) {
      *column = slice.attrs.as<SliceAttrs>().begin;
    } else {
      return Rows(id, {batch_, operand.positions, columns});
    }
    const ValueId packed = slice.inputs[0];
    return Rows(packed, {batch_, operand.positions, r_.type(packed).shape.dim(-1)});
  }

  // Returns `id` in shape `shape`. If consecutive calls have the same `id`, they return the same Var.
  Var Rows(ValueId id, const Shape& shape) {
    if (r_.type(id).shape == shape) return r_.Now(id);
    if (id != rows_id_) rows_ = Reshape(r_.Now(id), shape);
    rows_id_ = id;
    return rows_;
  }

  Var Record(const Mask& mask) {
    Var m = r_.Now(mask.id);
    if (mask.band != nullptr) {
      const auto [value, left, right] = mask.band->attrs.as<BandMaskAttrs>();
      return BandMask(Fill(m.tape, {kBool, {batch_, 1, targets_, sources_}}, 0), left, right, 1, m);
    }
    if (scores_.rank() == 3 && m.shape().rank() == 3) m = Reshape(m, {m.dim(0), 1, m.dim(1), m.dim(2)});
    return mask.factor == 1 ? m : Scale(m, mask.factor);
  }

  PatternRewriter& r_;
  Pattern pattern_;
  const Node& last_;            // the product of softmax and values
  ValueId product_ = kNoValue;  // the product of queries and keys
  Shape scores_;                // [T, S], [B, T, S] or [B, H, T, S]
  int64_t batch_ = 0, targets_ = 0, sources_ = 0;
  AttentionAttrs attrs_;
  std::vector<Mask> masks_;
  Operand query_, key_, value_;
  ValueId rows_id_ = kNoValue;  // the argument of the last call of Rows, and its result
  Var rows_;
};

// Rewrite softmax(scale · q kᵀ, capped, masked) · v to attention(q, k, v, masks)
VarList ToAttention(PatternRewriter& r, const Node& last) {
  AttentionMatch match(r, last);
  if (!match.Match()) return {};
  if (!match.problem.empty()) return r.Decline(last, kPattern, std::move(match.problem));
  return {match.Record()};
}

}  // namespace

absl::Status RaiseAttention(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kMatmul, kPattern, ToAttention}}); }

}  // namespace weft
