// Records projections, scores, masks and merging in elementary ops. The compiler replaces the usual forms by ops with
// fast kernels.
#include "weft/models/attention.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/models/layers.h"
#include "weft/models/projections.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Returns `options` with defaults in place of widths and key_value_heads that are 0. `width`: C of x.
AttentionOptions WithWidths(AttentionOptions options, int64_t width) {
  const auto set = [](int64_t* option, int64_t value) { *option = *option != 0 ? *option : value; };
  set(&options.key_value_heads, options.heads);
  set(&options.key_width, options.query_width != 0 ? options.query_width : width / std::max<int64_t>(options.heads, 1));
  set(&options.query_width, options.key_width);
  const int64_t groups = std::max<int64_t>(options.key_value_heads, 1);
  set(&options.value_width, options.ablation.value                 ? width / groups
                            : options.merge == HeadMerge::kAverage ? width
                                                                   : options.key_width);
  set(&options.score_width, options.key_width);
  return options;
}

// Returns the first error of attention that leaves out a layer, or "" if there is none.
std::string AblationProblem(const Shape& x, const Shape& memory, const AttentionOptions& o) {
  if ((o.ablation.value || o.ablation.query_is_key) && x.dim(2) != memory.dim(2)) {
    return "with an ablation, the memory must be as wide as x";
  }
  if (o.ablation.value && o.key_value_heads * o.value_width != x.dim(2)) {
    return absl::StrCat("without a layer of values, C must be key_value_heads ", o.key_value_heads,
                        " times value_width ", o.value_width);
  }
  if (o.ablation.query_is_key && (o.heads != o.key_value_heads || o.query_width != o.key_width)) {
    return "a layer for both queries and keys needs the same heads and widths of both";
  }
  return "";
}

// Returns the first error in the shapes or options, or "" if there is none. `options`: as the caller gave them; `o`:
// with default widths filled in (WithWidths).
std::string Problem(const Shape& x, const Shape& memory, const AttentionOptions& options, const AttentionOptions& o) {
  if (x.rank() != 3 || memory.rank() != 3) return "x must be [B,T,C], and memory [B,S,C]";
  if (x.dim(0) != memory.dim(0)) return "x and memory must have the same batch";
  const absl::Status sizes = CheckSizes({{"heads", o.heads, 1, kMaxFeatures},
                                         {"key_value_heads", o.key_value_heads, 1, kMaxFeatures},
                                         {"query_width", o.query_width, 1, kMaxFeatures},
                                         {"key_width", o.key_width, 1, kMaxFeatures},
                                         {"value_width", o.value_width, 1, kMaxFeatures},
                                         {"score_width", o.score_width, 1, kMaxFeatures},
                                         {"window", o.window, 0, kMaxPositions},
                                         {"stride", o.stride, 0, kMaxPositions},
                                         {"dilation", o.dilation, 1, kMaxPositions},
                                         {"buckets", o.buckets, 4, kMaxPositions},
                                         {"max_distance", o.max_distance, o.buckets, kMaxPositions}});
  if (!sizes.ok()) return std::string(sizes.message());
  if (o.dilation > 1 && (o.window == 0 || o.stride > 0)) return "a dilation needs a window and excludes a stride";
  if (!(o.soft_cap >= 0 && std::isfinite(o.soft_cap))) return absl::StrCat("soft_cap is ", o.soft_cap, ", wanted >= 0");
  if (options.key_width == 0 && options.query_width == 0 && x.dim(2) % o.heads != 0) {
    return absl::StrCat("C must be a multiple of heads ", o.heads);
  }
  if (o.heads % o.key_value_heads != 0) {
    return absl::StrCat("heads ", o.heads, " is not a multiple of key_value_heads ", o.key_value_heads);
  }
  if (o.score == ScoreFunction::kDot && o.query_width != o.key_width) {
    return absl::StrCat("a product needs queries as wide as keys, not ", o.query_width, " and ", o.key_width);
  }
  if (o.merge == HeadMerge::kAverage && o.value_width != x.dim(2)) {
    return absl::StrCat("the mean of heads needs values as wide as x, not ", o.value_width);
  }
  return AblationProblem(x, memory, o);
}

