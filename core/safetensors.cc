// Reading trusts nothing, because a file may come from anywhere: each field of the header is checked before its use.
#include "weft/core/safetensors.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/little_endian.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // bytes: the limit of the reference implementation
constexpr char kMetadata[] = "__metadata__", kChecksum[] = "checksum";

constexpr OtherDType kOtherDTypes[] = {
    {"I64", 64, kI32},  {"U64", 64},    {"C64", 64},    {"U32", 32},    {"I16", 16},        {"U16", 16},
    {"I8", 8},          {"U8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8},
    {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
};

struct Entry {
  std::string name;
  TensorType type;
  const OtherDType* other = nullptr;  // the dtype in the file; null: that of `type`
  uint64_t begin = 0, end = 0;        // offsets of its bytes from the end of the header
};

// Returns the value of a JSON number that is a natural number, or nothing for any other JSON value.
std::optional<uint64_t> Size(const Json& number) {
  if (!number.is_number_unsigned()) return std::nullopt;
  return number.get<uint64_t>();
}

absl::StatusOr<Shape> ReadShape(const Json& sizes) {
  if (!sizes.is_array()) return InvalidArgument("its shape is not an array");
  if (sizes.size() > Shape::kMaxRank) {
    return InvalidArgument("it has rank ", sizes.size(), ", more than ", Shape::kMaxRank);
  }
  Shape shape;
  for (const Json& size : sizes) {
    const std::optional<uint64_t> value = Size(size);
    if (!value.has_value() || *value > std::numeric_limits<int64_t>::max()) {
      return InvalidArgument("its shape has a size that is not a natural number");
    }
    shape.Append(static_cast<int64_t>(*value));
  }
  if (!shape.valid()) return InvalidArgument("its shape ", ToString(shape), " is too large");
  return shape;
}

absl::Status ReadDType(const Json& name, Entry* entry) {
  if (!name.is_string()) return InvalidArgument("its dtype is not a string");
  const std::string& text = name.get_ref<const std::string&>();
  const auto is_called = [&](const DTypeRow& row) { return absl::AsciiStrToUpper(row.name) == text; };
  if (const auto known = absl::c_find_if(kDTypes, is_called); known != std::end(kDTypes)) {
    entry->type.dtype = static_cast<DType>(known - std::begin(kDTypes));
    return absl::OkStatus();
  }
  entry->other = FindOtherDType(text);
  if (entry->other == nullptr) return InvalidArgument("its dtype ", text, " is none of the format's");
  entry->type.dtype = entry->other->read_as.value_or(kF32);
  return absl::OkStatus();
}

// Elements of 6 or 4 bits are packed, so that a tensor has whole bytes.
uint64_t StoredBytes(const Entry& entry) {
  if (entry.other == nullptr) return entry.type.bytes();
  return (static_cast<uint64_t>(entry.type.shape.elements()) * entry.other->bits + 7) / 8;
}

absl::StatusOr<Entry> ReadEntry(const std::string& name, const Json& json, uint64_t data_bytes) {
  if (!json.is_object()) return InvalidArgument("it is not a JSON object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) return InvalidArgument("it has no ", key);
  }
  if (json.size() != 3) return InvalidArgument("it has more than dtype, shape and data_offsets");
  Entry entry = {.name = name};
  WEFT_RETURN_IF_ERROR(ReadDType(json["dtype"], &entry));
  WEFT_ASSIGN_OR_RETURN(entry.type.shape, ReadShape(json["shape"]));
  const Json& offsets = json["data_offsets"];
  const bool pair = offsets.is_array() && offsets.size() == 2;
  const std::optional<uint64_t> begin = pair ? Size(offsets[0]) : std::nullopt, end = pair ? Size(offsets[1]) : begin;
  if (!begin.has_value() || !end.has_value() || *begin > *end) {
    return InvalidArgument("its data_offsets are not two natural numbers in order");
  }
  if (*end > data_bytes) {
    return InvalidArgument("its bytes ", *begin, " to ", *end, " run past the end of the file, which has ", data_bytes,
                           " after the header");
  }
  if (*end - *begin != StoredBytes(entry)) {
    return InvalidArgument(json["dtype"].get_ref<const std::string&>(), ToString(entry.type.shape), " takes ",
                           StoredBytes(entry), " bytes, but it has ", *end - *begin);
  }
  entry.begin = *begin;
  entry.end = *end;
  return entry;
}

// Returns the header's tensors in the order of their bytes, which must cover `data_bytes` bytes without gap or overlap.
absl::StatusOr<std::vector<Entry>> ReadEntries(const Json& header, uint64_t data_bytes) {
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) continue;
    WEFT_ASSIGN_OR_RETURN(Entry entry,
                          Annotate(ReadEntry(name, json, data_bytes), absl::StrCat("tensor '", name, "'")));
    entries.push_back(std::move(entry));
  }
  const auto range = [](const Entry& e) { return std::pair(e.begin, e.end); };
  absl::c_stable_sort(entries, [&](const Entry& a, const Entry& b) { return range(a) < range(b); });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      return InvalidArgument(
          "tensor '", entry.name, "': its bytes begin at ", entry.begin,
          entry.begin < end ? ", inside the tensor before, which ends at " : ", but the tensor before ends at ", end);
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    return InvalidArgument("the file has ", data_bytes, " bytes after the header, but its tensors take ", end);
  }
  return entries;
}

