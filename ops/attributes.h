// The attributes of ops that the compiler's passes look into.
#ifndef WEFT_OPS_ATTRIBUTES_H_
#define WEFT_OPS_ATTRIBUTES_H_

#include <array>
#include <cstdint>

#include "weft/core/tensor.h"

namespace weft {

struct FillAttrs {
  TensorType type;
  double value = 0;
  friend bool operator==(const FillAttrs&, const FillAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("dtype", type.dtype);
    visit("shape", type.shape);
    visit("value", value);
  }
};

struct ScaleAttrs {
  double factor = 1;
  friend bool operator==(const ScaleAttrs&, const ScaleAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("factor", factor);
  }
};

struct PermuteAttrs {
  int32_t rank = 0;
  std::array<int32_t, Shape::kMaxRank> axes = {};
  friend bool operator==(const PermuteAttrs&, const PermuteAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("rank", rank);
    visit("axes", axes);
  }
};

struct SplitAttrs {
  int32_t axis = 0;
  int32_t parts = 1;
  friend bool operator==(const SplitAttrs&, const SplitAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("axis", axis);
    visit("parts", parts);
  }
};

struct SliceAttrs {
  int32_t axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const SliceAttrs&, const SliceAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("axis", axis);
    visit("begin", begin);
    visit("end", end);
  }
};

struct MaskAttrs {  // of mask_fill and causal_mask: what stands where the mask is
  double value = 0;
  friend bool operator==(const MaskAttrs&, const MaskAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("value", value);
  }
};

struct DropoutAttrs {
  double rate = 0;
  uint32_t stream = 0;
  friend bool operator==(const DropoutAttrs&, const DropoutAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("rate", rate);
    visit("stream", stream);
  }
};

struct NormAttrs {  // of layer_norm, rms_norm and batch_norm
  double epsilon = 1e-5;
  friend bool operator==(const NormAttrs&, const NormAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("epsilon", epsilon);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_ATTRIBUTES_H_
