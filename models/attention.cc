// Records projections, scores, masks and merging in elementary ops. The compiler replaces the usual forms by ops with
// fast kernels.
#include "weft/models/attention.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Returns `options` with all widths set. If the options do not fit x and memory, fails the tape.
AttentionOptions Checked(Tape* tape, const TensorType& x, const TensorType& memory, AttentionOptions options) {
  const auto fail = [&](absl::string_view problem) { tape->Fail(ShapeError("attention", problem, {x, memory})); };
  if (x.shape.rank() != 3 || memory.shape.rank() != 3) {
    fail("x must be [B,T,C], and memory [B,S,C]");
    return options;
  }
  const int64_t width = x.shape.dim(2);
  if (x.shape.dim(0) != memory.shape.dim(0)) fail("x and memory must have the same batch");
  if ((options.ablation.value || options.ablation.query_is_key) && width != memory.shape.dim(2)) {
    fail("with an ablation, the memory must be as wide as x");
  }
  if (const absl::Status valid = Validate(options.variant, options.ablation, options.heads, width); !valid.ok()) {
    fail(valid.message());
    return options;
  }
  options.variant = WithWidths(std::move(options.variant), options.ablation, options.heads, width);
  return options;
}

// Returns the mistake in the cache, or "".
std::string CacheProblem(Tape* tape, const AttentionCache& cache) {
  if (cache.positions.tape != tape || cache.pages.tape != tape) {
    return "the cache's positions and pages are not on the tape of x";
  }
  if (cache.page_count < 1 || cache.page_size < 1 || cache.pages.shape().rank() != 2) {
    return absl::StrCat("a cache of ", cache.page_count, " pages of ", cache.page_size,
                        " positions, wanted at least 1 of each, and pages i32[B,P]");
  }
  return "";
}

// Like Checked, for a stored memory. Its rows have no positions, so options that need positions also fail the tape.
AttentionOptions CheckedStored(Tape* tape, const TensorType& x, const TensorType& memory,
                               const AttentionOptions& options, const AttentionCache& cache) {
  const AttentionPattern pattern = options.pattern();
  const char* const what = options.causal                                         ? "causal"
                           : options.variant.distance_bias != DistanceBias::kNone ? "distance_bias"
                           : pattern.window != 0                                  ? "window"
                           : pattern.stride != 0                                  ? "stride"
                           : options.variant.rotary                               ? "rotary"
                                                                                  : "";
  std::string problem = CacheProblem(tape, cache);
  if (*what != '\0') problem = absl::StrCat("a stored memory has no positions, as ", what, " needs them");
  if (!problem.empty()) tape->Fail(ShapeError("attention", problem, {x, memory}));
  return Checked(tape, x, memory, options);
}

struct Projections {
  Var query, key, value;  // [B, H, T, d_q], [B, G, S, d_k], [B, G, S, d_v]; null without x or memory
};

