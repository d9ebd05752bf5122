// These functions read gzip-compressed files.
#ifndef WEFT_TEXT_GZIP_H_
#define WEFT_TEXT_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Reports whether `bytes` begin with gzip's magic number.
bool IsGzip(absl::string_view bytes);
// Decompresses all members of a gzip file; zeros after the last member are padding. Returns InvalidArgument if the
// bytes are damaged or truncated, or decompress to more than `max_bytes`. The default maximum is 4 GiB, so that a small
// file cannot fill the memory.
inline constexpr size_t kMaxDecompressed = size_t{4} << 30;
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes = kMaxDecompressed);

// Returns a file's bytes, decompressed if the file is gzip-compressed. Errors name the path. At most ReadLimit() bytes
// are decompressed (core/file.h). Returns InvalidArgument for a picture as PNG or JPEG, which no reader here takes.
absl::StatusOr<std::string> ReadMaybeGzip(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_GZIP_H_
