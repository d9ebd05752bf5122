// The compiler's version comes from its macros. The features of the CPU are read at run time.
#include "weft/train/run/build_info.h"

#include "absl/strings/str_cat.h"
#include "weft/ops/kernels/instruction_set.h"

namespace weft {

std::string CompilerName() {
#if defined(__clang__)
  return absl::StrCat("clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return absl::StrCat("g++ ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

std::string BuildName() { return absl::StrCat(kVersion, ", ", CompilerName()); }

std::string CpuFeatures() {
  std::string features;
#if defined(__x86_64__)
  const auto add = [&](const char* name, bool present) {
    if (present) absl::StrAppend(&features, features.empty() ? "" : " ", name);
  };
  __builtin_cpu_init();
  add("sse4.2", __builtin_cpu_supports("sse4.2"));
  add("avx", __builtin_cpu_supports("avx"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bw", __builtin_cpu_supports("avx512bw"));
  add("avx512dq", __builtin_cpu_supports("avx512dq"));
  add("avx512vl", __builtin_cpu_supports("avx512vl"));
  add("avx512vnni", __builtin_cpu_supports("avx512vnni"));
  add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
#endif
  if (features.empty()) features = "none known";
  if (const InstructionSet limit = InstructionSetLimit(); limit != InstructionSet::kAll) {
    absl::StrAppend(&features, ", restricted by ", kInstructionSetVariable, "=", NameOf(limit));
  }
  return features;
}

}  // namespace weft
