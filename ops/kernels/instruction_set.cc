// Highway chooses kernels when they are first used, so the limit is applied before main(): a static
// initializer reads the environment.
#include "weft/ops/kernels/instruction_set.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "hwy/targets.h"

namespace weft {
namespace {

struct Limit {
  const char* name;
  int64_t highway;  // bit of the last target; targets with more instructions have lower bits
};

// Indexed by InstructionSet.
constexpr Limit kLimits[] = {{"sse4", HWY_SSE4},           {"avx2", HWY_AVX2},           {"avx512", HWY_AVX3},
                             {"avx512_vnni", HWY_AVX3_DL}, {"avx512_bf16", HWY_AVX3_DL}, {"all", 1}};

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

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
// Returns the features of the CPU that a subleaf of CPUID's leaf 7 lists. Highway does not know them.
Registers Features(uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(7, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

const InstructionSet limit = [] {
  const InstructionSet set = ReadEnvironment();
  hwy::DisableTargets(Row(set).highway - 1);
  return set;
}();

}  // namespace

const char* NameOf(InstructionSet set) { return Row(set).name; }
InstructionSet InstructionSetLimit() { return limit; }

bool HasBF16Products() {
  constexpr uint32_t kAvx512BF16 = 1u << 5;  // of EAX of subleaf 1
  static const bool has = limit >= InstructionSet::kAvx512Bf16 && (Features(1).eax & kAvx512BF16) != 0 &&
                          (hwy::SupportedTargets() & HWY_AVX3) != 0;
  return has;
}

bool HasAmx() {
  constexpr uint32_t kAmxBF16 = 1u << 22, kAmxTile = 1u << 24;    // of EDX of subleaf 0
  constexpr int64_t kRequestPermission = 0x1023, kTileData = 18;  // of Linux's arch_prctl
  static const bool has = HasBF16Products() && limit >= InstructionSet::kAll && (Features(0).edx & kAmxBF16) != 0 &&
                          (Features(0).edx & kAmxTile) != 0 &&
                          syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return has;
}

}  // namespace weft
