#include "weft/apps/memory_note.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_format.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/run_path.h"

namespace weft {

std::string MemoryNote(const std::string& model, int64_t memory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path file = ParseRunPath(model).folder;
  if (fs::is_directory(file, error)) file /= kLastWeights;
  const auto bytes = static_cast<double>(fs::file_size(file, error));
  if (error || bytes <= static_cast<double>(memory)) return "";
  return absl::StrFormat(
      "note: the weights in %s have %.1f GB, but this process may use %.1f GB of memory. The system reads them from "
      "the disk again for each token, which is slow. weft quantize writes them in fewer bytes.\n",
      file.string(), bytes / 1e9, static_cast<double>(memory) / 1e9);
}

}  // namespace weft
