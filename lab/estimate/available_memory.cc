// Linux tells the available memory in /proc/meminfo, and limits of control groups (version 2, or 1 as older container
// systems mount it) in /sys/fs/cgroup.
#include "weft/lab/estimate/available_memory.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/cores.h"
#include "weft/base/file.h"

namespace weft {
namespace {

// Returns the number of bytes in a file such as memory.max, or 0 if it has none.
uint64_t ReadBytes(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  uint64_t bytes = 0;
  return text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &bytes) ? bytes : 0;
}

// Returns the value of the line "NAME<separator>VALUE" of `text`, or 0.
uint64_t ValueOf(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t value = 0;
    if (!absl::ConsumePrefix(&line, name)) continue;
    absl::ConsumeSuffix(&line, "kB");
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) return value;
  }
  return 0;
}

// Returns the bytes that a control group may still use, or UINT64_MAX if it has no limit. Pages of files that were not
// used for some time do not count, because the system drops them when memory is needed.
uint64_t LeftInGroup(const std::string& folder, const std::string& limit_file, const std::string& usage_file) {
  const uint64_t limit = ReadBytes(absl::StrCat(folder, "/", limit_file));
  if (limit == 0) return UINT64_MAX;
  const absl::StatusOr<std::string> stat = ReadFile(absl::StrCat(folder, "/memory.stat"));
  const uint64_t inactive = stat.ok() ? ValueOf(*stat, "inactive_file ") : 0;
  const uint64_t usage = ReadBytes(absl::StrCat(folder, "/", usage_file));
  const uint64_t used = usage - std::min(usage, inactive);
  return limit - std::min(limit, used);
}

}  // namespace

uint64_t AvailableMemory(const std::string& root) {
  const absl::StatusOr<std::string> meminfo = ReadFile(absl::StrCat(root, "/proc/meminfo"));
  if (!meminfo.ok()) return 0;
  uint64_t available = ValueOf(*meminfo, "MemAvailable:") * 1024;
  for (const std::string& folder : ControlGroups("memory", root)) {
    available = std::min({available, LeftInGroup(folder, "memory.max", "memory.current"),
                          LeftInGroup(folder, "memory.limit_in_bytes", "memory.usage_in_bytes")});
  }
  return available;
}

uint64_t HighestResidentBytes() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/self/status");
  return text.ok() ? ValueOf(*text, "VmHWM:") * 1024 : 0;
}

}  // namespace weft
