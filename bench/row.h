// PrintRow prints the result of a benchmark, as one JSON object or as a line for each figure. ExitCode prints an error
// and returns a program's exit code.
#ifndef WEFT_BENCH_ROW_H_
#define WEFT_BENCH_ROW_H_

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace weft {

// `width`: of the column of names, unless the row is printed as JSON.
inline void PrintRow(const nlohmann::ordered_json& row, bool json, int width = 18) {
  if (json) {
    std::printf("%s\n", row.dump().c_str());
    return;
  }
  for (const auto& [key, value] : row.items()) {
    value.is_number_float() ? std::printf("%-*s %.2f\n", width, key.c_str(), value.get<double>())
                            : std::printf("%-*s %s\n", width, key.c_str(), value.dump().c_str());
  }
}

// Returns 0 if `status` is OK. Otherwise prints the error to stderr and returns 1.
inline int ExitCode(const char* program, const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", program, std::string(status.message()).c_str());
  return 1;
}

}  // namespace weft

#endif  // WEFT_BENCH_ROW_H_
