// Finds the queries, keys and values of attention, and records them without reshapes and permutations. Models split
// projections [B, T, H·width] by head, permute them to [B, H, T, width] and scale them. The op `attention` reads the
// projections as they are in memory, even if one product made all three.
#include <algorithm>
#include <cmath>

#include "weft/graph/passes/attention_match.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

constexpr char kBroadcast[] = "queries, keys and values broadcast against one another";

bool SameLeadingAxes(const Shape& a, const Shape& b) {
  return a.dims().first(a.rank() - 2) == b.dims().first(b.rank() - 2);
}

bool Permutes(const Node& node, absl::Span<const int32_t> axes) {
  if (node.op != &kPermute) return false;
  const PermuteAttrs p = node.attrs.as<PermuteAttrs>();
  return std::equal(axes.begin(), axes.end(), p.axes.begin(), p.axes.begin() + p.rank);
}

// Returns the value before the scales that end in `id`, and multiplies these scales into `attrs->scale`. Stops at a
// scale that changes the type, is not finite, or has a result by which a gradient is taken.
ValueId SkipScales(const PatternRewriter& r, ValueId id, AttentionAttrs* attrs) {
  while (true) {
    const auto scaled = MatchScaled(r.program(), id);
    if (!scaled.has_value() || !std::isfinite(attrs->scale * scaled->factor) || r.uses().differentiated_by(id) ||
        r.type(scaled->x) != r.type(id)) {
      return id;
    }
    attrs->scale *= scaled->factor;
    id = scaled->x;
  }
}

class OperandRecorder {
 public:
  OperandRecorder(PatternRewriter& r, AttentionMatch* match) : r_(r), match_(*match) {}

  // Returns the array [B, positions, columns] that has the operand's heads in its columns, and sets `*column` to the
  // first of these columns. If there is no such array, returns the operand by head.
  Var Record(const AttentionOperand& operand, int64_t* column) {
    const int64_t columns = operand.heads * operand.width, batch = match_.batch;
    ValueId id = SkipReshapes(r_, operand.id);
    const Node& permute = r_.producer(id);
    const Shape by_row = {batch, operand.positions, operand.heads, operand.width};
    const bool permuted = Permutes(permute, {0, 2, 1, 3}) && !r_.uses().differentiated_by(id) &&
                          r_.type(permute.inputs[0]).shape == by_row;
    if (!permuted && operand.heads > 1) {
      return Reshape(r_.Now(id), {batch, operand.heads, operand.positions, operand.width});
    }
    if (permuted) id = SkipReshapes(r_, permute.inputs[0]);
    if (operand.in_scores) id = SkipReshapes(r_, SkipScales(r_, id, &match_.attrs));
    const Node& slice = r_.producer(id);
    const Shape& shape = r_.type(id).shape;
    const int last = shape.rank() - 1;
    const bool whole_rows = shape.rank() >= 2 && shape.dim(-1) == columns && !r_.uses().differentiated_by(id);
    if (whole_rows && slice.op == &kSplit && slice.attrs.as<SplitAttrs>().axis == last) {
      *column = (id - slice.first_output) * columns;
    } else if (whole_rows && slice.op == &kSlice && slice.attrs.as<SliceAttrs>().axis == last) {
      *column = slice.attrs.as<SliceAttrs>().begin;
    } else {
      return Rows(id, {batch, operand.positions, columns});
    }
    const ValueId packed = slice.inputs[0];
    return Rows(packed, {batch, operand.positions, r_.type(packed).shape.dim(-1)});
  }

 private:
  // Returns `id` in shape `shape`. If consecutive calls have the same `id`, they return the same Var.
  Var Rows(ValueId id, const Shape& shape) {
    if (r_.type(id).shape == shape) return r_.Now(id);
    if (id != rows_id_) rows_ = Reshape(r_.Now(id), shape);
    rows_id_ = id;
    return rows_;
  }

  PatternRewriter& r_;
  AttentionMatch& match_;
  ValueId rows_id_ = kNoValue;
  Var rows_;
};

}  // namespace

std::string MatchAttentionOperands(const PatternRewriter& r, AttentionMatch* match) {
  AttentionAttrs& attrs = match->attrs;
  const Node &product = r.producer(match->product), &last = match->last;
  const auto [transpose_a, transpose_b, f32_output] = product.attrs.as<MatMulAttrs>();
  if (transpose_a) return "the queries are transposed";
  if (!std::isfinite(attrs.scale)) return "the scores are scaled by a number that is not finite";
  for (const Node* each : {&product, &last}) {
    const TensorType &a = r.type(each->inputs[0]), &b = r.type(each->inputs[1]);
    if (a.shape.rank() != b.shape.rank() || !SameLeadingAxes(a.shape, b.shape)) return kBroadcast;
    if (a.dtype != r.type(product.inputs[0]).dtype || r.type(each->output(0)).dtype != a.dtype) {
      return "queries, keys, values and weights have several dtypes";
    }
  }
  ValueId query = product.inputs[0], key = product.inputs[1], value = last.inputs[1];
  key = SkipScales(r, key, &attrs);
  if (!transpose_b) {  // here a permutation transposes the keys
    const Node& node = r.producer(key);
    const bool transposed = Permutes(node, {0, 1, 3, 2}) || Permutes(node, {0, 2, 1}) || Permutes(node, {1, 0});
    if (!transposed || r.uses().differentiated_by(key)) return "the keys are not transposed";
    key = SkipScales(r, node.inputs[0], &attrs);
  }
  query = SkipScales(r, query, &attrs);
  const Shape &keys = r.type(key).shape, &values = r.type(value).shape, &queries = r.type(query).shape;
  const int64_t batch = match->batch, heads = match->heads, targets = match->targets, sources = match->sources;
  const int64_t groups = keys.rank() == 4 ? keys.dim(1) : 1, width = keys.dim(-1), value_width = values.dim(-1);
  const bool fits = groups > 0 && heads % groups == 0 && keys.elements() == batch * groups * sources * width &&
                    values.elements() == batch * groups * sources * value_width &&
                    (values.rank() == 4 ? values.dim(1) : 1) == groups && keys.dim(-2) == sources &&
                    values.dim(-2) == sources && queries.elements() == batch * heads * targets * width &&
                    r.type(match->product).shape.elements() == match->scores.elements();
  if (!fits || width == 0 || value_width == 0) return kBroadcast;
  attrs.heads = static_cast<int32_t>(heads);
  attrs.groups = static_cast<int32_t>(groups);
  attrs.key_width = static_cast<int32_t>(width);
  attrs.value_width = static_cast<int32_t>(value_width);
  match->query = {query, heads, targets, width, true};
  match->key = {key, groups, sources, width, true};
  match->value = {value, groups, sources, value_width, false};
  return "";
}

VarList RecordAttentionOperands(PatternRewriter& r, AttentionMatch* match) {
  OperandRecorder recorder(r, match);
  return {recorder.Record(match->query, &match->attrs.query_column),
          recorder.Record(match->key, &match->attrs.key_column),
          recorder.Record(match->value, &match->attrs.value_column)};
}

}  // namespace weft
