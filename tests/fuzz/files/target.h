// A fuzz target: a reader of files that anyone may have written, which is given bytes. What it must not do is end the
// program. libFuzzer calls it with what it makes of the seeds (tools/fuzz); replay.cc with a few of their mutations.
#ifndef WEFT_TESTS_FUZZ_FILES_TARGET_H_
#define WEFT_TESTS_FUZZ_FILES_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace weft {

// Inputs that are read without an error.
std::vector<std::string> Seeds();
// Whether the last input was.
extern bool accepted;

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_FILES_TARGET_H_