// Returns WithWidths(options). If the options do not fit x and memory, fails the tape.
AttentionOptions Checked(Tape* tape, const TensorType& x, const TensorType& memory, const AttentionOptions& options) {
  const AttentionOptions o = WithWidths(options, x.shape.rank() > 0 ? x.shape.dim(-1) : 0);
  if (const std::string problem = Problem(x.shape, memory.shape, options, o); !problem.empty()) {
    tape->Fail(ShapeError("attention", problem, {x, memory}));
  }
  return o;
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
  const bool biased = options.distance_bias != DistanceBias::kNone;
  if (options.causal || options.window != 0 || options.stride != 0 || options.rotary || biased) {
    const char* what = options.causal        ? "causal"
                       : biased              ? "distance_bias"
                       : options.window != 0 ? "window"
                       : options.stride != 0 ? "stride"
                                             : "rotary";
    tape->Fail(ShapeError("attention", absl::StrCat("a stored memory has no positions, as ", what, " needs them"),
                          {x, memory}));
  }
  if (const std::string problem = CacheProblem(tape, cache); !problem.empty()) {
    tape->Fail(ShapeError("attention", problem, {x, memory}));
  }
  return Checked(tape, x, memory, options);
}

// Returns f32 [n, 1]: the position of each of n rows modulo `stride`. Row i is at position `first` + i.
Var Phases(Tape* tape, int64_t n, int64_t stride, int64_t first = 0) {
  return ConstantTable(tape, kF32, n, 1, [&](int64_t i, int64_t) {
    return static_cast<double>(((i + first) % stride + stride) % stride);
  });
}

// Returns the number whose multiples the pattern shows: a dilation above 1 or else the stride, which may be 0.
int64_t Period(const AttentionOptions& o) { return o.dilation > 1 ? o.dilation : o.stride; }

// Returns the largest distance from a target back to a source that its window shows, or -1 for no limit. A stride also
// shows sources outside the window, so with a stride there is no limit.
int64_t Reach(const AttentionOptions& o) { return o.window > 0 && o.stride == 0 ? o.window * o.dilation - 1 : -1; }

// Returns bool [..., T, S]: true where the stride or the dilation of `o` hides a source from a target. One of the two
// must be set. A target sees the sources whose distance is a multiple of Period(o). With a stride, it also sees the
// sources in its window. With a dilation, this function ignores the window, and its callers hide the sources outside.
// `position` has the targets' positions, f32 [..., T, 1]. `phase` has the same positions modulo Period(o).
Var HiddenByPattern(Var position, Var phase, int64_t sources, const AttentionOptions& o) {
  Tape* const tape = position.tape;
  const Var hidden = Not(Equal(phase, Reshape(Phases(tape, sources, Period(o)), {sources})));
  if (o.stride == 0 || o.window == 0) return hidden;
  const Var source = Iota(tape, kF32, sources);
  const double window = static_cast<double>(o.window);
  const Var near =
      Equal(Less(source, position + window), Less(position, source + window));  // at least one of the two is true
  return MaskFill(hidden, near, 0);
}

