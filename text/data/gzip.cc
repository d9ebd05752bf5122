#include "weft/text/data/gzip.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes) {
  constexpr int kGzipWindow = 16 + MAX_WBITS;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::ResourceExhaustedError("no memory to decompress");
  std::string text;
  std::array<char, 1 << 16> buffer;
  int result = Z_OK;
  while (result != Z_STREAM_END || bytes.find_first_not_of('\0') != absl::string_view::npos) {
    if (result == Z_STREAM_END) inflateReset(&stream);  // a file may consist of several members
    const size_t taken = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(taken);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(taken - stream.avail_in);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
    const bool too_long = text.size() > max_bytes;
    if (!too_long && (result == Z_OK || result == Z_STREAM_END)) continue;
    const std::string reason = too_long
                                   ? absl::StrCat("it has more than the ", max_bytes, " that are allowed (max-bytes)")
                               : result == Z_BUF_ERROR ? "it is cut off"
                               : stream.msg != nullptr ? stream.msg
                                                       : "damaged";
    inflateEnd(&stream);
    return InvalidArgument("can't decompress it after ", text.size(), " bytes: ", reason);
  }
  inflateEnd(&stream);
  return text;
}

absl::StatusOr<std::string> ReadMaybeGzip(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  for (const auto& [beginning, kind] : {std::pair{"\x89PNG", "PNG"}, {"\xFF\xD8\xFF", "JPEG"}}) {
    if (!absl::StartsWith(bytes, beginning)) continue;
    return InvalidArgument(path, ": it is a picture in the format ", kind,
                           "; wanted text, or pictures as CSV of their pixels or as MNIST's IDX");
  }
  if (!IsGzip(bytes)) return bytes;
  return Annotate(Gunzip(bytes, ReadLimit()), path);
}

void FileStream::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

// zlib's gzread also returns the bytes of files that are not compressed.
absl::StatusOr<FileStream> FileStream::Open(const std::string& path) {
  const std::string name = path.empty() ? "standard input" : path;
  const int fd = path.empty() ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemStatus("open", name, errno);
  FileStream stream(name, gzdopen(fd, "rb"));  // closes `fd` later
  if (stream.file_ == nullptr) {
    close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", name));
  }
  struct stat about;
  if (fstat(fd, &about) != 0) return SystemStatus("read", name, errno);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", name, ": it is a folder, not a file");
  constexpr unsigned kBuffer = 1 << 18;  // bytes: long against the cost of a read
  gzbuffer(stream.file_.get(), kBuffer);
  return stream;
}

absl::StatusOr<size_t> FileStream::Append(size_t max_bytes, std::string* text) {
  const size_t before = text->size();
  text->resize(before + std::min<size_t>(max_bytes, std::numeric_limits<int>::max()));
  const int bytes = gzread(file_.get(), text->data() + before, static_cast<unsigned>(text->size() - before));
  text->resize(before + static_cast<size_t>(std::max(bytes, 0)));
  int error = Z_OK;
  const char* const message = gzerror(file_.get(), &error);
  if (error == Z_ERRNO) return SystemStatus("read", name_, errno);
  if (error == Z_BUF_ERROR && bytes <= 0) return InvalidArgument(name_, ": can't decompress it: it is cut off");
  if (bytes < 0) return InvalidArgument(name_, ": can't decompress it: ", message);
  return static_cast<size_t>(bytes);
}

}  // namespace weft
