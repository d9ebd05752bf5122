// Reads any bytes as a PyTorch file.
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/all_containers.h"
#include "weft/tests/fuzz/files/memory_file.h"
#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

// Returns a number in little-endian bytes.
std::string Number(uint64_t number, size_t bytes) {
  std::string text;
  for (; bytes > 0; --bytes, number >>= 8) text.push_back(static_cast<char>(number & 0xff));
  return text;
}

// Returns a zip file of entries that are stored as they are.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& entries, bool zip64 = false) {
  std::string file, directory;
  for (const auto& [name, contents] : entries) {
    const std::string sizes = Number(contents.size(), 4) + Number(contents.size(), 4);
    const std::string extra = zip64 ? Number(1, 2) + Number(8, 2) + Number(file.size(), 8) : "";
    absl::StrAppend(&directory, "PK\1\2", std::string(16, '\0'), sizes, Number(name.size(), 2), Number(extra.size(), 2),
                    std::string(10, '\0'), Number(zip64 ? 0xffffffff : file.size(), 4), name, extra);
    absl::StrAppend(&file, "PK\3\4", std::string(14, '\0'), sizes, Number(name.size(), 4), name, contents);
  }
  const std::string range = Number(directory.size(), zip64 ? 8 : 4) + Number(file.size(), zip64 ? 8 : 4);
  const std::string count = Number(entries.size(), zip64 ? 8 : 2) + Number(entries.size(), zip64 ? 8 : 2);
  const size_t end = file.size() + directory.size();
  file += directory;
  if (!zip64) return absl::StrCat(file, "PK\5\6", Number(0, 4), count, range, Number(0, 2));
  return absl::StrCat(file, "PK\6\6", std::string(20, '\0'), count, range, "PK\6\7", Number(0, 4), Number(end, 8),
                      Number(1, 4), "PK\5\6", std::string(18, '\xff'));
}

// Returns a pickle of a tensor [2, 3] of `kind`, whose storage is data/0 and whose strides are `strides`.
std::string TensorOf(const std::string& kind, const std::string& strides) {
  return absl::StrCat("ctorch._utils\n_rebuild_tensor_v2\n((X", Number(7, 4), "storagectorch\n", kind, "\nX",
                      Number(1, 4), "0X", Number(3, 4), "cpuK\6tQK", Number(0, 1), "K\2K\3\x86", strides,
                      "\x86\x89"
                      "ccollections\nOrderedDict\n)RtR");
}

std::string Pickle(const std::string& tensor) {
  return absl::StrCat("\x80\2}q", Number(0, 1), "(X", Number(1, 4), "w", tensor, "u.");
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  const std::string bytes(24, '\1'), rows = "K\3K\1", columns = "K\1K\2";
  return {
      Zip({{"a/data.pkl", Pickle(TensorOf("FloatStorage", rows))}, {"a/data/0", bytes}, {"a/byteorder", "little"}}),
      Zip({{"a/data.pkl", Pickle(TensorOf("HalfStorage", columns))}, {"a/data/0", bytes.substr(12)}}, /*zip64=*/true),
      Zip({{"a/data.pkl", Pickle(TensorOf("BoolStorage", rows))}, {"a/data/0", bytes}}),
      Zip({{"a/data.pkl",
            Pickle(absl::StrCat("ctorch._utils\n_rebuild_parameter\n(", TensorOf("DoubleStorage", columns), "\x88tRX",
                                Number(1, 4), "j(j", Number(0, 4), "]K\1aJ", Number(1, 4),
                                "\x8a\2\1\1\x85K\1K\2K\3\x87G", std::string(8, '\0'), "NM\1\1t"))},
           {"a/data/0", bytes + bytes}}),
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static weft::MemoryFile file;
  file.Set(data, size);
  const auto opened = weft::kPyTorch.open(file.path(), weft::WantedChecksum::kIfPresent);
  weft::accepted = opened.ok();
  if (!opened.ok()) return 0;
  volatile uint32_t sum = 0;  // volatile, so that all bytes are really read
  for (const auto& [name, tensor] : (*opened)->tensors()) {
    WEFT_CHECK(tensor.type.shape.valid());
    for (size_t i = 0; i < tensor.type.bytes(); ++i) sum = sum + static_cast<uint32_t>(tensor.data[i]);
  }
  return 0;
}
