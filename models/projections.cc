// Layers of different names compute queries, keys and values, or one packed layer computes all three.
#include "weft/models/projections.h"

#include "weft/models/layers.h"

namespace weft {
namespace {

// Returns x [B, T, heads · D] as [B, heads, T, D].
Var ByHead(Var x, int64_t heads) {
  return Permute(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// Like Project, for attention that leaves out a layer. If queries and keys share the layer `query`, they are computed
// as one product, so that the layer is recorded once.
Projections ProjectAblated(Var x, Var memory, const AttentionOptions& o) {
  const LinearOptions linear = {.bias = o.bias, .initializer = o.initializer};
  const bool has_x = x.tape != nullptr, has_memory = memory.tape != nullptr, shared = o.ablation.query_is_key;
  const bool self = has_x && has_memory && x.id == memory.id;
  const int64_t query = o.heads * o.query_width, key = shared ? 0 : o.key_value_heads * o.key_width,
                value = o.ablation.value ? 0 : o.key_value_heads * o.value_width;
  Var q, k, v;
  if (self && o.packed != nullptr) {
    const Var all = Linear(o.packed, x, query + key + value, linear);  // [B, T, ...]
    q = Slice(all, -1, 0, query);
    k = shared ? q : Slice(all, -1, query, query + key);
    if (value > 0) v = Slice(all, -1, query + key, query + key + value);
  } else {
    if (shared && has_x && has_memory && !self) {
      const Var both = Linear(o.query, Concat({x, memory}, 1), query, linear);  // [B, T + S, H · d_q]
      q = Slice(both, 1, 0, x.dim(1));
      k = Slice(both, 1, x.dim(1), x.dim(1) + memory.dim(1));
    } else {
      if (has_x) q = Linear(o.query, x, query, linear);
      if (has_memory) k = shared && self ? q : Linear(shared ? o.query : o.key, memory, shared ? query : key, linear);
    }
    if (has_memory && value > 0) v = Linear(o.value, memory, value, linear);
  }
  Projections p;
  if (has_x) p.query = ByHead(q, o.heads);
  if (has_memory) p.key = ByHead(k, o.key_value_heads);
  if (has_memory) p.value = ByHead(value > 0 ? v : memory, o.key_value_heads);
  return p;
}

}  // namespace

Projections Project(Var x, Var memory, const AttentionOptions& o) {
  if (o.ablation.value || o.ablation.query_is_key) return ProjectAblated(x, memory, o);
  const LinearOptions linear = {.bias = o.bias, .initializer = o.initializer};
  const int64_t query = o.heads * o.query_width, key = o.key_value_heads * o.key_width,
                value = o.key_value_heads * o.value_width;
  Projections p;
  if (o.packed != nullptr && x.tape != nullptr && memory.tape != nullptr && x.id == memory.id) {
    const Var all = Linear(o.packed, x, query + key + value, linear);  // [B, T, ...]
    // A split is preferred to slices: its gradient is one concatenation, while the gradients of slices must be added.
    const VarList parts = query == key && key == value
                              ? Split(all, -1, 3)
                              : VarList{Slice(all, -1, 0, query), Slice(all, -1, query, query + key),
                                        Slice(all, -1, query + key, query + key + value)};
    p.query = ByHead(parts[0], o.heads);
    p.key = ByHead(parts[1], o.key_value_heads);
    p.value = ByHead(parts[2], o.key_value_heads);
    return p;
  }
  if (x.tape != nullptr) p.query = ByHead(Linear(o.query, x, query, linear), o.heads);
  if (memory.tape != nullptr) {
    p.key = ByHead(Linear(o.key, memory, key, linear), o.key_value_heads);
    p.value = ByHead(Linear(o.value, memory, value, linear), o.key_value_heads);
  }
  return p;
}

}  // namespace weft
