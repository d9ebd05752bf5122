// Checksum finds bytes that changed on a disk or on the way. It is XXH3 with 64 bits (https://xxhash.com), printed as
// 16 hexadecimal digits. It does not protect against changes made on purpose.
//
//   const std::string digits = Checksum(bytes);  // "2d06800538d394c2" if `bytes` is empty
//
// A file can hold its own checksum. The checksum is then that of the file with 16 zeros in place of its digits:
//
//   std::string text = absl::StrCat("{\"checksum\":\"", kNoChecksum, "\",\"step\":5}");
//   PutChecksum(&text);
//   WEFT_RETURN_IF_ERROR(CheckOwnChecksum(text, digits));  // `digits`: as read from the text
#ifndef WEFT_BASE_CHECKSUM_H_
#define WEFT_BASE_CHECKSUM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct XXH3_state_s;

namespace weft {

inline constexpr absl::string_view kNoChecksum = "0000000000000000";

// Computes the checksum of bytes that come in several parts.
class Checksummer {
 public:
  Checksummer();
  void Add(absl::string_view bytes);
  std::string Digest() const;  // of all bytes so far

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string Checksum(absl::string_view bytes);
// Reads a file piece by piece and returns its checksum. Returns InvalidArgument if it is not a regular file, because a
// pipe could not be read again.
absl::StatusOr<std::string> ChecksumOfFile(const std::string& path);

// Computes the checksum of the contents of a file, `text`, and writes it in place of the first kNoChecksum there, which
// `text` must contain.
void PutChecksum(std::string* text);
// Checks a file that holds its own checksum. `digits`: that checksum, 16 characters. The checksum is computed with
// zeros in place of the first occurrence of `digits` in `file`. Returns DataLoss if the checksums differ.
absl::Status CheckOwnChecksum(absl::string_view file, absl::string_view digits);

}  // namespace weft

#endif  // WEFT_BASE_CHECKSUM_H_
