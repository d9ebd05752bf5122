// A fuzz target reads bytes as a file of some format, and must not crash. libFuzzer (tools/fuzz) calls the target with
// inputs that it derives from the seeds. replay.cc calls it with the seeds, their prefixes and some mutations.
#ifndef WEFT_TESTS_FUZZ_FILES_TARGET_H_
#define WEFT_TESTS_FUZZ_FILES_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace weft {

// Returns inputs that are read without an error.
std::vector<std::string> Seeds();
// Whether the last input was read without an error.
extern bool accepted;

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_FILES_TARGET_H_