// Returns x [B, T, heads · D] as [B, heads, T, D].
Var ByHead(Var x, int64_t heads) {
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// Returns x [B, T, heads · D], queries or keys, as [B, heads, T, D], after the norm `name` if there is one.
Var NormalizedByHead(const char* name, Var x, int64_t heads, const AttentionOptions& o) {
  const QueryKeyNorm kind = o.variant.query_key_norm;
  if (kind == QueryKeyNorm::kFull) x = Norm(name, x, o.norm, o.ablation);
  if (kind != QueryKeyNorm::kHead) return ByHead(x, heads);
  const Var split = Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return Permute(Norm(name, split, o.norm, o.ablation), {0, 2, 1, 3});
}

// Projects x [B, T, C] to queries, and `memory` [B, S, C'] to keys and values. Either may be null, but not both. Layers
// of different names compute them, or one packed layer computes all three. `o`: with all widths set. `added`: as
// AttentionInputs::value.
Projections Project(Var x, Var memory, const AttentionOptions& o, Var added = {}) {
  const AttentionVariant& v = o.variant;
  const LinearOptions linear = {.bias = v.projection_bias.value_or(o.bias), .initializer = o.initializer};
  const bool self = x && memory && x.id == memory.id;
  const bool shared = o.ablation.query_is_key, has_value = !o.ablation.value;  // `shared`: o.query computes keys, too
  const int64_t query = o.heads * v.query_width, key = shared ? 0 : v.key_value_heads * v.key_width,
                value = has_value ? v.key_value_heads * v.value_width : 0;
  Projections p;
  const auto values = [&](Var own) { p.value = ByHead(added ? own + added : own, v.key_value_heads); };
  if (self && o.packed != nullptr) {
    const Var all = Linear(o.packed, x, query + key + value, linear);  // [B, T, ...]
    VarList parts = {{}, {}, x};
    if (query == key && key == value) {
      // A split is preferred to slices: its gradient is one concatenation, while slices' gradients must be added.
      parts = Split(all, -1, 3);
    } else {
      parts[0] = Slice(all, -1, 0, query);
      parts[1] = shared ? parts[0] : Slice(all, -1, query, query + key);
      if (has_value) parts[2] = Slice(all, -1, query + key, query + key + value);
    }
    p.query = NormalizedByHead(o.query_norm, parts[0], o.heads, o);
    p.key = NormalizedByHead(o.key_norm, parts[1], v.key_value_heads, o);
    values(parts[2]);
    return p;
  }
  if (shared && x && memory && !self) {
    // One product over x and the memory, so that the shared layer is recorded once.
    const Var both = Linear(o.query, Concat({x, memory}, 1), query, linear);  // [B, T + S, H · d_q]
    p.query = NormalizedByHead(o.query_norm, Slice(both, 1, 0, x.dim(1)), o.heads, o);
    p.key = NormalizedByHead(o.key_norm, Slice(both, 1, x.dim(1), x.dim(1) + memory.dim(1)), o.heads, o);
  } else {
    const Var q = x ? Linear(o.query, x, query, linear) : Var();
    if (x) p.query = NormalizedByHead(o.query_norm, q, o.heads, o);
    const auto keys = [&](Var k) { p.key = NormalizedByHead(o.key_norm, k, v.key_value_heads, o); };
    if (memory && shared) keys(self ? q : Linear(o.query, memory, query, linear));
    if (memory && !shared) keys(Linear(o.key, memory, key, linear));
  }
  if (memory) values(has_value ? Linear(o.value, memory, value, linear) : memory);
  return p;
}

// Returns f32 [n, 1]: the position of each of n rows modulo `stride`. Row i is at position `first` + i.
Var Phases(Tape* tape, int64_t n, int64_t stride, int64_t first = 0) {
  return ConstantTable(tape, kF32, n, 1, [&](int64_t i, int64_t) {
    return static_cast<double>(((i + first) % stride + stride) % stride);
  });
}

// Returns the number whose multiples the pattern shows: a dilation above 1 or else the stride, which may be 0.
int64_t Period(const AttentionPattern& p) { return p.dilation > 1 ? p.dilation : p.stride; }

// Returns the largest distance from a target back to a source that its window shows, or -1 for no limit. A stride also
// shows sources outside the window, so with a stride there is no limit.
int64_t Reach(const AttentionPattern& p) { return p.window > 0 && p.stride == 0 ? p.window * p.dilation - 1 : -1; }

// Returns bool [..., T, S]: true where the stride or the dilation of `p` hides a source from a target. One of the two
// must be set. A target sees the sources whose distance is a multiple of Period(p). With a stride, it also sees the
// sources in its window. With a dilation, this function ignores the window, and its callers hide the sources outside.
// `position` has the targets' positions, f32 [..., T, 1]. `phase` has the same positions modulo Period(p).
Var HiddenByPattern(Var position, Var phase, int64_t sources, const AttentionPattern& p) {
  Tape* const tape = position.tape;
  const Var hidden = Not(Equal(phase, Reshape(Phases(tape, sources, Period(p)), {sources})));
  if (p.stride == 0 || p.window == 0) return hidden;
  const Var source = Iota(tape, kF32, sources);
  const double window = static_cast<double>(p.window);
  const Var near =
      Equal(Less(source, position + window), Less(position, source + window));  // at least one of the two is true
  return MaskFill(hidden, near, 0);
}

// Returns the bias of the scores, [B, H, T, S] or [H, T, S]. `position`: positions of the targets, i32 [B, 1, T, 1] or
// [T, 1], all below `sources`. If there are more targets than sources, the first are negative.
Var BiasOfDistance(DType dtype, Var position, int64_t sources, const AttentionOptions& o) {
  Tape* const tape = position.tape;
  const Var distance = Iota(tape, kI32, sources) - position;  // [B, 1, T, S] or [T, S]
  if (o.variant.distance_bias == DistanceBias::kAlibi) {
    const Var slopes = ConstantTable(tape, dtype, o.heads, 1, [&](int64_t head, int64_t) {
      return -std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(o.heads));
    });
    return Cast(Abs(distance), dtype) * Reshape(slopes, {o.heads, 1, 1});
  }
  const Scope scope(tape, "relative_attention_bias");
  const Var table = o.shared_bias != nullptr
                        ? tape->FindParameter(o.shared_bias)
                        : tape->Parameter("weight", {dtype, {o.variant.buckets, o.heads}}, o.initializer);
  const int64_t reach = std::max(sources, position.dim(-2));
  const Var bucket = Cast(ConstantTable(tape, kF32, 2 * reach + 1, 1,
                                        [&](int64_t i, int64_t) {
                                          return static_cast<double>(DistanceBucket(i - reach, o.variant.buckets,
                                                                                    o.variant.max_distance, !o.causal));
                                        }),
                          kI32);
  const Var by_distance = Embedding(table, Reshape(bucket, {2 * reach + 1}));      // [2 reach + 1, H]
  const Var bias = Embedding(by_distance, distance + static_cast<double>(reach));  // [..., S, H]
  const Shape shape = bias.shape();
  if (shape.rank() == 3) return Permute(bias, {2, 0, 1});
  return Reshape(Permute(bias, {0, 1, 4, 2, 3}), {shape.dim(0), o.heads, shape.dim(2), shape.dim(3)});
}

