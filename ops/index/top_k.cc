// The op top_k returns the k greatest values of each row along the last axis, in descending order, and their indices.
//
// Equal values are in ascending order of their indices. NaN counts as greater than all numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct TopKAttrs {
  int64_t k = 1;
  auto Fields() const { return std::tuple{AttrField{"k", k}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const int64_t k = attrs.as<TopKAttrs>().k;
  if (in[0].shape.rank() < 1) return ShapeError("top_k", "x needs rank >= 1", in);
  if (k < 0 || k > in[0].shape.dim(-1)) {
    return ShapeError("top_k", absl::StrCat("k is ", k, ", wanted 0 .. ", in[0].shape.dim(-1)), in);
  }
  const Shape shape = WithDim(in[0].shape, -1, k);
  return Types{{in[0].dtype, shape}, {kI32, shape}};
}

template <class T>
bool Greater(T a, T b) {
  return a > b || (std::isnan(static_cast<double>(a)) && !std::isnan(static_cast<double>(b)));
}

// Maximum k for which a sorted list of the k greatest values so far is kept. Most elements are compared only with the
// smallest value of the list, many at once. A larger k uses a heap of indices, with the index of the smallest value on
// top.
constexpr int64_t kMaxInOrder = 64;

template <class T>
void HeapOfRow(const T* x, int64_t n, int64_t k, T* values, int32_t* indices) {
  const auto before = [x](int32_t i, int32_t j) { return Greater(x[i], x[j]) || (i < j && !Greater(x[j], x[i])); };
  int32_t* const end = indices + k;
  std::iota(indices, end, 0);
  std::make_heap(indices, end, before);
  for (int32_t i = static_cast<int32_t>(k); i < n; ++i) {
    if (!before(i, *indices)) continue;
    std::pop_heap(indices, end, before);
    *(end - 1) = i;
    std::push_heap(indices, end, before);
  }
  std::sort_heap(indices, end, before);
  for (int64_t j = 0; j < k; ++j) values[j] = x[indices[j]];
}

template <class T>
void TopKOfRow(const T* x, int64_t n, int64_t k, T* values, int32_t* indices) {
  const auto first_above = Selects<T>().first_above;
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (kept == k) {
      i = first_above(x, i, n, values[k - 1]);
      if (i == n) return;
      if (!Greater(x[i], values[k - 1])) continue;
    }
    int64_t slot = kept < k ? kept++ : k - 1;
    for (; slot > 0 && Greater(x[i], values[slot - 1]); --slot) {
      values[slot] = values[slot - 1];
      indices[slot] = indices[slot - 1];
    }
    values[slot] = x[i];
    indices[slot] = static_cast<int32_t>(i);
  }
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.input_shape(0).cols(), k = a.output_shape(0).cols();
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const T* const x = a.input<T>(0) + row * n;
    T* const values = a.output<T>(0) + row * k;
    int32_t* const indices = a.output<int32_t>(1) + row * k;
    if (k > kMaxInOrder) {
      HeapOfRow(x, n, k, values, indices);
    } else if (k > 0) {
      TopKOfRow(x, n, k, values, indices);
    }
  }
}

// dx is dy at the indices in output 1, and 0 elsewhere. MaskFill sets the zeros: for infinite dy, 0 · dy would be NaN.
VarList Gradient(const GradientArgs& a) {
  const Shape shape = a.input(0).shape(), taken = a.output(1).shape();
  const int64_t k = taken.cols(), n = shape.cols(), rows = taken.rows();
  const Var at = Equal(Reshape(a.output(1), {rows, k, 1}), Iota(a.output(1).tape, kI32, n));  // [rows, k, n]
  const Var dy = BroadcastTo(Reshape(a.grad(0), {rows, k, 1}), {rows, k, n});
  return {Reshape(Sum(MaskFill(dy, Not(at), 0), 1), shape)};
}

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.input_types[0].shape.cols(), k = a.output_types[0].shape.cols();
  std::vector<int32_t> order(static_cast<size_t>(n));
  for (int64_t row = 0; row < a.input_types[0].shape.rows(); ++row) {
    const double* x = a.inputs[0].data() + row * n;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) { return Greater(x[i], x[j]); });
    for (int64_t j = 0; j < k; ++j) {
      a.outputs[0][row * k + j] = x[order[j]];
      a.outputs[1][row * k + j] = order[j];
    }
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[1]", .record = RecordCall<TopK, 1>},
    {.in = "[3,5]", .record = RecordCall<TopK, 5>, .out = "[3,5]"},
    {.in = "[2,17,67]", .record = RecordCall<TopK, 4>, .out = "[2,17,4]"},
    {.in = "i32[6,9]", .record = RecordCall<TopK, 3>, .below = 4},  // with equal values
    {.in = "[0,3]", .record = RecordCall<TopK, 2>},
    {.in = "[2,1,2,1,2,5]", .record = RecordCall<TopK, 3>, .out = "[2,1,2,1,2,3]"},
    {.in = "[3,4]", .record = RecordCall<TopK, 0>, .out = "[3,0]"},
    {.in = "[2,300]", .record = RecordCall<TopK, 130>},
    {.in = "i32[2,300]", .record = RecordCall<TopK, 300>, .below = 20},
    {.in = "[3,4]", .record = RecordCall<TopK, 5>, .error = "k is 5, wanted 0 .. 4"},
    {.in = "[3,4]", .record = RecordCall<TopK, -1>, .error = "k is -1, wanted 0 .. 4"},
    {.in = "[]", .record = RecordCall<TopK, 1>, .error = "x needs rank >= 1"},
    {.in = "bool[3]", .record = RecordCall<TopK, 1>, .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kTopK = {.name = "top_k",
                         .infer = Infer,
                         .outputs = 2,
                         .kernels = {Kernel<float>, Kernel<double>, nullptr, Kernel<int32_t>},
                         .cut = Cut::kRows,
                         .gradient = Gradient,
                         .reference = Reference,
                         .attrs = AttrOpsOf<TopKAttrs>(),
                         .examples = kExamples};
VarList TopK(Var x, int64_t k) { return RecordAll(kTopK, {x}, Attrs::Of(TopKAttrs{.k = k})); }

Var ArgMax(Var x) {
  return Composite("arg_max", {x}, [&] {
    const Var indices = TopK(x, 1)[1];
    return Reshape(indices, Shape(indices.shape().dims().first(indices.shape().rank() - 1)));
  });
}

}  // namespace weft
