// Models share these checks of configurations. Errors name the field, its value and the allowed values.
#ifndef WEFT_MODELS_VALIDATE_H_
#define WEFT_MODELS_VALIDATE_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"

namespace weft {

// Maximum sizes of a model, so that a config.json from an unknown source cannot make the program hang. The time and
// memory to record a model grow with its layers; tables of positions grow with context and width.
inline constexpr int64_t kMaxLayers = 4096, kMaxPositions = int64_t{1} << 20, kMaxFeatures = 1 << 16,
                         kMaxTokens = 1 << 24;

struct SizeCheck {
  const char* name;
  int64_t value, min, max;
};
inline absl::Status CheckSizes(std::initializer_list<SizeCheck> checks) {
  for (const auto& [name, value, min, max] : checks) {
    if (value < min) {
      return InvalidArgument(name, " is ", value, ", but must be at least ", min);
    }
    if (value > max) {
      return InvalidArgument(name, " is ", value, ", but may be ", max, " at most");
    }
  }
  return absl::OkStatus();
}

// Checks that `value` is above 0 and finite. It is the epsilon of a norm or the base of rotary positions.
inline absl::Status CheckPositive(const char* name, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return InvalidArgument(name, " is ", value, ", but must be above 0");
}

inline absl::Status CheckAtLeast0(const char* name, double value) {
  if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
  return InvalidArgument(name, " is ", value, ", but must be at least 0");
}

inline absl::Status CheckDropout(std::optional<double> dropout, const char* name = "dropout") {
  if (!dropout || (*dropout >= 0 && *dropout < 1)) return absl::OkStatus();
  return InvalidArgument(name, " is ", *dropout, ", but must be in [0, 1)");
}

inline absl::Status CheckDType(DType dtype) {
  if (dtype == kF32 || dtype == kF64) return absl::OkStatus();
  return InvalidArgument("dtype is ", Name(dtype), ", but must be f32 or f64");
}

// Fails the tape of `tokens` unless `config` is valid and they are i32 [B, T] with T at most its context. Returns
// whether the tape has not failed.
template <class Config>
bool CheckTokens(const char* model, absl::string_view what, Var tokens, const Config& config) {
  if (absl::Status valid = Validate(config); !valid.ok()) tokens.tape->Fail(Annotate(valid, model));
  if (tokens.shape().rank() != 2 || tokens.dtype() != kI32 || tokens.dim(1) > config.context) {
    const std::string problem = absl::StrCat(what, " must be i32[B,T] with T at most the context ", config.context);
    tokens.tape->Fail(ShapeError(model, problem, {tokens.type()}));
  }
  return tokens.tape->status().ok();
}

}  // namespace weft

#endif  // WEFT_MODELS_VALIDATE_H_
