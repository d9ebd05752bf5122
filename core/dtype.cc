#include "weft/core/dtype.h"

namespace weft {
namespace {
constexpr absl::string_view kNames[] = {"f32", "f64", "bf16", "i32", "bool"};
}  // namespace

absl::string_view Name(DType dtype) { return kNames[static_cast<int>(dtype)]; }

bool ParseDType(absl::string_view name, DType* dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kNames[i] != name) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace weft
