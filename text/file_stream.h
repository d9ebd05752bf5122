// A FileStream reads a file from its beginning to its end, in parts. The file may be compressed by gzip, and larger
// than the memory.
//
//   WEFT_ASSIGN_OR_RETURN(FileStream stream, FileStream::Open("texts.gz"));
//   while (true) {
//     WEFT_ASSIGN_OR_RETURN(const size_t bytes, stream.Append(1 << 20, &text));
//     if (bytes == 0) break;
//   }
#ifndef WEFT_TEXT_FILE_STREAM_H_
#define WEFT_TEXT_FILE_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

struct gzFile_s;  // of zlib

namespace weft {

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

#endif  // WEFT_TEXT_FILE_STREAM_H_
