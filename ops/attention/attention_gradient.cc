// attention_gradient computes the gradients of attention by key, value and query. Inputs are query, key, value, y, lse,
// dy, dlse (if `by_lse`) and masks. All inputs except the masks have rank 3.
//
// Outputs are dkey and dvalue [B, S, G · width], and dquery [B, T, H · key_width]. The kernel computes scores and
// weights P again, block by block (Dao et al., 2022). Here · is elementwise:
//   P = exp(scores - lse), dP = dropout(dy vᵀ) with the random numbers of attention, dS = P · (dP - Σ dy · y + dlse),
//   dq = scale · dS k, dk = scale · dSᵀ q, dv = dropout(P)ᵀ dy. A soft cap multiplies dS by 1 - tanh² in dq and dk.
#include <limits>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int kY = 3, kLse = 4, kDy = 5;

size_t FirstMask(const Attrs& attrs) { return attrs.as<AttentionAttrs>().by_lse ? 7 : 6; }

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckAttention("attention_gradient", attrs, in, FirstMask(attrs)));
  const AttentionSizes sizes(attrs, in);
  for (int i = 0; i < 3; ++i) {
    if (in[i].shape.rank() != 3) return ShapeError("attention_gradient", "query, key and value need rank 3", in);
  }
  const DType dtype = in[0].dtype;
  const TensorType y = {dtype, sizes.y()}, lse = {ComputedIn(dtype), sizes.lse()};
  if (in[kY] != y || in[kDy] != y) return ShapeError("attention_gradient", "y and dy must be " + ToString(y), in);
  for (size_t i : {size_t{kLse}, FirstMask(attrs) - 1}) {
    if (i != kDy && in[i] != lse) return ShapeError("attention_gradient", "lse and dlse must be " + ToString(lse), in);
  }
  const auto type = [&](int64_t n, int64_t heads, int64_t width) {
    return TensorType{dtype, {sizes.batch, n, heads * width}};
  };
  return Types{type(sizes.sources, sizes.groups, sizes.key_width), type(sizes.sources, sizes.groups, sizes.value_width),
               type(sizes.targets, sizes.heads, sizes.key_width)};
}

// A tile of dkey holds whole batches, and all columns of some key-value heads.
int64_t Quantum(const OpArgs& args) { return args.inputs[1].shape.dim(1); }
int64_t ColumnQuantum(const OpArgs& args) { return args.attrs.as<AttentionAttrs>().key_width; }

// Holds the batches batch_begin .. batch_end - 1 and the key-value heads begin .. end - 1 that a tile of dkey covers.
struct TileGroups {
  int64_t batch_begin, batch_end, begin, end;

  TileGroups(const AttentionSizes& sizes, Rect tile)
      : batch_begin(tile.row_begin / sizes.sources),
        batch_end(tile.row_end / sizes.sources),
        begin(tile.col_begin / sizes.key_width),
        end(tile.col_end / sizes.key_width) {}
};

Rect Access(const OpArgs& args, int operand, Rect tile) {
  const AttentionSizes sizes(args.attrs, args.inputs);
  const AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const TileGroups groups(sizes, tile);
  const int outputs = static_cast<int>(args.inputs.size());
  if (operand < outputs && operand >= static_cast<int>(FirstMask(args.attrs))) {
    return WholeRect(args.inputs[operand].shape);
  }
  const bool of_sources = operand == 1 || operand == 2 || operand == outputs || operand == outputs + 1;
  const int64_t positions = of_sources ? sizes.sources : sizes.targets;
  const int64_t heads = of_sources ? 1 : sizes.group_heads();
  const bool by_head = operand == kLse || (operand == kDy + 1 && operand < outputs);
  const bool of_value = operand == 2 || operand == kY || operand == kDy || operand == outputs + 1;
  const int64_t width = by_head ? 1 : of_value ? sizes.value_width : sizes.key_width;
  const int64_t column = operand == 0   ? attrs.query_column
                         : operand == 1 ? attrs.key_column
                         : operand == 2 ? attrs.value_column
                                        : 0;
  return {groups.batch_begin * positions, groups.batch_end * positions, column + groups.begin * heads * width,
          column + groups.end * heads * width};
}

