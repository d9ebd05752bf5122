// The op attention computes, for each head, y = dropout(softmax(scores)) · v and lse = log Σ exp(scores) (Vaswani et
// al., 2017). Scores are scale · q kᵀ, limited by `soft_cap` and then masked.
//
// The kernel streams over blocks of keys and never holds the whole matrix of scores. Inputs are query q, key k, value v
// and up to four masks, which broadcast to [B, H, T, S]. A bool mask hides a source from a target where it is true; a
// mask of numbers is added to the scores. Outputs are y [B, T, H · value_width] and lse [B, T, H]. A target that sees
// no source gets y = 0 and lse = -inf.
#include "weft/ops/attention/attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {

AttentionSizes::AttentionSizes(const Attrs& attrs, TypeSpan in) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  batch = in[0].shape.dim(0);
  targets = in[0].shape.dim(-2);
  sources = in[1].shape.dim(-2);
  heads = a.heads;
  groups = a.groups;
  key_width = a.key_width;
  value_width = a.value_width;
}

absl::Status CheckAttention(const char* op, const Attrs& attrs, TypeSpan in, size_t first_mask) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  const auto error = [&](const auto&... parts) { return ShapeError(op, absl::StrCat(parts...), in); };
  if (a.heads < 1 || a.groups < 1 || a.heads % a.groups != 0) {
    return error("heads = ", a.heads, " is not a multiple of the ", a.groups, " heads of keys and values");
  }
  if (a.key_width < 1 || a.value_width < 1) return error("a head has no features");
  if (!(a.dropout >= 0 && a.dropout < 1)) return error("the rate ", a.dropout, " is not in [0, 1)");
  if (!std::isfinite(a.scale)) return error("scale = ", a.scale, ", wanted a finite number");
  if (!(a.soft_cap >= 0 && std::isfinite(a.soft_cap))) return error("soft_cap = ", a.soft_cap, ", wanted >= 0");
  const struct {
    const char* name;
    int64_t heads, width, column;
  } operands[] = {{"query", a.heads, a.key_width, a.query_column},
                  {"key", a.groups, a.key_width, a.key_column},
                  {"value", a.groups, a.value_width, a.value_column}};
  for (int i = 0; i < 3; ++i) {
    const auto& [name, heads, width, column] = operands[i];
    const Shape& shape = in[i].shape;
    if (in[i].dtype != in[0].dtype) return error(name, "'s dtype is not the query's");
    const bool by_head = shape.rank() == 4 && shape.dim(1) == heads && shape.dim(3) == width && column == 0;
    const bool by_row = shape.rank() == 3 && column >= 0 && column + heads * width <= shape.dim(2);
    if (!by_head && !by_row) {
      return error(name, " must be [B,", heads, ",n,", width, "], or [B,n,C] with C >= ", column + heads * width);
    }
    if (shape.dim(0) != in[0].shape.dim(0)) return error(name, "'s batch is not the query's");
  }
  const AttentionSizes sizes(attrs, in);
  if (in[2].shape.dim(-2) != sizes.sources) return error("keys and values differ in number");
  if (in.size() - first_mask > kMaxAttentionMasks) return error("more than ", kMaxAttentionMasks, " masks");
  for (size_t i = first_mask; i < in.size(); ++i) {
    if (in[i].dtype != kBool && in[i].dtype != in[0].dtype) return error("a mask must be bool or of the query's dtype");
    if (Broadcast(in[i].shape, sizes.scores()) != sizes.scores()) {
      return error("a mask does not broadcast to ", ToString(sizes.scores()));
    }
  }
  return absl::OkStatus();
}

Cost AttentionCost(const OpArgs& args, int64_t features) {
  const AttentionSizes sizes(args.attrs, args.inputs);
  const AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const Band band(attrs.left, attrs.right);
  int64_t scores = 0;  // of one head
  for (int64_t t = 0; t < sizes.targets; ++t) {
    const int64_t begin = band.Begin(t, sizes.targets, sizes.sources) / kAttentionBlock * kAttentionBlock;
    scores += std::max<int64_t>(0, band.End(t, sizes.targets, sizes.sources) - begin);
  }
  return {.flops = 2.0 * static_cast<double>(sizes.batch * sizes.heads * scores) * static_cast<double>(features),
          .bytes = OperandBytes(args)};
}

size_t ForwardWorkspace(const OpArgs& args, absl::Span<const Rect>) {
  const AttentionAttrs a = args.attrs.as<AttentionAttrs>();
  return AttentionWorkspace(args.inputs[0].dtype, a.key_width, a.value_width);
}

