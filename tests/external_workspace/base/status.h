// This header belongs to this workspace; Weft's is "weft/base/status.h".
#ifndef BASE_STATUS_H_
#define BASE_STATUS_H_

#include <cstdio>

#include "absl/status/status.h"

// Returns the exit code of main for `status`. Prints an error to stderr.
inline int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

#endif  // BASE_STATUS_H_
