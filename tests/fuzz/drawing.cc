#include "weft/tests/fuzz/drawing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/ops/ops.h"

namespace weft {

constexpr int64_t kMaxElements = 1 << 14;

int64_t Drawing::Size() {
  static constexpr int64_t kSizes[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64, 65, 130};
  return Chance(60) ? 0 : OneOf<int64_t>(kSizes);
}

Shape Drawing::AnyShape() {
  Shape shape;
  for (int64_t rank = Below(5); rank > 0; --rank) {
    const int64_t size = Size();
    shape.Append(shape.elements() * size > kMaxElements ? 2 : size);
  }
  return shape;
}

std::vector<int> Drawing::Axes(const Shape& shape) {
  std::vector<int> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (Chance(2)) axes.push_back(Chance(3) ? axis - shape.rank() : axis);
  }
  return axes;
}

std::vector<int64_t> Drawing::Factors(int64_t elements) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < 3 && elements > 1; ++i) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= elements; ++d) {
      if (elements % d == 0) divisors.push_back(d);
    }
    sizes.push_back(OneOf<int64_t>(divisors));
    elements /= sizes.back();
  }
  sizes.push_back(elements);
  return sizes;
}

Shape Drawing::Broadcastable(const Shape& shape) {
  Shape to;
  const int dropped = Chance(2) ? static_cast<int>(Below(shape.rank() + 1)) : 0;
  for (int axis = dropped; axis < shape.rank(); ++axis) to.Append(Chance(4) ? 1 : shape.dim(axis));
  return to;
}

const Drawn& Drawing::Any() {
  const int64_t count = static_cast<int64_t>(values_.size()), recent = std::min<int64_t>(count, 4);
  return values_[static_cast<size_t>(Chance(4) ? Below(count) : count - 1 - Below(recent))];
}

Drawn Drawing::AnyOfRank(int min_rank) {
  for (int tries = 0; tries < 4; ++tries) {
    const Drawn& x = Any();
    if (x.shape().rank() >= min_rank) return x;
  }
  Shape shape;
  for (int axis = 0; axis < min_rank; ++axis) shape.Append(Size());
  return Leaf(shape);
}

Drawn Drawing::Leaf(const Shape& shape) {
  const double bound = Chance(3) ? 3 : 1;
  if (Chance(2)) return Weight(shape, bound);
  leaves_.push_back(Input({dtype_, shape}, -bound, bound));
  return {.var = leaves_.back(), .bound = bound};
}

Drawn Drawing::Weight(const Shape& shape, double bound) {
  const Initializer initializer = weft::Uniform(static_cast<float>(-bound), static_cast<float>(bound));
  weights_.push_back(tape_->Parameter(absl::StrCat("w", weights_.size()), {dtype_, shape}, initializer));
  leaves_.push_back(weights_.back());
  return {.var = weights_.back(), .bound = bound};
}

Var Drawing::State(const Shape& shape) {
  return tape_->State(absl::StrCat("state", states_++), {dtype_, shape}, Constant(0.5f));
}

Drawn Drawing::Like(const Shape& shape) {
  std::vector<Drawn> same;
  for (const Drawn& value : values_) {
    if (value.shape() == shape) same.push_back(value);
  }
  if (!same.empty() && !Chance(3)) return OneOf<Drawn>(same);
  const int64_t wanted = shape.elements();
  const Drawn& x = Any();
  const int64_t there = x.shape().elements();
  if (there < wanted || Chance(2)) return Leaf(shape);
  const int64_t begin = Below(there - wanted + 1);
  return {.var = Reshape(Slice(Reshape(x.var, {there}), 0, begin, begin + wanted), shape), .bound = x.bound};
}

Drawn Drawing::Under(const Drawn& x, double bound) {
  if (x.bound <= bound) return x;
  return {.var = Tanh(x.var), .bound = 1};
}

Drawn Drawing::Apart(const Drawn& x) {
  const Var noise = Input({dtype_, x.shape()}, -1, 1);
  return {.var = x.var + noise, .bound = x.bound + 1};
}

Var Drawing::Input(const TensorType& type, double low, double high, int64_t below) {
  Buffer buffer(type);
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    buffer.Set(i, IsFloat(type.dtype) ? Uniform(low, high) : static_cast<double>(Below(below)));
  }
  const InputBounds bounds = {.below = type.dtype == kI32 ? below : 0};
  const Var var = tape_->Input(absl::StrCat("x", feeds_.size()), type, bounds);
  feeds_.emplace_back(var, std::move(buffer));
  return var;
}

Var Drawing::Ids(const Shape& shape, int64_t below) { return Input({kI32, shape}, 0, 0, below); }

Var Drawing::Mask(const Shape& shape) { return Input({kBool, shape}, 0, 0, 2); }

void Drawing::Keep(const Drawn& drawn) {
  if (drawn.shape().elements() <= 4 * kMaxElements) values_.push_back(drawn);
}

}  // namespace weft
