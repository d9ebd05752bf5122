#include "weft/lab/reports/json_lines.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/base/file.h"
#include "weft/base/json.h"

namespace weft {

absl::StatusOr<bool> JsonLines::Read(absl::FunctionRef<void()> restart, absl::FunctionRef<void(nlohmann::json)> add) {
  absl::StatusOr<std::string> contents = ReadFile(path_);
  if (absl::IsNotFound(contents.status())) contents = std::string();
  if (!contents.ok()) return contents.status();
  const absl::string_view text = *contents;
  bool changed = false;
  if (end_ > 0 && (text.size() < end_ || text.substr(end_ - last_line_.size(), last_line_.size()) != last_line_)) {
    restart();
    changed = true;
    end_ = 0;
    damaged_ = 0;
    last_line_.clear();
  }
  while (true) {
    const size_t newline = text.find('\n', end_);
    if (newline == text.npos) return changed;
    const absl::string_view line = text.substr(end_, newline - end_);
    end_ = newline + 1;
    last_line_ = std::string(line) + "\n";
    if (line.empty()) continue;
    // A run may have 100,000 lines. ParseJsonObject would also explain errors, and takes several times as long.
    nlohmann::json json = ParseJson(line);
    if (json.is_object()) {
      add(std::move(json));
      changed = true;
    } else {
      ++damaged_;
    }
  }
}

}  // namespace weft