// Returns the header in `bytes`, the contents of a file, and sets `data` to the bytes after the header.
absl::StatusOr<Json> ReadHeader(absl::string_view bytes, absl::string_view* data) {
  if (bytes.size() < sizeof(uint64_t)) {
    return InvalidArgument("the file has only ", bytes.size(), " bytes");
  }
  const uint64_t size = LittleEndian<uint64_t>(bytes);
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) {
    return InvalidArgument("bad header: its length is given as ", size, ", but ", bytes.size(),
                           " bytes are left in the file");
  }
  if (size > kMaxHeader) {
    return InvalidArgument("bad header: its length ", size, " is over ", kMaxHeader);
  }
  *data = bytes.substr(size);
  return Annotate(ParseLargeJsonObject(bytes.substr(0, size)), "bad header");
}

// Verifies the checksum that the file `bytes` holds. Another program's "checksum" has another length.
absl::Status VerifyChecksum(absl::string_view bytes, const Json& header, WantedChecksum wanted) {
  const auto metadata = header.find(kMetadata);
  if (metadata == header.end()) return absl::OkStatus();
  const auto found = metadata->is_object() ? metadata->find(kChecksum) : metadata->end();
  if (metadata->is_object() && found != metadata->end() && found->is_string()) {
    const std::string& digits = found->get_ref<const std::string&>();
    if (digits.size() == kNoChecksum.size()) return CheckOwnChecksum(bytes, digits);
  }
  if (wanted == WantedChecksum::kIfPresent) return absl::OkStatus();
  return absl::DataLossError("it is damaged or no file of a run: its metadata has no checksum");
}