int64_t HeadColumns(const OpArgs& args) { return args.attrs.as<AttentionAttrs>().value_width; }

AttentionMask MaskOfHead(const Tensor& mask, const Shape& scores, int64_t b, int64_t head) {
  const Strides strides = BroadcastStrides(scores, mask.type.shape);
  const auto first = static_cast<size_t>(b * strides[0] + head * strides[1]);
  return {.data = mask.data + first * SizeOf(mask.type.dtype),
          .adds = mask.type.dtype != kBool,
          .target_stride = strides[2],
          .source_stride = strides[3]};
}

namespace {

// Returns x [B, n, columns], whose heads lie side by side from `column` on, as [B, heads, n, width]. Keeps x of rank 4.
Var ByHead(Var x, int64_t heads, int64_t column, int64_t width) {
  if (x.shape().rank() == 4) return x;
  if (x.dim(2) != heads * width) x = Slice(x, -1, column, column + heads * width);
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, width}), {0, 2, 1, 3});
}

// Casts bf16 to f32, because bf16 is computed in f32. Keeps other dtypes.
Var Widened(Var x) { return Cast(x, ComputedIn(x.dtype())); }

// Returns x [B, G, n, width] as [B, G · times, n, width], with each head repeated for the query heads that share it.
Var RepeatHeads(Var x, int64_t times) {
  if (times == 1) return x;
  const int64_t batch = x.dim(0), groups = x.dim(1), n = x.dim(2), width = x.dim(3);
  return Reshape(BroadcastTo(Reshape(x, {batch, groups, 1, n, width}), {batch, groups, times, n, width}),
                 {batch, groups * times, n, width});
}

}  // namespace

ElementaryAttention SpellAttention(const Attrs& attrs, VarSpan inputs, size_t first_mask) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  const int64_t times = a.heads / a.groups;
  const Var query = Widened(inputs[0]), key = Widened(inputs[1]), value = Widened(inputs[2]);
  ElementaryAttention e = {.query = ByHead(query, a.heads, a.query_column, a.key_width),
                           .key = RepeatHeads(ByHead(key, a.groups, a.key_column, a.key_width), times),
                           .value = RepeatHeads(ByHead(value, a.groups, a.value_column, a.value_width), times)};
  e.scores = Scale(MatMul(e.query, e.key, {.transpose_b = true}), a.scale);
  if (a.soft_cap > 0) {
    const Var capped = Tanh(Scale(e.scores, 1 / a.soft_cap));
    e.scores = Scale(capped, a.soft_cap);
    e.slope = 1 - capped * capped;
  }
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  for (size_t i = first_mask; i < inputs.size(); ++i) {
    e.scores = inputs[i].dtype() == kBool ? MaskFill(e.scores, inputs[i], kHidden) : e.scores + Widened(inputs[i]);
  }
  if (a.left >= 0 || a.right >= 0) e.scores = BandMask(e.scores, a.left, a.right, kHidden);
  return e;
}

Var ByRow(Var x) {
  return x.shape().rank() == 3 ? x : Reshape(Permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Var DropWeights(const Attrs& attrs, Var weights) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  return a.dropout == 0 ? weights : Record(kDropout, {weights}, Attrs::Of(DropoutAttrs{a.dropout, a.stream}));
}

namespace {

constexpr size_t kFirstMask = 3;

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckAttention("attention", attrs, in, kFirstMask));
  const AttentionSizes sizes(attrs, in);
  return Types{{in[0].dtype, sizes.y()}, {ComputedIn(in[0].dtype), sizes.lse()}};
}

template <class T>
void Kernel(const KernelArgs& args, Rect tile) {
  const AttentionSizes sizes(args.attrs, {args.inputs[0].type, args.inputs[1].type});
  Computed<T>* const lse = args.output<Computed<T>>(1);
  const int64_t columns = sizes.heads * sizes.value_width;
  for (int64_t begin = tile.row_begin; begin < tile.row_end;) {
    const int64_t b = begin / sizes.targets, end = std::min(tile.row_end, (b + 1) * sizes.targets);
    for (int64_t h = tile.col_begin / sizes.value_width; h < tile.col_end / sizes.value_width; ++h) {
      AttentionKernelsOf<T>().forward(
          HeadOf<T>(args, sizes, kFirstMask, b, h), begin - b * sizes.targets, end - b * sizes.targets,
          {args.output<T>(0) + b * sizes.targets * columns + h * sizes.value_width, columns},
          {lse + b * sizes.targets * sizes.heads + h, sizes.heads}, args.workspace);
    }
    begin = end;
  }
}

