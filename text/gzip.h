// Files compressed with gzip, read by zlib.
#ifndef WEFT_TEXT_GZIP_H_
#define WEFT_TEXT_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Whether a file's bytes begin as gzip's do.
bool IsGzip(absl::string_view bytes);
// What they decompress to: all parts, one after the other. Zeros after the last are padding. InvalidArgument if they
// are damaged or cut off, or decompress to more than `most` bytes.
inline constexpr size_t kMaxDecompressed = size_t{4} << 30;
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t most = kMaxDecompressed);

// A file's bytes, decompressed if they are gzip's, up to kMaxDecompressed; errors name the file.
absl::StatusOr<std::string> ReadMaybeGzip(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_GZIP_H_
