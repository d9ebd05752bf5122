// A model.bin has version 6 of CTranslate2's binary format and revision 7 of its TransformerSpec. After the header come
// the variables in the order of their names: name, rank, sizes, type and bytes. The aliases follow. All integers are
// little-endian. Each text has its length, which includes a final zero, in 2 bytes.
#include "weft/formats/ctranslate2_file.h"

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/dtype.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr uint32_t kBinaryVersion = 6, kRevision = 7;
constexpr uint32_t kFloat32 = 0, kInt8 = 1, kInt16 = 2;  // CTranslate2's types

void Put(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

void PutText(absl::string_view text, std::string* to) {
  Put(text.size() + 1, 2, to);
  to->append(text.data(), text.size());
  to->push_back('\0');
}

// Returns the bytes of a variable before its value.
std::string VariableHeader(absl::string_view name, absl::Span<const int64_t> sizes, uint32_t type, uint64_t bytes) {
  std::string header;
  PutText(name, &header);
  Put(sizes.size(), 1, &header);
  for (const int64_t size : sizes) Put(static_cast<uint64_t>(size), 4, &header);
  Put(type, 1, &header);
  Put(bytes, 4, &header);
  return header;
}

absl::Status CheckName(absl::string_view name) {
  if (name.size() < std::numeric_limits<uint16_t>::max()) return absl::OkStatus();
  return InvalidArgument("a tensor's name has ", name.size(), " bytes, wanted less than 65535");
}

}  // namespace

absl::Status WriteCTranslate2File(const std::string& path, const CTranslate2File& file) {
  std::map<std::string, std::string> headers;  // by name; a number's value is part of its header
  std::map<std::string, absl::string_view> values;
  for (const auto& [name, tensor] : file.tensors) {
    WEFT_RETURN_IF_ERROR(CheckName(name));
    const uint64_t bytes = tensor.type.bytes();
    if (tensor.type.dtype != kF32 || bytes > std::numeric_limits<uint32_t>::max()) {
      return InvalidArgument("'", name, "' is ", ToString(tensor.type), ", wanted f32 of at most 4 GiB");
    }
    headers[name] = VariableHeader(name, tensor.type.shape.dims(), kFloat32, bytes);
    values[name] = {reinterpret_cast<const char*>(tensor.data), bytes};
  }
  for (const auto& [name, bytes, value] : file.numbers) {
    std::string& header = headers[name];
    header = VariableHeader(name, {}, bytes == 1 ? kInt8 : kInt16, static_cast<uint64_t>(bytes));
    Put(static_cast<uint64_t>(value), bytes, &header);
  }
  std::string head, aliases;
  Put(kBinaryVersion, 4, &head);
  PutText("TransformerSpec", &head);
  Put(kRevision, 4, &head);
  Put(headers.size(), 4, &head);
  Put(file.aliases.size(), 4, &aliases);
  for (const auto& [alias, name] : file.aliases) {
    PutText(alias, &aliases);
    PutText(name, &aliases);
  }
  std::vector<absl::string_view> parts = {head};
  for (const auto& [name, header] : headers) {
    parts.emplace_back(header);
    if (const auto value = values.find(name); value != values.end()) parts.push_back(value->second);
  }
  parts.emplace_back(aliases);
  return WriteFile(path, parts);
}

}  // namespace weft
