// The library libxxhash computes XXH3. Its state is about 600 bytes, aligned to 64.
#include "weft/base/checksum.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

Checksummer::Checksummer() : state_(XXH3_createState()) {
  WEFT_CHECK(state_ != nullptr && XXH3_64bits_reset(state_.get()) == XXH_OK);
}

void Checksummer::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Checksummer::Add(absl::string_view bytes) {
  WEFT_CHECK(XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK);
}

std::string Checksummer::Digest() const { return absl::StrFormat("%016x", XXH3_64bits_digest(state_.get())); }

std::string Checksum(absl::string_view bytes) {
  return absl::StrFormat("%016x", XXH3_64bits(bytes.data(), bytes.size()));
}

absl::StatusOr<std::string> ChecksumOfFile(const std::string& path) {
  constexpr int64_t kPiece = 1 << 20;  // bytes
  WEFT_ASSIGN_OR_RETURN(const RandomAccessFile file, RandomAccessFile::Open(path, /*in_order=*/true));
  Checksummer sum;
  std::string piece;
  for (int64_t begin = 0; begin < file.size(); begin += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, file.size() - begin)));
    WEFT_RETURN_IF_ERROR(file.Read(begin, piece.size(), piece.data()));
    sum.Add(piece);
  }
  return sum.Digest();
}

void PutChecksum(std::string* text) {
  const size_t at = text->find(kNoChecksum.data());
  WEFT_CHECK(at != std::string::npos);
  text->replace(at, kNoChecksum.size(), Checksum(*text));
}

absl::Status CheckOwnChecksum(absl::string_view file, absl::string_view digits) {
  const size_t at = file.find(digits);
  if (digits.size() != kNoChecksum.size() || at == file.npos) {
    return absl::DataLossError(absl::StrCat("it is damaged: its checksum is not ", kNoChecksum.size(), " digits"));
  }
  Checksummer sum;
  sum.Add(file.substr(0, at));
  sum.Add(kNoChecksum);
  sum.Add(file.substr(at + digits.size()));
  if (const std::string now = sum.Digest(); now != digits) {
    return absl::DataLossError(
        absl::StrCat("it is damaged: its bytes have the checksum ", now, ", but the file was written with ", digits));
  }
  return absl::OkStatus();
}

}  // namespace weft