// Returns the bias of the scores, [B, H, T, S] or [H, T, S]. `position`: positions of the targets, i32 [B, 1, T, 1] or
// [T, 1], all below `sources`. If there are more targets than sources, the first are negative.
Var BiasOfDistance(DType dtype, Var position, int64_t sources, const AttentionOptions& o) {
  Tape* const tape = position.tape;
  const Var distance = Iota(tape, kI32, sources) - position;  // [B, 1, T, S] or [T, S]
  if (o.distance_bias == DistanceBias::kAlibi) {
    const Var slopes = ConstantTable(tape, dtype, o.heads, 1, [&](int64_t head, int64_t) {
      return -std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(o.heads));
    });
    return Cast(Abs(distance), dtype) * Reshape(slopes, {o.heads, 1, 1});
  }
  const Scope scope(tape, "relative_attention_bias");
  const Var table = tape->Parameter("weight", {dtype, {o.buckets, o.heads}}, o.initializer);
  const int64_t reach = std::max(sources, position.dim(-2));
  const Var bucket =
      Cast(ConstantTable(tape, kF32, 2 * reach + 1, 1,
                         [&](int64_t i, int64_t) {
                           return static_cast<double>(DistanceBucket(i - reach, o.buckets, o.max_distance, !o.causal));
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
  const int64_t targets = scores.dim(2), sources = scores.dim(3), first = sources - targets, reach = Reach(o);
  const auto by_target = [&](Var v) {  // [B, 1, T, 1] or [T, 1]
    return cache != nullptr ? Reshape(v, {scores.dim(0), 1, targets, 1}) : Reshape(v, {targets, 1});
  };
  const auto positions = [&](DType dtype) {
    return by_target(cache != nullptr ? Cast(cache->positions, dtype)
                                      : Iota(tape, dtype, targets) + static_cast<double>(first));
  };
  if (o.distance_bias != DistanceBias::kNone) {
    scores = scores + BiasOfDistance(scores.dtype(), positions(kI32), sources, o);
  }
  if (Period(o) > 0) {
    const Var phase = by_target(cache != nullptr ? Embedding(Phases(tape, sources, Period(o)), cache->positions)
                                                 : Phases(tape, targets, Period(o), first));
    scores = MaskFill(scores, HiddenByPattern(positions(kF32), phase, sources, o), kHidden);
  }
  if (cache != nullptr) return BandMask(scores, reach, 0, kHidden, cache->positions);
  return o.causal || reach >= 0 ? BandMask(scores, reach, o.causal ? 0 : reach, kHidden) : scores;
}

// Rotates queries and keys by their rows' positions: `cache->positions` or, without a cache, 0, 1, ...
void ApplyRotary(const AttentionOptions& o, const AttentionCache* cache, Projections* p) {
  const Var x = p->query;
  VarList tables =
      RotaryTables(x.tape, x.dtype(), cache != nullptr ? cache->capacity() : x.dim(2), o.key_width, o.rotary_base);
  if (cache != nullptr) {
    for (Var& table : tables) {  // [B, 1, T, D/2]
      table = Reshape(Embedding(table, cache->positions), {x.dim(0), 1, x.dim(2), o.key_width / 2});
    }
  }
  for (Var* v : {&p->query, &p->key}) *v = Rotary(*v, tables[0], tables[1], *o.rotary);
}

// Returns the scores [B, H, T, S] of queries [B, H, T, d_q] and keys [B, G, S, d_k].
Var Scores(Var query, Var key, const AttentionOptions& o) {
  const int64_t batch = query.dim(0), length = query.dim(2), sources = key.dim(2), groups = o.key_value_heads;
  if (o.score == ScoreFunction::kDot) {
    // The heads of a key-value group share one product, whose rows are the queries of all these heads.
    query = Reshape(query, {batch, groups, o.heads / groups * length, o.query_width});
    const Var scores = MatMul(query, key, {.transpose_b = true});  // [B, G, H/G · T, S]
    return Scale(Reshape(scores, {batch, o.heads, length, sources}), 1 / std::sqrt(static_cast<double>(o.key_width)));
  }
  Tape* const tape = query.tape;
  const Scope scope(tape, "score");
  const DType dtype = query.dtype();
  const int64_t hidden = o.score_width;
  const Var from_query = tape->Parameter("query.weight", {dtype, {o.heads, o.query_width, hidden}}, o.initializer);
  const Var from_key = tape->Parameter("key.weight", {dtype, {groups, o.key_width, hidden}}, o.initializer);
  const Var output = tape->Parameter("output.weight", {dtype, {o.heads, 1, hidden}}, o.initializer);
  Var keys = Reshape(MatMul(key, from_key), {batch, groups, 1, sources, hidden});
  keys = BroadcastTo(keys, {batch, groups, o.heads / groups, sources, hidden});
  const Var sum = Reshape(MatMul(query, from_query), {batch, o.heads, length, 1, hidden}) +
                  Reshape(keys, {batch, o.heads, 1, sources, hidden});
  return Sum(Tanh(sum) * Reshape(output, {1, o.heads, 1, 1, hidden}), -1);
}

Var Capped(Var scores, const AttentionOptions& o) {
  return o.soft_cap > 0 ? Scale(Tanh(Scale(scores, 1 / o.soft_cap)), o.soft_cap) : scores;
}

// Applies softmax(scores) to the values [B, G, S, d_v] and merges the heads: [B, T, width].
Var Mix(Var scores, Var value, int64_t width, const AttentionOptions& o) {
  const int64_t batch = scores.dim(0), length = scores.dim(2), sources = scores.dim(3), groups = o.key_value_heads;
  Var weights = Softmax(scores);  // [B, H, T, S]
  weights.tape->Probe(kAttentionWeights, weights);
  weights = Dropout(weights, o.dropout);
  Var mixed = MatMul(Reshape(weights, {batch, groups, o.heads / groups * length, sources}), value);
  mixed = Reshape(mixed, {batch, o.heads, length, o.value_width});  // [B, H, T, d_v]
  if (o.merge == HeadMerge::kAverage) return Dropout(Mean(mixed, 1), o.residual_dropout);
  const Var y = Linear(o.output, Reshape(Permute(mixed, {0, 2, 1, 3}), {batch, length, o.heads * o.value_width}), width,
                       {.bias = o.bias, .initializer = o.output_initializer});
  return Dropout(y, o.residual_dropout);
}

// Returns the states of a cache: keys [N, G, page_size, d_k] and values [N, G, page_size, d_v].
VarList CacheState(DType dtype, const AttentionOptions& o, const AttentionCache& cache) {
  const auto state = [&](const char* name, int64_t width) {
    return cache.positions.tape->State(cache.prefix + name,
                                       {dtype, {cache.page_count, o.key_value_heads, cache.page_size, width}}, Zeros(),
                                       ParameterKind::kCache);
  };
  return {state(".key", o.key_width), state(".value", o.value_width)};
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
  if (o.rotary && memory.id != x.id) fail("rotary turns by positions of x, which a memory does not share");
  if (!x.tape->status().ok()) return x.tape->Poison();
  Projections p = Project(x, memory, o);
  if (o.rotary) ApplyRotary(o, inputs.cache, &p);
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
  const Var positions = Iota(lengths.tape, kI32, sources);
  return Not(Less(positions, Reshape(lengths, {lengths.dim(0), 1, 1, 1})));
}

Var DocumentMask(Var documents) {
  const int64_t batch = documents.dim(0), length = documents.dim(1);
  return NotEqual(Reshape(documents, {batch, 1, length, 1}), Reshape(documents, {batch, 1, 1, length}));
}

VarList RotaryTables(Tape* tape, DType dtype, int64_t length, int64_t width, double base) {
  const auto angle = [&](int64_t position, int64_t i) {
    return static_cast<double>(position) * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
  };
  const auto cosine = [&](int64_t position, int64_t i) { return std::cos(angle(position, i)); };
  const auto sine = [&](int64_t position, int64_t i) { return std::sin(angle(position, i)); };
  return {ConstantTable(tape, dtype, length, width / 2, cosine), ConstantTable(tape, dtype, length, width / 2, sine)};
}

}  // namespace weft