// Returns the scores [B, H, T, S] with the distance bias added, and with -infinity for sources that a target may not
// see. Targets are at the positions of the cache, and see no later ones. Without a cache, the last target is at the
// position of the last source.
Var MaskScores(Var scores, const AttentionOptions& o, const AttentionCache* cache) {
  Tape* const tape = scores.tape;
  const int64_t targets = scores.dim(2), sources = scores.dim(3), first = sources - targets;
  const AttentionPattern pattern = o.pattern();
  const auto by_target = [&](Var v) {  // [B, 1, T, 1] or [T, 1]
    return cache != nullptr ? Reshape(v, {scores.dim(0), 1, targets, 1}) : Reshape(v, {targets, 1});
  };
  const auto positions = [&](DType dtype) {
    return by_target(cache != nullptr ? Cast(cache->positions, dtype)
                                      : Iota(tape, dtype, targets) + static_cast<double>(first));
  };
  if (o.variant.distance_bias != DistanceBias::kNone) {
    scores = scores + BiasOfDistance(scores.dtype(), positions(kI32), sources, o);
  }
  if (Period(pattern) > 0) {
    const Var phase = by_target(cache != nullptr ? Embedding(Phases(tape, sources, Period(pattern)), cache->positions)
                                                 : Phases(tape, targets, Period(pattern), first));
    scores = MaskFill(scores, HiddenByPattern(positions(kF32), phase, sources, pattern), kHidden);
  }
  const int64_t reach = Reach(pattern);
  if (cache != nullptr) return BandMask(scores, reach, 0, kHidden, cache->positions);
  return o.causal || reach >= 0 ? BandMask(scores, reach, o.causal ? 0 : reach, kHidden) : scores;
}

// Rotates queries and keys by their rows' positions: `cache->positions` or, without a cache, 0, 1, ...
void ApplyRotary(const AttentionOptions& o, const AttentionCache* cache, Projections* p) {
  const Var x = p->query;
  const AttentionVariant& v = o.variant;
  const double own_base = o.pattern().rotary_base;
  const int64_t turned = v.rotary_width != 0 ? v.rotary_width : v.key_width;
  VarList tables =
      RotaryTables(x.tape, x.dtype(), cache != nullptr ? cache->capacity() : x.dim(2), turned,
                   own_base != 0 ? own_base : v.rotary_base, own_base != 0 ? RotaryScaling() : v.rotary_scaling);
  if (cache != nullptr) {
    for (Var& table : tables) {  // [B, 1, T, turned / 2]
      table = Reshape(Embedding(table, cache->positions), {x.dim(0), 1, x.dim(2), turned / 2});
    }
  }
  for (Var* each : {&p->query, &p->key}) {
    const Var first = turned == v.key_width ? *each : Slice(*each, -1, 0, turned);
    const Var rotated = Rotary(first, tables[0], tables[1], *v.rotary);
    *each = turned == v.key_width ? rotated : Concat({rotated, Slice(*each, -1, turned, v.key_width)}, -1);
  }
}

