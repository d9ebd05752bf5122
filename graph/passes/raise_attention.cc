#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

constexpr const char* kPattern = "attention";

// The value before the reshapes that `id` ends, but for those that a gradient is taken by.
ValueId BeforeReshapes(const PatternRewriter& rewriter, ValueId id) {
  while (rewriter.producer(id).op == &kReshape && !rewriter.DifferentiatedBy(id)) id = rewriter.producer(id).inputs[0];
  return id;
}

bool SameLeadingAxes(const Shape& a, const Shape& b) {
  return a.dims().first(a.rank() - 2) == b.dims().first(b.rank() - 2);
}

// What has been found of softmax(scores) · value, on the way from its last product upwards.
class AttentionMatch {
 public:
  AttentionMatch(PatternRewriter& rewriter, const Node& last) : r_(rewriter), last_(last) {}

  // Whether the last product's first factor is a softmax, after dropout and reshapes.
  bool FindSoftmax() {
    ValueId id = Inside(last_.inputs[0]);
    if (r_.producer(id).op == &kDropout) {
      const auto [rate, stream] = r_.producer(id).attrs.as<DropoutAttrs>();
      attrs_.dropout = rate;
      attrs_.stream = stream;
      id = Inside(r_.producer(id).inputs[0]);
    }
    if (r_.producer(id).op != &kSoftmax) return false;
    scores_ = r_.type(id).shape;
    next_ = Inside(r_.producer(id).inputs[0]);
    return true;
  }

  VarList Rewrite() {
    std::string problem = Shapes();
    if (problem.empty()) problem = Scores();
    if (problem.empty()) problem = Operands();
    if (problem.empty() && r_.UsedElsewhere(inside_, last_) != kNoValue)
      problem = "a value inside it is used elsewhere";
    if (problem.empty() && r_.UnderTwoGradients(last_)) problem = "it is differentiated twice";
    if (!problem.empty()) return r_.Decline(last_, kPattern, problem);
    return {Record()};
  }

 private:
  // `id` and the reshapes that it ends belong to the pattern; the value before them.
  ValueId Inside(ValueId id) {
    while (true) {
      inside_.push_back(id);
      if (r_.producer(id).op != &kReshape) return id;
      id = r_.producer(id).inputs[0];
    }
  }

  // Scores of [T, S] or [N, T, S] are those of one head.
  std::string Shapes() {
    if (scores_.rank() < 2 || scores_.rank() > 4) return absl::StrCat("the scores have rank ", scores_.rank());
    if (scores_.elements() == 0) return "there are no scores";
    const auto [transpose_a, transpose_b, f32_output] = last_.attrs.as<MatMulAttrs>();
    if (transpose_a || transpose_b) return "the last product takes a transposed factor";
    batch_ = scores_.rank() == 2 ? 1 : scores_.dim(0);
    heads_ = scores_.rank() == 4 ? scores_.dim(1) : 1;
    targets_ = scores_.dim(-2);
    sources_ = scores_.dim(-1);
    return "";
  }

  // Upwards from the softmax: masks, a cap c · tanh(score / c), and scales, down to the product of queries and keys.
  std::string Scores() {
    double factor = 1;  // of what `next_` names, on its way to the softmax
    for (;; next_ = Inside(next_)) {
      const Node& node = r_.producer(next_);
      if (node.op == &kMatmul) break;
      if (node.op == &kScale) {
        factor *= node.attrs.as<ScaleAttrs>().factor;
        next_ = node.inputs[0];
      } else if (const absl::optional<double> by = NumberOf(node)) {
        factor *= *by;
        next_ = node.inputs[0];
      } else if (node.op == &kTanh) {
        if (attrs_.soft_cap > 0) return "scores are capped twice";
        if (!(factor > 0 && std::isfinite(factor))) return "scores are capped by a number that is not positive";
        attrs_.soft_cap = factor;
        next_ = node.inputs[0];
      } else if (attrs_.soft_cap > 0) {
        return absl::StrCat("the scores are no product where they are capped, but ", node.op->name);
      } else if (node.op == &kMaskFill || node.op == &kCausalMask) {
        const double value = node.attrs.as<MaskAttrs>().value;
        if (value != -std::numeric_limits<double>::infinity()) {
          return absl::StrCat("hidden scores are ", value, ", not -inf");
        }
        if (!(factor > 0)) return "scores are scaled by a number that is not positive after they are masked";
        if (r_.type(node.inputs[0]).shape != scores_) return "a mask is of scores of another shape";
        if (node.op == &kCausalMask) {
          attrs_.causal = true;
        } else {
          masks_.push_back({node.inputs[1], 1});
        }
        next_ = node.inputs[0];
      } else if (node.op == &kAdd) {
        const int side = LeadsToProduct(node.inputs[0]) ? 0 : 1;
        if (!LeadsToProduct(node.inputs[side])) return "the scores are no product";
        if (r_.type(node.inputs[side]).shape != scores_) return "a mask is of scores of another shape";
        masks_.push_back({node.inputs[1 - side], factor});
        next_ = node.inputs[side];
      } else {
        return absl::StrCat("the scores are no product, but ", node.op->name);
      }
    }
    attrs_.scale = factor;
    if (masks_.size() > kMaxAttentionMasks) return absl::StrCat("there are ", masks_.size(), " masks");
    for (const Mask& mask : masks_) {
      if (r_.type(mask.id).shape.rank() > scores_.rank()) return "a mask has more axes than the scores";
    }
    return "";
  }

