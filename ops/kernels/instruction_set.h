// The environment variable WEFT_INSTRUCTION_SET limits the vector instructions of Weft's kernels, so that any machine
// can run and test what CPUs with fewer instructions run:
//
//   WEFT_INSTRUCTION_SET=avx2 weft train gpt
//   bazel test -c opt --test_env=WEFT_INSTRUCTION_SET=avx2 //...
//
// Its values are sse4, avx2, avx512, avx512_vnni, avx512_bf16 and all, the default. It is read before main(). If it has
// another value, and is not empty, the process prints an error and exits with code 2.
#ifndef WEFT_OPS_KERNELS_INSTRUCTION_SET_H_
#define WEFT_OPS_KERNELS_INSTRUCTION_SET_H_

#include <cstdint>

namespace weft {

inline constexpr char kInstructionSetVariable[] = "WEFT_INSTRUCTION_SET";

// Each instruction set includes those before it.
enum class InstructionSet : uint8_t {
  kSse4,
  kAvx2,        // with fused multiply-adds
  kAvx512,      // F, BW, CD, DQ and VL
  kAvx512Vnni,  // products of bytes
  kAvx512Bf16,  // products of bf16
  kAll          // all that the CPU has, such as AMX
};

// Returns the name of an instruction set, such as "avx512_bf16".
const char* NameOf(InstructionSet set);
// Returns the last instruction set that kernels may use. The CPU may have fewer. Must not be called before main().
InstructionSet InstructionSetLimit();

bool HasBF16Products();  // whether the CPU multiplies bf16 within the limit, with AVX512_BF16 or AMX
bool HasAmx();           // whether it does so with AMX. The first call asks the system for permission.

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_INSTRUCTION_SET_H_