// Returns the header of a file, with kNoChecksum in place of its checksum.
absl::StatusOr<std::string> MakeHeader(const std::string& path, absl::Span<const SafetensorsWriter::NamedType> tensors,
                                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadata] = {{kChecksum, kNoChecksum}};
  for (const auto& [key, value] : metadata) header[kMetadata].emplace(key, value);
  uint64_t end = 0;
  for (const auto& [name, type] : tensors) {
    const uint64_t begin = end;
    end += type.bytes();
    if (header.contains(name) || name == kMetadata) {
      return InvalidArgument("cannot write ", path, ": '", name, "' occurs twice or is reserved");
    }
    const absl::Span<const int64_t> sizes = type.shape.dims();
    header[name] = {{"dtype", absl::AsciiStrToUpper(Name(type.dtype))},
                    {"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
                    {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::type_error&) {
    return InvalidArgument("cannot write ", path, ": a tensor's name is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

const OtherDType* FindOtherDType(absl::string_view name) { return FindRow(kOtherDTypes, name); }

absl::Status CopyStored(absl::string_view from, const OtherDType* other, const Tensor& to) {
  const int64_t count = to.type.shape.elements();
  if (other == nullptr) {
    if (to.type.dtype == kBool && absl::c_any_of(from, [](char c) { return c != 0 && c != 1; })) {
      return InvalidArgument("a BOOL is neither 0 nor 1");
    }
    std::copy(from.begin(), from.end(), reinterpret_cast<char*>(to.data));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = static_cast<int64_t>(LittleEndian<uint64_t>(from.substr(8 * i, 8)));
      if (value != static_cast<int32_t>(value)) {
        return absl::OutOfRangeError(absl::StrCat("element ", i, " is ", value, ", which does not fit i32"));
      }
      to.as<int32_t>()[i] = static_cast<int32_t>(value);
    }
  }
  return absl::OkStatus();
}

bool IsUsableInPlace(absl::string_view bytes, const OtherDType* other, DType dtype) {
  const size_t alignment = IsBlockFormat(dtype) ? 1 : SizeOf(dtype);
  return other == nullptr && dtype != kBool && !bytes.empty() &&
         reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
}

absl::StatusOr<Tensor> TensorFile::Place(const TensorType& type, absl::string_view from, const OtherDType* other) {
  if (IsUsableInPlace(from, other, type.dtype)) {
    return Tensor{type, mapped_.data() + (from.data() - mapped_.bytes().data())};
  }
  const Tensor tensor = {type, arena_.Allocate(type.bytes())};
  if (tensor.data == nullptr) return absl::ResourceExhaustedError("no memory for its tensors");
  WEFT_RETURN_IF_ERROR(CopyStored(from, other, tensor));
  return tensor;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path, WantedChecksum checksum) {
  SafetensorsFile file;
  WEFT_ASSIGN_OR_RETURN(file.mapped_, MappedFile::Open(path));
  const absl::string_view bytes = file.mapped_.bytes();
  const std::string where = absl::StrCat(path, " is no valid safetensors file");
  absl::string_view data;
  WEFT_ASSIGN_OR_RETURN(const Json header, Annotate(ReadHeader(bytes, &data), where));
  WEFT_ASSIGN_OR_RETURN(std::vector<Entry> entries, Annotate(ReadEntries(header, data.size()), where));
  WEFT_RETURN_IF_ERROR(Annotate(VerifyChecksum(bytes, header, checksum), path));

  for (Entry& entry : entries) {
    if (entry.other != nullptr && !entry.other->read_as.has_value()) {
      file.unread_.emplace_back(entry.name, absl::StrCat(header[entry.name]["dtype"].get_ref<const std::string&>(),
                                                         ToString(entry.type.shape)));
      continue;
    }
    const absl::StatusOr<Tensor> tensor =
        file.Place(entry.type, data.substr(entry.begin, entry.end - entry.begin), entry.other);
    if (absl::IsResourceExhausted(tensor.status())) return Annotate(tensor.status(), path);
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat(where, ": tensor '", entry.name, "'"));
    file.tensors_.push_back({std::move(entry.name), *tensor});
  }
  return file;
}

const NamedTensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = absl::c_find_if(tensors_, [&](const NamedTensor& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsWriter::NamedType> types;
  for (const NamedTensor& named : tensors) types.emplace_back(named.name, named.tensor.type);
  WEFT_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, types, metadata));
  for (const NamedTensor& named : tensors) WEFT_RETURN_IF_ERROR(writer.Add(named.tensor));
  return writer.Finish();
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                            absl::Span<const NamedType> tensors,
                                                            const std::map<std::string, std::string>& metadata) {
  WEFT_ASSIGN_OR_RETURN(const std::string header, MakeHeader(path, tensors, metadata));
  std::string length(8, '\0');  // the bytes before the header
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  WEFT_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  SafetensorsWriter writer(std::move(file), length.size() + header.find(kNoChecksum.data()));
  WEFT_RETURN_IF_ERROR(writer.Append(length));
  WEFT_RETURN_IF_ERROR(writer.Append(header));
  return writer;
}

absl::Status SafetensorsWriter::Add(const Tensor& tensor) {
  return Append({reinterpret_cast<const char*>(tensor.data), tensor.type.bytes()});
}

absl::Status SafetensorsWriter::Finish() {
  WEFT_RETURN_IF_ERROR(file_.Replace(checksum_offset_, checksum_.Digest()));
  return file_.Commit();
}

absl::Status SafetensorsWriter::Append(absl::string_view bytes) {
  checksum_.Add(bytes);
  return file_.Append(bytes);
}

}  // namespace weft