  // The number that a product or quotient of a value and a number multiplies with.
  absl::optional<double> NumberOf(const Node& node) const {
    if (node.op != &kMul && node.op != &kDiv) return absl::nullopt;
    absl::optional<double> number = r_.Number(node.inputs[1]);
    if (number.has_value() && node.op == &kDiv) number = 1 / *number;
    return number;
  }

  bool LeadsToProduct(ValueId id) const {
    while (true) {
      const Node& node = r_.producer(id);
      if (node.op == &kMatmul) return true;
      const bool passes = node.op == &kReshape || node.op == &kScale || node.op == &kMaskFill ||
                          node.op == &kCausalMask || node.op == &kAdd || node.op == &kTanh ||
                          NumberOf(node).has_value();
      if (!passes) return false;
      id = node.inputs[0];
    }
  }

  // Scales in front of a product are scales of the scores.
  ValueId SkipScales(ValueId id) {
    while (true) {
      const Node& node = r_.producer(id);
      absl::optional<double> by = NumberOf(node);
      if (node.op == &kScale) by = node.attrs.as<ScaleAttrs>().factor;
      if (!by.has_value() || !std::isfinite(attrs_.scale * *by) || r_.DifferentiatedBy(id) ||
          r_.type(node.inputs[0]) != r_.type(id)) {
        return id;
      }
      attrs_.scale *= *by;
      id = node.inputs[0];
    }
  }

  std::string Operands() {
    const Node& product = r_.producer(next_);
    const auto [transpose_a, transpose_b, f32_output] = product.attrs.as<MatMulAttrs>();
    if (transpose_a) return "the queries are transposed";
    if (!std::isfinite(attrs_.scale)) return "the scores are scaled by a number that is not finite";
    for (const Node* each : {&product, &last_}) {
      const TensorType &a = r_.type(each->inputs[0]), &b = r_.type(each->inputs[1]);
      if (a.shape.rank() != b.shape.rank() || !SameLeadingAxes(a.shape, b.shape)) {
        return "queries, keys and values broadcast against one another";
      }
      if (a.dtype != r_.type(product.inputs[0]).dtype || r_.type(each->output(0)).dtype != a.dtype) {
        return "queries, keys, values and weights have several dtypes";
      }
    }
    ValueId query = product.inputs[0], key = product.inputs[1], value = last_.inputs[1];
    const auto permutes = [&](const Node& node, absl::Span<const int32_t> axes) {
      if (node.op != &kPermute) return false;
      const PermuteAttrs p = node.attrs.as<PermuteAttrs>();
      return std::equal(axes.begin(), axes.end(), p.axes.begin(), p.axes.begin() + p.rank);
    };
    key = SkipScales(key);
    if (!transpose_b) {  // the keys are transposed by a permute
      const Node& node = r_.producer(key);
      const bool transposed = permutes(node, {0, 1, 3, 2}) || permutes(node, {0, 2, 1}) || permutes(node, {1, 0});
      if (!transposed || r_.DifferentiatedBy(key)) {
        return "the keys are not transposed";
      }
      key = SkipScales(node.inputs[0]);
    }
    query = SkipScales(query);
    const Shape &keys = r_.type(key).shape, &values = r_.type(value).shape, &queries = r_.type(query).shape;
    groups_ = keys.rank() == 4 ? keys.dim(1) : 1;
    const int64_t width = keys.dim(-1), value_width = values.dim(-1);
    const bool fits = groups_ > 0 && heads_ % groups_ == 0 && keys.elements() == batch_ * groups_ * sources_ * width &&
                      values.elements() == batch_ * groups_ * sources_ * value_width &&
                      (values.rank() == 4 ? values.dim(1) : 1) == groups_ && keys.dim(-2) == sources_ &&
                      values.dim(-2) == sources_ && queries.elements() == batch_ * heads_ * targets_ * width &&
                      r_.type(next_).shape.elements() == scores_.elements();
    if (!fits || width == 0 || value_width == 0) return "queries, keys and values broadcast against one another";
    attrs_.heads = static_cast<int32_t>(heads_);
    attrs_.groups = static_cast<int32_t>(groups_);
    attrs_.key_width = static_cast<int32_t>(width);
    attrs_.value_width = static_cast<int32_t>(value_width);
    query_ = {query, heads_, targets_, width, true};
    key_ = {key, groups_, sources_, width, true};
    value_ = {value, groups_, sources_, value_width, false};
    return "";
  }

  struct Operand {
    ValueId id;
    int64_t heads, positions, width;
    bool in_scores;
  };

