// These functions read gzip-compressed files. A FileStream reads such a file, or any other, from its beginning to its
// end in parts, so the file may be larger than the memory.
//
//   WEFT_ASSIGN_OR_RETURN(FileStream stream, FileStream::Open("texts.gz"));
//   while (true) {
//     WEFT_ASSIGN_OR_RETURN(const size_t bytes, stream.Append(1 << 20, &text));
//     if (bytes == 0) break;
//   }
#ifndef WEFT_TEXT_DATA_GZIP_H_
#define WEFT_TEXT_DATA_GZIP_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct gzFile_s;  // of zlib

namespace weft {

// Reports whether `bytes` begin with gzip's magic number.
bool IsGzip(absl::string_view bytes);
// Decompresses all members of a gzip file; zeros after the last member are padding. Returns InvalidArgument if the
// bytes are damaged or truncated, or decompress to more than `max_bytes`. The default maximum is 4 GiB, so that a small
// file cannot fill the memory.
inline constexpr size_t kMaxDecompressed = size_t{4} << 30;
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes = kMaxDecompressed);

// Returns a file's bytes, decompressed if the file is gzip-compressed. Errors name the path. At most ReadLimit() bytes
// are decompressed (base/file.h). Returns InvalidArgument for a picture as PNG or JPEG, which no reader here takes.
absl::StatusOr<std::string> ReadMaybeGzip(const std::string& path);

class FileStream {
 public:
  // Opens a file or, if `path` is empty, standard input. Errors: NotFound if the file is missing, InvalidArgument if it
  // is a folder, otherwise the reason that the system gives.
  static absl::StatusOr<FileStream> Open(const std::string& path);

  // Appends at most `max_bytes` decompressed bytes to `text`. Returns their number, which is 0 only at the end of the
  // file. Returns InvalidArgument, with the path, if a compressed file is damaged or truncated.
  absl::StatusOr<size_t> Append(size_t max_bytes, std::string* text);

  const std::string& name() const { return name_; }  // the path, or "standard input"

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  FileStream(std::string name, gzFile_s* file) : name_(std::move(name)), file_(file) {}

  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_GZIP_H_
