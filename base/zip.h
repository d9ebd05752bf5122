// ReadZip finds the entries of a zip file that is in memory. It reads only entries that are stored as they are, as
// those of PyTorch's files are, so that nothing is copied.
//
//   WEFT_ASSIGN_OR_RETURN(const ZipFile entries, ReadZip(file.bytes()));
//   entries.at("model/data.pkl")
#ifndef WEFT_BASE_ZIP_H_
#define WEFT_BASE_ZIP_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

using ZipFile = absl::flat_hash_map<absl::string_view, absl::string_view>;  // contents by name

// Returns the entries of `file`, whose bytes they are. Sizes may have 64 bits. Returns InvalidArgument if the file is
// damaged, or if an entry is compressed or encrypted or occurs twice. Checksums are not verified.
// Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
absl::StatusOr<ZipFile> ReadZip(absl::string_view file);

}  // namespace weft

#endif  // WEFT_BASE_ZIP_H_
