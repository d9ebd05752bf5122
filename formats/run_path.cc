#include "weft/formats/run_path.h"

#include "weft/base/file.h"

namespace weft {

RunPath ParseRunPath(const std::string& path) {
  const size_t at = path.rfind('@');
  if (at == std::string::npos || at + 1 == path.size() || Exists(path)) return {path, ""};
  std::string folder = path.substr(0, at);
  if (!Exists(folder + "/config.json")) return {path, ""};
  return {std::move(folder), path.substr(at + 1)};
}

}  // namespace weft
