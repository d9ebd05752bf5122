#include "weft/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"

namespace weft {

std::vector<std::string> ControlGroups(absl::string_view controller, const std::string& root) {
  const std::string second = absl::StrCat(root, "/sys/fs/cgroup"), first = absl::StrCat(second, "/", controller);
  std::vector<std::string> folders = {second, first};
  const std::string groups = ReadFile(absl::StrCat(root, "/proc/self/cgroup")).value_or("");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {  // 0::/user.slice, or 4:memory:/job of version 1
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (!parts[1].empty() && !absl::c_linear_search(controllers, controller)) continue;
    const std::string& top = parts[1].empty() ? second : first;
    std::string folder = absl::StrCat(top, absl::StripSuffix(parts[2], "/"));
    for (; folder.size() > top.size(); folder.resize(folder.rfind('/'))) folders.push_back(folder);
  }
  return folders;
}

int CoresOfQuota(const std::string& root) {
  double cores = INT_MAX;
  for (const std::string& group : ControlGroups("cpu", root)) {
    const auto read = [&](const char* name) { return ReadFile(absl::StrCat(group, "/", name)).value_or(""); };
    // Version 2 has both numbers of microseconds in one file, and version 1 in two.
    const std::string text = absl::StrCat(read("cpu.max"), read("cpu.cfs_quota_us"), " ", read("cpu.cfs_period_us"));
    const std::vector<std::string> numbers = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    double quota = 0, period = 0;  // without a limit, the quota is "max" or -1
    if (numbers.size() != 2 || !absl::SimpleAtod(numbers[0], &quota) || !absl::SimpleAtod(numbers[1], &period))
      continue;
    if (quota > 0 && period > 0) cores = std::min(cores, std::ceil(quota / period));
  }
  return static_cast<int>(cores);
}

int Cores() {
  static const int cores = [] {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0
                            ? CPU_COUNT(&set)
                            : static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, std::min(allowed, CoresOfQuota()));
  }();
  return cores;
}

}  // namespace weft
