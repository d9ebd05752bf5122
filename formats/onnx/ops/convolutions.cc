// Records ONNX's convolutions and pooling, of inputs [N, C, ...] with one to three further axes. A window is a slice of
// the padded input for each element of the kernel; the slices have the shape of the result.
#include <algorithm>
#include <limits>
#include <numeric>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> before, after;  // padding
  std::vector<int64_t> beyond;         // further padding, which ceil_mode needs for the last windows
  std::vector<int64_t> out;            // the result's sizes

  bool is_plain() const {  // without gaps, overlaps and padding
    const std::vector<int64_t> none(kernel.size(), 0), ones(kernel.size(), 1);
    return strides == kernel && dilations == ones && before == none && after == none && beyond == none;
  }
  int64_t taps() const { return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>()); }
};

absl::StatusOr<Window> WindowOf(const OnnxNode& node, const Shape& x, const std::vector<int64_t>& kernel) {
  const size_t n = kernel.size();
  if (n < 1 || n > 3 || x.rank() != static_cast<int>(n) + 2) {
    return InvalidArgument("its kernel of ", n, " axes does not fit ", ToString(x));
  }
  const std::vector<int64_t> ones(n, 1), pads = node.Ints("pads", std::vector<int64_t>(2 * n, 0));
  Window w = {.kernel = kernel, .strides = node.Ints("strides", ones), .dilations = node.Ints("dilations", ones)};
  if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n) {
    return InvalidArgument("its strides, dilations or pads are not those of ", n, " axes");
  }
  const std::string automatic = node.String("auto_pad", "NOTSET");
  const bool ceil = node.Int("ceil_mode", 0) != 0, same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  int64_t taps = 1;
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = x.dim(static_cast<int>(i) + 2), k = kernel[i], s = w.strides[i], d = w.dilations[i];
    constexpr int64_t kMax = 1 << 20;
    if (std::min({k, s, d}) < 1 || std::max({k, s, d}) > kMax || std::min(pads[i], pads[i + n]) < 0 ||
        std::max(pads[i], pads[i + n]) > kMax) {
      return InvalidArgument("its kernel, strides, dilations or pads are out of range");
    }
    taps *= k;
    WEFT_RETURN_IF_ERROR(CheckOnnxSteps(taps));
    const int64_t extent = (k - 1) * d + 1;
    int64_t before = pads[i], after = pads[i + n];
    if (automatic == "VALID") before = after = 0;
    if (same) {
      const int64_t all = std::max<int64_t>(((size + s - 1) / s - 1) * s + extent - size, 0);
      before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      after = all - before;
    }
    const int64_t room = size + before + after - extent;
    if (room < 0) return InvalidArgument("its window is larger than its input ", ToString(x));
    int64_t out = (ceil ? room + s - 1 : room) / s + 1;
    if (ceil && (out - 1) * s >= size + before) --out;  // a window must begin in the input or in `before`
    w.before.push_back(before);
    w.after.push_back(after);
    w.beyond.push_back(std::max<int64_t>((out - 1) * s - room, 0));
    w.out.push_back(out);
  }
  return w;
}

// Returns the slices for all elements of the kernel, in row-major order. Padding is `value`, and `beyond` is
// `beyond_value`.
VarList Slices(Var x, const Window& w, double value, double beyond_value) {
  VarList slices = {x};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    VarList next;
    for (Var each : slices) {
      Var padded = each;
      if (w.before[i] + w.after[i] > 0) padded = Pad(padded, axis, w.before[i], w.after[i], value);
      if (w.beyond[i] > 0) padded = Pad(padded, axis, 0, w.beyond[i], beyond_value);
      for (int64_t k = 0; k < w.kernel[i]; ++k) {
        const int64_t begin = k * w.dilations[i];
        next.push_back(
            Every(Slice(padded, axis, begin, begin + (w.out[i] - 1) * w.strides[i] + 1), axis, w.strides[i]));
      }
    }
    slices = next;
  }
  return slices;
}