// Returns the scores [B, H, T, S] of queries [B, H, T, d_q] and keys [B, G, S, d_k].
Var Scores(Var query, Var key, const AttentionOptions& o) {
  const int64_t batch = query.dim(0), length = query.dim(2), sources = key.dim(2), groups = o.variant.key_value_heads;
  if (o.variant.score == ScoreFunction::kDot) {
    // The heads of a key-value group share one product, whose rows are the queries of all these heads.
    query = Reshape(query, {batch, groups, o.heads / groups * length, o.variant.query_width});
    const Var scores = MatMul(query, key, {.transpose_b = true});  // [B, G, H/G · T, S]
    const double scale = o.variant.score_scale;
    return Scale(Reshape(scores, {batch, o.heads, length, sources}),
                 scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(o.variant.key_width)));
  }
  Tape* const tape = query.tape;
  const Scope scope(tape, "score");
  const DType dtype = query.dtype();
  const int64_t hidden = o.variant.score_width;
  const Var from_query =
      tape->Parameter("query.weight", {dtype, {o.heads, o.variant.query_width, hidden}}, o.initializer);
  const Var from_key = tape->Parameter("key.weight", {dtype, {groups, o.variant.key_width, hidden}}, o.initializer);
  const Var output = tape->Parameter("output.weight", {dtype, {o.heads, 1, hidden}}, o.initializer);
  Var keys = Reshape(MatMul(key, from_key), {batch, groups, 1, sources, hidden});
  keys = BroadcastTo(keys, {batch, groups, o.heads / groups, sources, hidden});
  const Var sum = Reshape(MatMul(query, from_query), {batch, o.heads, length, 1, hidden}) +
                  Reshape(keys, {batch, o.heads, 1, sources, hidden});
  return Sum(Tanh(sum) * Reshape(output, {1, o.heads, 1, 1, hidden}), -1);
}

Var Capped(Var scores, const AttentionOptions& o) {
  return o.variant.soft_cap > 0 ? Scale(Tanh(Scale(scores, 1 / o.variant.soft_cap)), o.variant.soft_cap) : scores;
}

// Applies softmax(scores) to the values [B, G, S, d_v] and merges the heads: [B, T, width].
Var Mix(Var scores, Var value, int64_t width, const AttentionOptions& o) {
  const int64_t batch = scores.dim(0), length = scores.dim(2), sources = scores.dim(3),
                groups = o.variant.key_value_heads;
  Var weights = Softmax(scores);  // [B, H, T, S]
  weights.tape->Probe(kAttentionWeights, weights);
  weights = Dropout(weights, o.dropout);
  Var mixed = MatMul(Reshape(weights, {batch, groups, o.heads / groups * length, sources}), value);
  mixed = Reshape(mixed, {batch, o.heads, length, o.variant.value_width});  // [B, H, T, d_v]
  if (o.variant.merge == HeadMerge::kAverage) return Dropout(Mean(mixed, 1), o.residual_dropout);
  const Var y =
      Linear(o.output, Reshape(Permute(mixed, {0, 2, 1, 3}), {batch, length, o.heads * o.variant.value_width}), width,
             {.bias = o.variant.output_bias.value_or(o.bias), .initializer = o.output_initializer});
  return Dropout(y, o.residual_dropout);
}

// Returns the states of a cache: keys [N, G, page_size, d_k] and values [N, G, page_size, d_v].
VarList CacheState(DType dtype, const AttentionOptions& o, const AttentionCache& cache) {
  const auto state = [&](const char* name, int64_t width) {
    return cache.positions.tape->State(cache.prefix + name,
                                       {dtype, {cache.page_count, o.variant.key_value_heads, cache.page_size, width}},
                                       Zeros(), ParameterKind::kCache);
  };
  return {state(".key", o.variant.key_width), state(".value", o.variant.value_width)};
}