int64_t Quantum(const OpArgs& args) {
  const int64_t targets = AttentionSizes(args.attrs, args.inputs).targets;
  return targets % kAttentionBlock == 0 && targets > 0 ? kAttentionBlock : std::max<int64_t>(1, targets);
}

// Returns a rectangle of an operand that contains `heads`, which has `positions` rows for each batch and one column for
// each head. In an operand of rank 3, head 0 begins at `column`, and each head has `width` columns. If the operand is
// by head (rank 4), the result covers whole batches.
Rect ReadRect(const Shape& operand, Rect heads, int64_t positions, int64_t column, int64_t width) {
  if (operand.rank() == 3) {
    return {heads.row_begin, heads.row_end, column + heads.col_begin * width, column + heads.col_end * width};
  }
  const int64_t batch_rows = operand.dim(1) * operand.dim(2);
  if (positions == 0) return {0, 0, 0, width};
  return {heads.row_begin / positions * batch_rows, (heads.row_end + positions - 1) / positions * batch_rows, 0, width};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  const AttentionSizes sizes(args.attrs, args.inputs);
  const AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const int outputs = static_cast<int>(args.inputs.size()), targets = sizes.targets;
  Rect heads = {tile.row_begin, tile.row_end, tile.col_begin / sizes.value_width, tile.col_end / sizes.value_width};
  if (operand == outputs) return tile;
  if (operand == outputs + 1) return heads;
  if (operand >= static_cast<int>(kFirstMask)) return WholeRect(args.inputs[operand].shape);
  if (operand == 0) return ReadRect(args.inputs[0].shape, heads, targets, attrs.query_column, sizes.key_width);
  if (targets > 0) {
    heads.row_begin = heads.row_begin / targets * sizes.sources;
    heads.row_end = (heads.row_end + targets - 1) / targets * sizes.sources;
  }
  heads.col_begin /= sizes.group_heads();
  heads.col_end = (heads.col_end + sizes.group_heads() - 1) / sizes.group_heads();
  return operand == 1 ? ReadRect(args.inputs[1].shape, heads, sizes.sources, attrs.key_column, sizes.key_width)
                      : ReadRect(args.inputs[2].shape, heads, sizes.sources, attrs.value_column, sizes.value_width);
}

// Returns `d` in the shape of x. `d` is the gradient by the columns of x from `column` on, so the other columns get
// zeros. If x is by head (rank 4), `d` covers all of x and is only permuted.
Var LikeOperand(Var d, Var x, int64_t column) {
  if (x.shape().rank() == 4) return Permute(Reshape(d, {x.dim(0), x.dim(2), x.dim(1), x.dim(3)}), {0, 2, 1, 3});
  return x.dim(2) == d.dim(2) ? d : Pad(d, -1, column, x.dim(2) - column - d.dim(2));
}

// attention_gradient computes the gradients by query, key and value. The gradient by a mask of numbers is the gradient
// by the masked scores, summed to the mask's shape. The compiler drops the ops of a gradient that nothing reads.
VarList Gradient(const GradientArgs& args) {
  AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const Var query = args.input(0), key = args.input(1), value = args.input(2);
  if (key.dim(-2) == 0) return VarList(args.inputs.size());  // there are no sources
  const Var dy = args.grad(0) ? args.grad(0) : FillLike(args.output(0), 0);
  attrs.by_lse = static_cast<bool>(args.grad(1));
  VarList inputs = {ByRow(query), ByRow(key), ByRow(value), args.output(0), args.output(1), dy};
  if (attrs.by_lse) inputs.push_back(args.grad(1));
  inputs.insert(inputs.end(), args.inputs.begin() + kFirstMask, args.inputs.end());
  const VarList d = RecordAll(kAttentionGradient, inputs, Attrs::Of(attrs));
  const Var dkey = d[0], dvalue = d[1], dquery = d[2];
  VarList gradients(args.inputs.size());
  const bool packed = query.id == key.id && key.id == value.id && attrs.query_column == 0 &&
                      attrs.key_column == dquery.dim(2) && attrs.value_column == attrs.key_column + dkey.dim(2) &&
                      query.dim(-1) == attrs.value_column + dvalue.dim(2);
  if (packed) {
    gradients[0] = Concat({dquery, dkey, dvalue}, -1);
  } else {
    gradients[0] = LikeOperand(dquery, query, attrs.query_column);
    gradients[1] = LikeOperand(dkey, key, attrs.key_column);
    gradients[2] = LikeOperand(dvalue, value, attrs.value_column);
  }
  for (size_t i = kFirstMask; i < args.inputs.size(); ++i) {
    if (args.input(i).dtype() == kBool) continue;
    gradients[i] = Cast(SumTo(ScoreGradient(attrs, inputs), args.input(i).shape()), args.input(i).dtype());
  }
  return gradients;
}

