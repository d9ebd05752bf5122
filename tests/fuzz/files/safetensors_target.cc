// Reads any bytes as a safetensors file.
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/tests/fuzz/files/memory_file.h"
#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

std::string File(const std::string& header, size_t bytes) {
  std::string file(8, '\0');
  for (size_t i = 0, size = header.size(); i < 8; ++i, size >>= 8) file[i] = static_cast<char>(size & 0xff);
  return file + header + std::string(bytes, '\x01');
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  return {
      File("{}", 0),
      File(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
      File(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
          R"("b":{"dtype":"BF16","shape":[0,4],"data_offsets":[8,8]},"c":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})",
          9),
      File(
          R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"s":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}})",
          12),
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static weft::MemoryFile file;
  file.Set(data, size);
  const auto opened = weft::SafetensorsFile::Open(file.path());
  weft::accepted = opened.ok();
  if (!opened.ok()) return 0;
  size_t bytes = 0;
  volatile uint32_t sum = 0;  // volatile, so that all bytes are really read
  for (const auto& [name, tensor] : opened->tensors()) {
    WEFT_CHECK(tensor.type.shape.valid());
    bytes += tensor.type.bytes();
    for (size_t i = 0; i < tensor.type.bytes(); ++i) sum = sum + static_cast<uint32_t>(tensor.data[i]);
  }
  WEFT_CHECK(bytes <= size);
  return 0;
}
