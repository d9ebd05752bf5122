#include "weft/text/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

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
  absl::StatusOr<std::string> text = Gunzip(bytes, ReadLimit());
  return text.ok() ? text : Annotate(text.status(), path);
}

}  // namespace weft