// Returns the windows as columns, [N, groups, C / groups · taps, positions].
Var Columns(Var x, const Window& w, int64_t groups) {
  const int64_t batch = x.dim(0), channels = x.dim(1), n = static_cast<int64_t>(w.kernel.size());
  const int64_t positions = std::accumulate(w.out.begin(), w.out.end(), int64_t{1}, std::multiplies<>());
  const Shape columns = {batch, groups, channels / groups * w.taps(), positions};
  if (w.is_plain() && n <= 2) {  // [N, C, h, kh, w, kw] → [N, C, kh, kw, h, w]
    Shape apart = {batch, channels};
    std::vector<int> order = {0, 1};
    for (int i = 0; i < n; ++i) {
      x = Slice(x, i + 2, 0, w.out[i] * w.kernel[i]);
      for (int64_t dim : {w.out[i], w.kernel[i]}) apart.Append(dim);
      order.push_back(3 + 2 * i);
    }
    for (int i = 0; i < n; ++i) order.push_back(2 + 2 * i);
    return Reshape(Permute(Reshape(x, apart), order), columns);
  }
  VarList taps = Slices(x, w, 0, 0);
  for (Var& tap : taps) tap = Reshape(tap, {batch, groups, channels / groups, 1, positions});
  return Reshape(Concat(taps, 3), columns);
}

OnnxResult Conv(const OnnxNode& node) {
  const Var x = node.in(0), weight = node.in(1);
  const Shape shape = weight.shape();
  if (shape.rank() < 3 || shape.elements() == 0) return InvalidArgument("its weight is ", ToString(shape));
  const std::vector<int64_t> kernel(shape.dims().begin() + 2, shape.dims().end());
  if (node.Ints("kernel_shape", kernel) != kernel) return InvalidArgument("its kernel_shape is not its weight's");
  WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(node, x.shape(), kernel));
  const int64_t groups = node.Int("group", 1), out = shape.dim(0);
  if (groups < 1 || out % groups != 0 || x.dim(1) != shape.dim(1) * groups) {
    return InvalidArgument("its weight ", ToString(shape), " and ", groups, " groups do not fit ", ToString(x.shape()));
  }
  const Var rows = Reshape(weight, {groups, out / groups, shape.dim(1) * w.taps()});
  Shape result = {x.dim(0), out}, bias = {out};
  for (int64_t size : w.out) {
    result.Append(size);
    bias.Append(1);
  }
  const Var y = Reshape(MatMul(rows, Columns(x, w, groups)), result);
  return VarList{node.has(2) ? y + Reshape(node.in(2), bias) : y};
}

absl::StatusOr<Window> PoolWindow(const OnnxNode& node) {
  if (node.output_count() > 1) return absl::UnimplementedError("the indices of the greatest elements");
  return WindowOf(node, node.in(0).shape(), node.Ints("kernel_shape"));
}
OnnxResult MaxPool(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Window w, PoolWindow(node));
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const VarList slices = Slices(node.in(0), w, kNone, kNone);
  Var y = slices[0];
  for (size_t i = 1; i < slices.size(); ++i) y = Maximum(y, slices[i]);
  return VarList{y};
}
// Divides by the number of elements in the window; padding counts if the node says so.
OnnxResult AveragePool(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Window w, PoolWindow(node));
  const Var x = node.in(0);
  Shape one = x.shape();
  for (int i = 0; i < 2; ++i) one.set_dim(i, 1);
  const VarList slices = Slices(x, w, 0, 0);
  const VarList counts = Slices(Fill(x.tape, {x.dtype(), one}, 1), w, node.Int("count_include_pad", 0) != 0 ? 1 : 0, 0);
  Var sum = slices[0], count = counts[0];
  for (size_t i = 1; i < slices.size(); ++i) {
    sum = sum + slices[i];
    count = count + counts[i];
  }
  return VarList{sum / count};
}
template <Var (*reduce)(Var, AxisSpan, bool)>
OnnxResult Global(const OnnxNode& node) {
  std::vector<int> axes(static_cast<size_t>(std::max(node.in(0).shape().rank() - 2, 0)));
  std::iota(axes.begin(), axes.end(), 2);
  return VarList{reduce(node.in(0), axes, true)};
}

constexpr OnnxOp kOps[] = {
    {"AveragePool", AveragePool},   {"Conv", Conv},       {"GlobalAveragePool", Global<Mean>},
    {"GlobalMaxPool", Global<Max>}, {"MaxPool", MaxPool},
};

}  // namespace

absl::Span<const OnnxOp> OnnxConvolutions() { return kOps; }

}  // namespace weft
