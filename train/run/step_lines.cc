#include "weft/train/run/step_lines.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"

namespace weft {

std::optional<int64_t> NaturalNumber(const nlohmann::json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned()) return std::nullopt;
  return WholeNumber(json[key]);
}

absl::StatusOr<StepLines> StepLines::Open(const std::string& path, int64_t step,
                                          absl::FunctionRef<void(const nlohmann::json&)> kept) {
  StepLines lines;
  lines.path_ = path;
  const absl::StatusOr<std::string> found = ReadFile(path);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  const std::string contents = found.value_or("");
  std::string rest;
  for (absl::string_view line : absl::StrSplit(contents, '\n', absl::SkipEmpty())) {
    const nlohmann::json json = ParseJson(line);
    const std::optional<int64_t> of_step = NaturalNumber(json, "step");
    if (!of_step.has_value()) {
      const bool cut_off = line.data() + line.size() == contents.data() + contents.size();
      if (!cut_off) ++lines.damaged_;
      continue;
    }
    if (*of_step > step) continue;
    absl::StrAppend(&rest, line, "\n");
    kept(json);
  }
  if (rest != contents) WEFT_RETURN_IF_ERROR(WriteFile(path, {rest}));
  lines.file_.reset(std::fopen(path.c_str(), "ae"));
  if (lines.file_ == nullptr) return SystemStatus("write", path, errno);
  return lines;
}

absl::Status StepLines::Append(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  return written && std::fflush(file_.get()) == 0 ? absl::OkStatus() : SystemStatus("write", path_, errno);
}

absl::Status StepLines::Sync() {
  return fsync(fileno(file_.get())) == 0 ? absl::OkStatus() : SystemStatus("write", path_, errno);
}

}  // namespace weft
