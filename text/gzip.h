// Files compressed with gzip, read by zlib.
#ifndef WEFT_TEXT_GZIP_H_
#define WEFT_TEXT_GZIP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Whether a file's bytes begin as gzip's do.
bool IsGzip(absl::string_view bytes);
// What they decompress to. InvalidArgument if they are damaged or cut off.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes);

// A file's bytes, decompressed if they are gzip's; errors name the file.
absl::StatusOr<std::string> ReadMaybeGzip(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_GZIP_H_
