// Highway and oneDNN choose kernels when they are first used, so the limit is applied before main(): a static
// initializer reads the environment.
#include "weft/ops/kernels/instruction_set.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "hwy/targets.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "weft/core/status.h"

namespace weft {
namespace {

struct Limit {
  const char* name;
  int64_t highway;  // bit of the last target; targets with more instructions have lower bits
  dnnl::cpu_isa onednn;
};

// Indexed by InstructionSet.
constexpr Limit kLimits[] = {{"sse4", HWY_SSE4, dnnl::cpu_isa::sse41},
                             {"avx2", HWY_AVX2, dnnl::cpu_isa::avx2},
                             {"avx512", HWY_AVX3, dnnl::cpu_isa::avx512_core},
                             {"avx512_vnni", HWY_AVX3_DL, dnnl::cpu_isa::avx512_core_vnni},
                             {"avx512_bf16", HWY_AVX3_DL, dnnl::cpu_isa::avx512_core_bf16},
                             {"all", 1, dnnl::cpu_isa::all}};

const Limit& Row(InstructionSet set) { return kLimits[static_cast<size_t>(set)]; }

InstructionSet ReadEnvironment() {
  const char* const name = std::getenv(kInstructionSetVariable);
  if (name == nullptr || *name == '\0') return InstructionSet::kAll;
  for (size_t i = 0; i < std::size(kLimits); ++i) {
    if (std::strcmp(name, kLimits[i].name) == 0) return static_cast<InstructionSet>(i);
  }
  std::fprintf(stderr, "%s is '%s'. It must be one of:", kInstructionSetVariable, name);
  for (const Limit& limit : kLimits) std::fprintf(stderr, " %s", limit.name);
  std::fputs("\n", stderr);
  std::_Exit(2);
}

const InstructionSet limit = [] {
  const InstructionSet set = ReadEnvironment();
  hwy::DisableTargets(Row(set).highway - 1);
  // This call also overrides oneDNN's own variable, ONEDNN_MAX_CPU_ISA, so that there is only one limit.
  WEFT_CHECK(dnnl::set_max_cpu_isa(Row(set).onednn) == dnnl::status::success);
  return set;
}();

}  // namespace

const char* NameOf(InstructionSet set) { return Row(set).name; }
InstructionSet InstructionSetLimit() { return limit; }

}  // namespace weft
