// Whole files, read and written with errors that name them.
#ifndef WEFT_CORE_FILE_H_
#define WEFT_CORE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// The file's bytes. NotFound if it is missing; InvalidArgument if it is a folder; else what the system said.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes `parts` one after the other to a temporary file beside `path`, syncs it and renames it: `path` is either the
// old file or the whole new one.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts);

// Syncs a folder, so that the names in it last.
absl::Status SyncFolder(const std::string& path);

}  // namespace weft

#endif  // WEFT_CORE_FILE_H_
