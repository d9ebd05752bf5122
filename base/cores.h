// These functions tell how much of the machine this process may use.
#ifndef WEFT_BASE_CORES_H_
#define WEFT_BASE_CORES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// Returns the number of threads of this process that can run at once, at least 1: the number of cores in the CPU
// affinity mask of the thread that first calls Cores, or CoresOfQuota if that is less.
int Cores();

// Returns the number of cores, rounded up, whose time the process's control groups may use, as containers limit it.
// Returns INT_MAX without a limit. `root`: the folder that holds proc/ and sys/, for tests.
int CoresOfQuota(const std::string& root = "");

// Returns the folders of the process's control groups (cgroups(7)) and of all groups that contain them: those of
// version 2, and those of version 1 of a controller such as "memory". A limit may be in any of them, and a folder need
// not be there.
std::vector<std::string> ControlGroups(absl::string_view controller, const std::string& root = "");

}  // namespace weft

#endif  // WEFT_BASE_CORES_H_