VarList InEval(const Attrs& attrs, VarSpan in) {
  AttentionAttrs without_dropout = attrs.as<AttentionAttrs>();
  without_dropout.dropout = 0;
  return RecordAll(kAttention, in, Attrs::Of(without_dropout));
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const ElementaryAttention e = SpellAttention(attrs, in, kFirstMask);
  const Var y = ByRow(MatMul(DropWeights(attrs, Softmax(e.scores)), e.value));
  return {Cast(y, in[0].dtype()), Permute(LogSumExp(e.scores, -1), {0, 2, 1})};
}

Cost CostOf(const OpArgs& args) {
  const auto attrs = args.attrs.as<AttentionAttrs>();
  return AttentionCost(args, int64_t{attrs.key_width} + attrs.value_width);
}

// Two heads of queries share one head of keys and values.
constexpr AttentionAttrs kHeads = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5};
constexpr AttentionAttrs kCausal = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5, .right = 0};
constexpr AttentionAttrs kCapped = {
    .heads = 2, .key_width = 3, .value_width = 2, .scale = 2, .soft_cap = 1.5, .right = 0};
constexpr AttentionAttrs kWindow = {.heads = 2, .key_width = 3, .value_width = 2, .scale = 0.5, .left = 20, .right = 3};
constexpr AttentionAttrs kByHead = {.heads = 4, .groups = 2, .key_width = 3, .value_width = 3, .scale = -0.7};
constexpr AttentionAttrs kPacked = {
    .heads = 2, .groups = 2, .key_width = 5, .value_width = 5, .key_column = 10, .value_column = 20, .right = 0};
constexpr AttentionAttrs kDropped = {.key_width = 3, .value_width = 2, .dropout = 0.3};

VarList PackedExample(VarSpan in) { return RecordWith<kAttention, kPacked>({in[0], in[0], in[0]}); }

constexpr OpExample kExamples[] = {
    {.in = "[2,3,6] [2,5,3] [2,5,2]", .record = RecordWith<kAttention, kHeads>, .out = "[2,3,4]"},
    {.in = "[1,5,6] [1,5,3] [1,5,2]", .record = RecordWith<kAttention, kCausal>, .out = "[1,5,4]"},
    {.in = "[1,70,6] [1,130,3] [1,130,2]",
     .record = RecordWith<kAttention, kCausal>,
     .tolerance = 1e-5},  // several blocks of keys and of queries
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,1,3,5]",
     .record = RecordWith<kAttention, kHeads>},  // a bias is added to the scores
    {.in = "[2,3,6] [2,5,3] [2,5,2] [5] [2,3,1]", .record = RecordWith<kAttention, kCausal>},
    {.in = "[1,140,6] [1,150,3] [1,150,2]", .record = RecordWith<kAttention, kWindow>, .tolerance = 1e-5},
    {.in = "[1,3,6] [1,150,3] [1,150,2]", .record = RecordWith<kAttention, kWindow>, .tolerance = 1e-5},
    {.in = "[2,3,6] [2,5,3] [2,5,2]", .record = RecordWith<kAttention, kCapped>},
    {.in = "[2,3,6] [2,5,3] [2,5,2] [2,1,3,5]", .record = RecordWith<kAttention, kCapped>},
    {.in = "[1,70,6] [1,130,3] [1,130,2]", .record = RecordWith<kAttention, kCapped>, .tolerance = 1e-5},
    {.in = "[2,4,3,3] [2,2,5,3] [2,2,5,3]", .record = RecordWith<kAttention, kByHead>, .out = "[2,3,12]"},
    {.in = "[2,7,30]", .record = PackedExample, .out = "[2,7,10]"},
    {.in = "[2,5,3] [2,7,3] [2,7,2]", .record = RecordWith<kAttention, kDropped>},
    {.in = "[0,3,6] [0,5,3] [0,5,2]", .record = RecordWith<kAttention, kHeads>},
    {.in = "[2,0,6] [2,5,3] [2,5,2]", .record = RecordWith<kAttention, kHeads>},
    {.in = "[2,3,6] [2,0,3] [2,0,2]",  // lse is -inf here, and has no finite differences
     .record = RecordWith<kAttention, kHeads>,
     .out = "[2,3,4]",
     .check_gradient = false},
    {.in = "[2,3,5] [2,5,3] [2,5,2]",
     .record = RecordWith<kAttention, kHeads>,
     .error = "query must be [B,2,n,3], or [B,n,C] with C >= 6"},
    {.in = "[2,3,6] [2,5,3] [2,4,2]",
     .record = RecordWith<kAttention, kHeads>,
     .error = "keys and values differ in number"},
    {.in = "[2,3,6] [1,5,3] [1,5,2]",
     .record = RecordWith<kAttention, kHeads>,
     .error = "key's batch is not the query's"},
    {.in = "[2,3,6] [2,5,3] [2,5,2] bool[4]",
     .record = RecordWith<kAttention, kHeads>,
     .error = "does not broadcast to [2,2,3,5]"},
    {.in = "[2,3,6] [2,5,3] [2,5,2] i32[5]",
     .record = RecordWith<kAttention, kHeads>,
     .error = "must be bool or of the query's dtype"},
};

}  // namespace

