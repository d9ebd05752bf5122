#include "weft/core/stored_dtype.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/little_endian.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr OtherDType kOtherDTypes[] = {
    {"I64", 64, kI32},  {"U64", 64},    {"C64", 64},    {"U32", 32},    {"I16", 16},        {"U16", 16},
    {"I8", 8},          {"U8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8},
    {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
};

}  // namespace

const OtherDType* FindOtherDType(absl::string_view name) {
  const auto found = absl::c_find_if(kOtherDTypes, [&](const OtherDType& each) { return each.name == name; });
  return found == std::end(kOtherDTypes) ? nullptr : found;
}

absl::Status CopyStored(absl::string_view from, const OtherDType* other, const Tensor& to) {
  const int64_t count = to.type.shape.elements();
  if (other == nullptr) {
    if (to.type.dtype == kBool && absl::c_any_of(from, [](char c) { return c != 0 && c != 1; })) {
      return InvalidArgument("a BOOL is neither 0 nor 1");
    }
    std::copy(from.begin(), from.end(), reinterpret_cast<char*>(to.data));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = static_cast<int64_t>(LittleEndian<uint64_t>(from.substr(8 * i, 8)));
      if (value != static_cast<int32_t>(value)) {
        return absl::OutOfRangeError(absl::StrCat("element ", i, " is ", value, ", which does not fit i32"));
      }
      to.as<int32_t>()[i] = static_cast<int32_t>(value);
    }
  }
  return absl::OkStatus();
}

bool IsUsableInPlace(absl::string_view bytes, const OtherDType* other, DType dtype) {
  const size_t alignment = IsBlockFormat(dtype) ? 1 : SizeOf(dtype);
  return other == nullptr && dtype != kBool && !bytes.empty() &&
         reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
}

}  // namespace weft