  // The array that has the operand's heads in its columns, from `*column` on, scales in front of the heads' permutation
  // taken along; or the operand by head.
  Var RecordOperand(const Operand& operand, int64_t* column) {
    const int64_t columns = operand.heads * operand.width;
    ValueId id = BeforeReshapes(r_, operand.id);
    const Node& permute = r_.producer(id);
    const Shape split = {batch_, operand.positions, operand.heads, operand.width};
    const bool by_row = permute.op == &kPermute && !r_.DifferentiatedBy(id) &&
                        r_.type(permute.inputs[0]).shape == split &&
                        permute.attrs.as<PermuteAttrs>().axes == PermuteAttrs{4, {0, 2, 1, 3}}.axes;
    if (!by_row && operand.heads > 1) {
      return Reshape(r_.Now(id), {batch_, operand.heads, operand.positions, operand.width});
    }
    if (by_row) id = BeforeReshapes(r_, permute.inputs[0]);
    if (operand.in_scores) id = BeforeReshapes(r_, SkipScales(id));
    const Node& part = r_.producer(id);
    const Shape& shape = r_.type(id).shape;
    const int last = shape.rank() - 1;
    const bool whole_rows = shape.rank() >= 2 && shape.dim(-1) == columns && !r_.DifferentiatedBy(id);
    if (whole_rows && part.op == &kSplit && part.attrs.as<SplitAttrs>().axis == last) {
      *column = (static_cast<int64_t>(id) - static_cast<int64_t>(part.first_output)) * columns;
    } else if (whole_rows && part.op == &kSlice && part.attrs.as<SliceAttrs>().axis == last) {
      *column = part.attrs.as<SliceAttrs>().begin;
    } else {
      return Rows(id, {batch_, operand.positions, columns});
    }
    const ValueId packed = part.inputs[0];
    return Rows(packed, {batch_, operand.positions, r_.type(packed).shape.dim(-1)});
  }

  // The same Var for parts of one array, which is how the gradient knows them.
  Var Rows(ValueId id, const Shape& shape) {
    if (r_.type(id).shape == shape) return r_.Now(id);
    if (id != rows_id_) rows_ = Reshape(r_.Now(id), shape);
    rows_id_ = id;
    return rows_;
  }

  Var Record() {
    VarList inputs = {RecordOperand(query_, &attrs_.query_column), RecordOperand(key_, &attrs_.key_column),
                      RecordOperand(value_, &attrs_.value_column)};
    for (const auto& [mask, factor] : masks_) {
      Var m = r_.Now(mask);
      if (scores_.rank() == 3 && m.shape().rank() == 3) m = Reshape(m, {m.dim(0), 1, m.dim(1), m.dim(2)});
      inputs.push_back(factor == 1 ? m : Scale(m, factor));
    }
    const Var y = RecordAll(kAttention, inputs, Attrs::Of(attrs_))[0];
    const Var by_head = Permute(Reshape(y, {batch_, targets_, heads_, attrs_.value_width}), {0, 2, 1, 3});
    return Reshape(by_head, r_.type(last_.output(0)).shape);
  }

  struct Mask {
    ValueId id;
    double factor;  // of what it adds
  };

  PatternRewriter& r_;
  const Node& last_;
  std::vector<ValueId> inside_;
  AttentionAttrs attrs_;
  Shape scores_;
  ValueId next_ = kNoValue;
  int64_t batch_ = 0, heads_ = 0, groups_ = 0, targets_ = 0, sources_ = 0;
  std::vector<Mask> masks_;
  Operand query_, key_, value_;
  ValueId rows_id_ = kNoValue;
  Var rows_;
};

// Rewrite softmax(scale · q kᵀ, capped, masked) · v to attention(q, k, v, masks)
VarList ToAttention(PatternRewriter& rewriter, const Node& last) {
  AttentionMatch match(rewriter, last);
  if (!match.FindSoftmax()) return {};
  return match.Rewrite();
}

// Rewrite permute(permute(x)) to permute(x), or to x
VarList ToOnePermute(PatternRewriter& rewriter, const Node& outer) {
  const ValueId between = BeforeReshapes(rewriter, outer.inputs[0]);
  const Node& inner = rewriter.producer(between);
  if (rewriter.DifferentiatedBy(between) || rewriter.DifferentiatedBy(outer.output(0))) return {};
  if (inner.op != &kPermute || rewriter.type(between) != rewriter.type(outer.inputs[0])) return {};
  const PermuteAttrs a = inner.attrs.as<PermuteAttrs>(), b = outer.attrs.as<PermuteAttrs>();
  PermuteAttrs both = {.rank = b.rank};
  bool identity = true;
  for (int i = 0; i < b.rank; ++i) {
    both.axes[i] = a.axes[b.axes[i]];
    identity = identity && both.axes[i] == i;
  }
  const Var x = rewriter.Now(inner.inputs[0]);
  return {identity ? x : weft::Record(kPermute, {x}, Attrs::Of(both))};
}

}  // namespace

absl::Status RaiseAttention(Rewrite& rewrite) {
  WEFT_RETURN_IF_ERROR(RewritePatterns(rewrite, {{&kMatmul, kPattern, ToAttention}}));
  return RewritePatterns(rewrite, {{&kPermute, nullptr, ToOnePermute}});
}

}  // namespace weft