constexpr OpDef kAttention = {.name = "attention",
                              .infer = Infer,
                              .outputs = 2,
                              .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                              .workspace = ForwardWorkspace,
                              .cut = Cut::kBoth,
                              .quantum = Quantum,
                              .column_quantum = HeadColumns,
                              .access = Access,
                              .random = true,
                              .gradient = Gradient,
                              .elementary = Elementary,
                              .in_eval = InEval,
                              .autocast = Autocast::kProduct,
                              .cost = CostOf,
                              .attrs = AttrOpsOf<AttentionAttrs>(),
                              .examples = kExamples};

Var ScaledDotProductAttention(Var query, Var key, Var value, const ScaledDotProductOptions& options, VarSpan masks) {
  return Composite("attention", {query, key, value}, [&]() -> absl::StatusOr<Var> {
    const int64_t heads = options.heads, groups = options.key_value_heads != 0 ? options.key_value_heads : heads;
    const Types types = {query.type(), key.type(), value.type()};
    if (options.window < 0) {
      return ShapeError("attention", absl::StrCat("window = ", options.window, ", wanted >= 0"), types);
    }
    constexpr int64_t kMaxHeads = 1 << 20;
    if (heads < 1 || heads > kMaxHeads || groups < 1 || groups > heads) {
      const std::string got = absl::StrCat("heads = ", heads, ", key_value_heads = ", groups);
      return ShapeError("attention", absl::StrCat(got, ", wanted 1 <= key_value_heads <= heads <= ", kMaxHeads), types);
    }
    const auto width = [&](Var x, int64_t in_x) -> absl::StatusOr<int32_t> {
      if (x.shape().rank() != 3) return static_cast<int32_t>(x.dim(-1));
      if (x.dim(-1) % in_x == 0) return static_cast<int32_t>(x.dim(-1) / in_x);
      const std::string wrong = absl::StrCat("the last axis of ", ToString(x.type()), " does not fall into ", in_x);
      return ShapeError("attention", wrong + " heads", types);
    };
    WEFT_ASSIGN_OR_RETURN(const int32_t query_width, width(query, heads));
    WEFT_ASSIGN_OR_RETURN(const int32_t key_width, width(key, groups));
    if (query_width != key_width) {
      return ShapeError("attention", "heads of queries and keys differ in width", {query.type(), key.type()});
    }
    WEFT_ASSIGN_OR_RETURN(const int32_t value_width, width(value, groups));
    AttentionAttrs attrs = {.heads = static_cast<int32_t>(heads),
                            .groups = static_cast<int32_t>(groups),
                            .key_width = key_width,
                            .value_width = value_width,
                            .soft_cap = options.soft_cap,
                            .dropout = options.dropout,
                            .left = BandLimit(options.window - 1)};
    attrs.right = options.causal ? 0 : attrs.left;
    attrs.scale = options.scale != 0 ? options.scale : 1 / std::sqrt(std::max(1.0, static_cast<double>(key_width)));
    if (options.dropout > 0) attrs.stream = query.tape->NextStream();
    VarList inputs = {query, key, value};
    inputs.insert(inputs.end(), masks.begin(), masks.end());
    return RecordAll(kAttention, inputs, Attrs::Of(attrs))[0];
  });
}

}  // namespace weft