// Writes keys and values to the cache. Returns the next versions of its states.
VarList Append(const Projections& p, const AttentionOptions& o, const AttentionCache& cache) {
  const VarList state = CacheState(p.key.dtype(), o, cache);
  return {CacheAppend(state[0], p.key, cache.positions, cache.pages),
          CacheAppend(state[1], p.value, cache.positions, cache.pages)};
}

}  // namespace

Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options, const AttentionInputs& inputs) {
  const Scope scope(x.tape, name);
  const Var memory = inputs.memory.tape != nullptr ? inputs.memory : x;
  const AttentionOptions o = Checked(x.tape, x.type(), memory.type(), options);
  const auto fail = [&](absl::string_view problem) {
    x.tape->Fail(ShapeError("attention", problem, {x.type(), memory.type()}));
  };
  if (inputs.cache != nullptr) {
    if (const std::string problem = CacheProblem(x.tape, *inputs.cache); !problem.empty()) fail(problem);
    if (memory.id != x.id) fail("a cache holds the keys and values of x, not of a memory");
  }
  if (o.variant.rotary && memory.id != x.id) fail("rotary turns by positions of x, which a memory does not share");
  if (!x.tape->status().ok()) return x.tape->Poison();
  Projections p = Project(x, memory, o, inputs.value);
  if (o.variant.rotary && o.pattern().rotary) ApplyRotary(o, inputs.cache, &p);
  if (inputs.cache != nullptr) {
    const VarList written = Append(p, o, *inputs.cache);
    p.key = ReadPages(written[0], inputs.cache->pages);
    p.value = ReadPages(written[1], inputs.cache->pages);
  }
  Var scores = Capped(Scores(p.query, p.key, o), o);  // [B, H, T, S]
  scores = MaskScores(scores, o, inputs.cache);
  if (inputs.mask.tape != nullptr) scores = MaskFill(scores, inputs.mask, kHidden);
  return Mix(scores, p.value, x.dim(2), o);
}

VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const AttentionOptions& options,
                    const AttentionCache& cache) {
  const Scope scope(memory.tape, name);
  TensorType x = memory.type();
  if (x.shape.rank() > 0) x.shape.set_dim(-1, width);
  const AttentionOptions o = CheckedStored(memory.tape, x, memory.type(), options, cache);
  if (!memory.tape->status().ok()) return VarList(2, memory.tape->Poison());
  return Append(Project({}, memory, o), o, cache);
}

Var AttendToStored(absl::string_view name, Var x, const AttentionOptions& options, const AttentionCache& cache) {
  const Scope scope(x.tape, name);
  const AttentionOptions o = CheckedStored(x.tape, x.type(), x.type(), options, cache);
  if (!x.tape->status().ok()) return x.tape->Poison();
  const VarList state = CacheState(x.dtype(), o, cache);
  const Var key = ReadPages(state[0], cache.pages), value = ReadPages(state[1], cache.pages);
  const Var scores = Capped(Scores(Project(x, {}, o).query, key, o), o);
  return Mix(MaskScores(scores, o, &cache), value, x.dim(2), o);
}

AttentionCache LayerOf(AttentionCache cache, int64_t i) {
  absl::StrAppend(&cache.prefix, ".", i);
  return cache;
}

PositionKind Resolve(PositionKind positions, const AttentionVariant& variant, PositionKind usual) {
  if (positions != PositionKind::kAuto) return positions;
  return variant.rotary || variant.distance_bias != DistanceBias::kNone ? PositionKind::kNone : usual;
}

Var AddPositions(Var x, const PositionOptions& options, const AttentionCache* cache) {
  if (options.kind == PositionKind::kNone) return x;
  Tape* const tape = x.tape;
  const int64_t width = x.dim(-1), length = x.dim(1);
  const int64_t row = options.kind == PositionKind::kLearned ? options.first : 0;  // of position 0 in the table
  const Var table =
      options.kind == PositionKind::kLearned
          ? EmbeddingTable(options.name, tape, options.context + row, width, {.dtype = x.dtype(), .least = kF32})
          : SinusoidalPositions(
                tape, x.dtype(), cache != nullptr ? cache->capacity() : length, width,
                options.kind == PositionKind::kSinusoidal ? SinusoidLayout::kInterleaved : SinusoidLayout::kHalves,
                options.first);
  if (cache == nullptr) return x + Slice(table, 0, row, row + length);
  return x + Embedding(table, row == 0 ? cache->positions : cache->positions + static_cast<double>(row));
}

int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance, bool both_sides) {
  int64_t first = 0;
  if (both_sides) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(0, -distance);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  return first + std::min(buckets - 1, exact + static_cast<int64_t>(share * static_cast<double>(buckets - exact)));
}

Var PaddingMask(Var lengths, int64_t sources) {
  if (lengths.shape().rank() == 2) return Equal(Reshape(lengths, {lengths.dim(0), 1, 1, sources}), Number(lengths, 0));
  const Var positions = Iota(lengths.tape, kI32, sources);
  return Not(Less(positions, Reshape(lengths, {lengths.dim(0), 1, 1, 1})));
}

Var DocumentMask(Var documents) {
  const int64_t batch = documents.dim(0), length = documents.dim(1);
  return NotEqual(Reshape(documents, {batch, 1, length, 1}), Reshape(documents, {batch, 1, 1, length}));
}

}  // namespace weft