size_t Workspace(const OpArgs& args, absl::Span<const Rect>) {
  const AttentionSizes sizes(args.attrs, args.inputs);
  return AttentionGradientWorkspace(args.inputs[0].dtype, sizes.sources, sizes.key_width, sizes.value_width);
}

template <class T>
void Kernel(const KernelArgs& args, Rect tile) {
  const AttentionSizes sizes(args.attrs, {args.inputs[0].type, args.inputs[1].type});
  const size_t first_mask = FirstMask(args.attrs);
  const TileGroups groups(sizes, tile);
  for (int64_t b = groups.batch_begin; b < groups.batch_end; ++b) {
    for (int64_t group = groups.begin; group < groups.end; ++group) {
      for (int64_t i = 0; i < sizes.group_heads(); ++i) {
        const int64_t head = group * sizes.group_heads() + i;
        const auto of_head = [&](auto* data, int index) {
          return HeadRows(data, args.input_shape(index), b, head, 0, args.input_shape(index).dim(2) / sizes.heads);
        };
        AttentionGradient<T> gradient = {
            .y = of_head(args.input<T>(kY), kY),
            .dy = of_head(args.input<T>(kDy), kDy),
            .lse = of_head(args.input<Computed<T>>(kLse), kLse),
            .dquery = HeadRows(args.output<T>(2), args.output_shape(2), b, head, 0, sizes.key_width)};
        if (first_mask > kDy + 1) gradient.dlse = of_head(args.input<Computed<T>>(kDy + 1), kDy + 1);
        AttentionKernelsOf<T>().backward(
            HeadOf<T>(args, sizes, first_mask, b, head), gradient, {i == 0, i + 1 == sizes.group_heads()},
            HeadRows(args.output<T>(0), args.output_shape(0), b, group, 0, sizes.key_width),
            HeadRows(args.output<T>(1), args.output_shape(1), b, group, 0, sizes.value_width), args.workspace);
      }
    }
  }
}

// Values that the elementary spellings of the gradients share.
struct ElementaryGradient {
  ElementaryAttention forward;
  Var dy, weights, dscores;  // [B, H, T, value_width]; [B, H, T, S] before dropout; gradient by the masked scores
};

ElementaryGradient SpellGradient(const AttentionAttrs& a, VarSpan in) {
  const Attrs attrs = Attrs::Of(a);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ElementaryGradient e = {.forward = SpellAttention(attrs, in, FirstMask(attrs))};
  const Shape by_head = {in[kY].dim(0), in[kY].dim(1), a.heads, a.value_width};
  const DType dtype = e.forward.scores.dtype();
  const auto heads_first = [&](Var x) { return Cast(Permute(Reshape(x, by_head), {0, 2, 1, 3}), dtype); };
  const auto by_target = [&](Var x) { return Reshape(Permute(x, {0, 2, 1}), {x.dim(0), x.dim(2), x.dim(1), 1}); };
  e.dy = heads_first(in[kDy]);
  Var lse = by_target(in[kLse]);
  lse = MaskFill(lse, Equal(lse, FillLike(lse, -kInfinity)), kInfinity);  // where a target sees no source
  e.weights = Exp(e.forward.scores - lse);
  Var delta = Sum(e.dy * heads_first(in[kY]), -1, /*keep=*/true);
  if (a.by_lse) delta = delta - by_target(in[kDy + 1]);
  const Var dweights = DropWeights(attrs, MatMul(e.dy, e.forward.value, {.transpose_b = true}));
  e.dscores = e.weights * (dweights - delta);
  return e;
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  const ElementaryGradient e = SpellGradient(a, in);
  const auto sum_groups = [&](Var x) {  // [B, H, S, width] → [B, S, G · width]
    return ByRow(Sum(Reshape(x, {x.dim(0), a.groups, a.heads / a.groups, x.dim(2), x.dim(3)}), 2));
  };
  const Var dproducts = e.forward.slope ? e.dscores * e.forward.slope : e.dscores;
  const Var dkey = Scale(MatMul(dproducts, e.forward.query, {.transpose_a = true}), a.scale);
  const Var dvalue = MatMul(DropWeights(attrs, e.weights), e.dy, {.transpose_a = true});
  const Var dquery = Scale(MatMul(dproducts, e.forward.key), a.scale);
  const DType dtype = in[0].dtype();
  return {Cast(sum_groups(dkey), dtype), Cast(sum_groups(dvalue), dtype), Cast(ByRow(dquery), dtype)};
}

