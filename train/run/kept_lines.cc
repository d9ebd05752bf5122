#include "weft/train/run/kept_lines.h"

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

absl::StatusOr<int64_t> KeepLines(const std::string& path, int64_t step,
                                  absl::FunctionRef<void(const nlohmann::json&)> kept) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (absl::IsNotFound(contents.status())) return 0;
  if (!contents.ok()) return contents.status();
  int64_t damaged = 0;
  std::string rest;
  for (absl::string_view line : absl::StrSplit(*contents, '\n', absl::SkipEmpty())) {
    const nlohmann::json json = ParseJson(line);
    const std::optional<int64_t> of_step = NaturalNumber(json, "step");
    if (!of_step.has_value()) {
      const bool cut_off = line.data() + line.size() == contents->data() + contents->size();
      if (!cut_off) ++damaged;
      continue;
    }
    if (*of_step > step) continue;
    absl::StrAppend(&rest, line, "\n");
    kept(json);
  }
  if (rest != *contents) WEFT_RETURN_IF_ERROR(WriteFile(path, {rest}));
  return damaged;
}

}  // namespace weft
