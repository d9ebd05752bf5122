// A Buffer is a tensor that owns its bytes, which are aligned to 64 bytes. Copies are deep.
#ifndef WEFT_TESTS_BUFFER_H_
#define WEFT_TESTS_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "weft/base/arena.h"
#include "weft/core/tensor.h"

namespace weft {

class Buffer {
 public:
  explicit Buffer(const TensorType& type, std::byte fill = std::byte{0})
      : type_(type), lines_(AlignUp(type.bytes() + 1) / kAlignment) {
    std::memset(lines_.data(), static_cast<int>(fill), lines_.size() * kAlignment);
  }
  explicit Buffer(const Tensor& tensor) : Buffer(tensor.type) { Set(tensor); }

  const TensorType& type() const { return type_; }
  int64_t elements() const { return type_.shape.elements(); }
  std::byte* data() const { return const_cast<std::byte*>(lines_.data()->bytes); }
  Tensor tensor() const { return {type_, data()}; }
  bool SameBits(const Buffer& other) const {
    return type_ == other.type_ && std::memcmp(data(), other.data(), type_.bytes()) == 0;
  }
  void Set(const Tensor& tensor) {
    if (type_.bytes() > 0) std::memcpy(data(), tensor.data, type_.bytes());
  }

  double Get(int64_t i) const {
    return Dispatch(type_.dtype, [&](auto zero) { return static_cast<double>(tensor().as<decltype(zero)>()[i]); });
  }
  void Set(int64_t i, double value) {
    Dispatch(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      tensor().as<T>()[i] = static_cast<T>(value);
    });
  }
  std::vector<double> Doubles() const {
    std::vector<double> values;
    for (int64_t i = 0; i < elements(); ++i) values.push_back(Get(i));
    return values;
  }

 private:
  struct alignas(kAlignment) Line {
    std::byte bytes[kAlignment];
  };

  TensorType type_;
  std::vector<Line> lines_;
};

}  // namespace weft

#endif  // WEFT_TESTS_BUFFER_H_