Cost CostOf(const OpArgs& args) {
  const auto attrs = args.attrs.as<AttentionAttrs>();
  return AttentionCost(args, 3 * int64_t{attrs.key_width} + 2 * int64_t{attrs.value_width});
}

// Two heads of queries share one head of keys and values.
constexpr AttentionAttrs kHeads = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5};
constexpr AttentionAttrs kCausal = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5, .right = 0};
constexpr AttentionAttrs kByLse = {
    .heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5, .right = 0, .by_lse = true};
constexpr AttentionAttrs kWindow = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5, .left = 20, .right = 3};
constexpr AttentionAttrs kCapped = {
    .heads = 2, .key_width = 3, .value_width = 2, .scale = 2, .soft_cap = 1.5, .right = 0};

constexpr OpExample kExamples[] = {
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,4] [2,3,2] [2,3,4]",
     .record = RecordWith<kAttentionGradient, kHeads>,
     .out = "[2,5,3]"},
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,4] [2,3,2] [2,3,4] [2,3,2]", .record = RecordWith<kAttentionGradient, kByLse>},
    {.in = "[1,70,6] [1,130,3] [1,130,2] [1,70,4] [1,70,2] [1,70,4]",
     .record = RecordWith<kAttentionGradient, kCausal>,
     .tolerance = 2e-5},  // sums of 70 terms
    {.in = "[1,140,6] [1,150,3] [1,150,2] [1,140,4] [1,140,2] [1,140,4]",
     .record = RecordWith<kAttentionGradient, kWindow>,
     .tolerance = 2e-5},
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,4] [2,3,2] [2,3,4] [3,5]",
     .record = RecordWith<kAttentionGradient, kHeads>},  // a bias
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,4] [2,3,2] [2,3,4]", .record = RecordWith<kAttentionGradient, kCapped>},
    {.in = "[1,70,6] [1,130,3] [1,130,2] [1,70,4] [1,70,2] [1,70,4]",
     .record = RecordWith<kAttentionGradient, kCapped>,
     .tolerance = 2e-5},  // sums of 70 terms
    {.in = "bf16[2,3,6] bf16[2,5,3] bf16[2,5,2] bf16[2,3,4] f32[2,3,2] bf16[2,3,4] bf16[3,5]",
     .record = RecordWith<kAttentionGradient, kHeads>,
     .out = "bf16[2,5,3]"},
    {.in = "[0,3,6] [0,5,3] [0,5,2] [0,3,4] [0,3,2] [0,3,4]", .record = RecordWith<kAttentionGradient, kHeads>},
    {.in = "[2,0,6] [2,5,3] [2,5,2] [2,0,4] [2,0,2] [2,0,4]", .record = RecordWith<kAttentionGradient, kHeads>},
    {.in = "[2,2,3,3] [2,5,3] [2,5,2] [2,3,4] [2,3,2] [2,3,4]",
     .record = RecordWith<kAttentionGradient, kHeads>,
     .error = "rank 3"},
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,3] [2,3,2] [2,3,4]",
     .record = RecordWith<kAttentionGradient, kHeads>,
     .error = "y and dy must be f32[2,3,4]"},
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,3,4] [2,3,1] [2,3,4]",
     .record = RecordWith<kAttentionGradient, kHeads>,
     .error = "lse and dlse must be f32[2,3,2]"},
};

}  // namespace

Var ScoreGradient(const AttentionAttrs& attrs, VarSpan inputs) { return SpellGradient(attrs, inputs).dscores; }

constexpr OpDef kAttentionGradient = {.name = "attention_gradient",
                                      .infer = Infer,
                                      .outputs = 3,
                                      .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                                      .workspace = Workspace,
                                      .cut = Cut::kBoth,
                                      .quantum = Quantum,
                                      .column_quantum = ColumnQuantum,
                                      .access = Access,
                                      .random = true,
                                      .elementary = Elementary,
                                      .cost = CostOf,
                                      .attrs = AttrOpsOf<AttentionAttrs>(),
                                      .examples = kExamples};

}  // namespace weft
