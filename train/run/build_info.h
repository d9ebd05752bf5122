// BuildName tells the version and compiler of this program, and CpuFeatures the kind of its CPU. A checkpoint records
// both, because results have the same bits only for one binary on one kind of CPU.
#ifndef WEFT_TRAIN_RUN_BUILD_INFO_H_
#define WEFT_TRAIN_RUN_BUILD_INFO_H_

#include <string>

namespace weft {

inline constexpr char kVersion[] = "0.1.0";

std::string CompilerName();  // "g++ 12.2.0"
std::string BuildName();     // "0.1.0, g++ 12.2.0": version and compiler
// Returns the vector extensions that decide which kernels run, such as "avx2 fma avx512f". If the environment restricts
// kernels (ops/kernels/instruction_set.h), adds ", restricted by WEFT_INSTRUCTION_SET=avx2".
std::string CpuFeatures();

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_BUILD_INFO_H_
