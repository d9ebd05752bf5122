// Reading trusts nothing, because a file may come from anywhere: each size is compared with the bytes that are left.
#include "weft/core/gguf.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/little_endian.h"
#include "weft/base/status.h"
#include "weft/core/dtype.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kMagic = "GGUF";
constexpr char kAlignmentKey[] = "general.alignment";
constexpr uint64_t kAlignment = 32, kMaxAlignment = 1 << 20;  // bytes; the default, and a limit against nonsense
constexpr uint32_t kMaxAxes = 4;

// The names of the types of tensors by their numbers; "": there is no such type (any more).
constexpr absl::string_view kTensorTypes[] = {
    "F32",   "F16",    "Q4_0",  "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",    "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16",  "",       "",
    "",      "TQ1_0",  "TQ2_0", "",     "",     "",        "MXFP4",  "NVFP4",   "Q1_0"};

// Reads the bytes of a file one after the other.
class Cursor {
 public:
  explicit Cursor(absl::string_view bytes) : bytes_(bytes), left_(bytes) {}

  uint64_t left() const { return left_.size(); }
  uint64_t position() const { return bytes_.size() - left_.size(); }
  absl::StatusOr<absl::string_view> Take(uint64_t count) {
    if (count > left()) return InvalidArgument("the file ends at byte ", bytes_.size(), ", inside of a value");
    const absl::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  template <class T>
  absl::StatusOr<T> Number() {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(sizeof(T)));
    return LittleEndian<T>(bytes);
  }
  absl::StatusOr<absl::string_view> Text() {
    WEFT_ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>());
    return Take(size);
  }

 private:
  absl::string_view bytes_, left_;
};

template <class T>
absl::StatusOr<Json> ReadNumber(Cursor& cursor) {
  WEFT_ASSIGN_OR_RETURN(const T number, cursor.Number<T>());
  if constexpr (!std::is_same_v<T, float>) return Json(number);
  char text[32];
  double shortest = 0;
  const char* const end = std::to_chars(text, text + sizeof(text), number).ptr;
  std::from_chars(text, end, shortest);
  return Json(shortest);
}
absl::StatusOr<Json> ReadBool(Cursor& cursor) {
  WEFT_ASSIGN_OR_RETURN(const uint8_t byte, cursor.Number<uint8_t>());
  if (byte > 1) return InvalidArgument("a bool is ", byte, ", neither 0 nor 1");
  return Json(byte == 1);
}
absl::StatusOr<Json> ReadText(Cursor& cursor) {
  WEFT_ASSIGN_OR_RETURN(const absl::string_view text, cursor.Text());
  return Json(std::string(text));
}

// The types of values by their numbers.
constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBoolean = 7, kText = 8, kList = 9;
constexpr struct {
  uint64_t bytes;  // of the shortest value
  absl::StatusOr<Json> (*read)(Cursor& cursor);
} kTypes[] = {{1, ReadNumber<uint8_t>},
              {1, ReadNumber<int8_t>},
              {2, ReadNumber<uint16_t>},
              {2, ReadNumber<int16_t>},
              {4, ReadNumber<uint32_t>},
              {4, ReadNumber<int32_t>},
              {4, ReadNumber<float>},
              {1, ReadBool},
              {8, ReadText},
              {0, nullptr},
              {8, ReadNumber<uint64_t>},
              {8, ReadNumber<int64_t>},
              {8, ReadNumber<double>}};

// Reads a value. llama.cpp has no lists of lists, so these are errors, too.
absl::StatusOr<Json> ReadValue(Cursor& cursor, GgufLists lists) {
  WEFT_ASSIGN_OR_RETURN(uint32_t type, cursor.Number<uint32_t>());
  const bool is_list = type == kList;
  if (is_list) {
    WEFT_ASSIGN_OR_RETURN(type, cursor.Number<uint32_t>());
  }
  if (type >= std::size(kTypes) || kTypes[type].read == nullptr) {
    return InvalidArgument("its ", is_list ? "elements are" : "value is", " of the unknown type ", type);
  }
  if (!is_list) return kTypes[type].read(cursor);
  WEFT_ASSIGN_OR_RETURN(const uint64_t count, cursor.Number<uint64_t>());
  if (count > cursor.left() / kTypes[type].bytes) {
    return InvalidArgument("it has ", count, " values, but only ", cursor.left(), " bytes of the file are left");
  }
  const bool kept = lists == GgufLists::kAll || count <= kGgufShortList;
  if (!kept && type != kText) {
    WEFT_RETURN_IF_ERROR(cursor.Take(count * kTypes[type].bytes).status());
    return Json();
  }
  Json list = Json::array();
  for (uint64_t i = 0; i < count; ++i) {
    if (kept) {
      WEFT_ASSIGN_OR_RETURN(Json value, kTypes[type].read(cursor));
      list.push_back(std::move(value));
    } else {
      WEFT_RETURN_IF_ERROR(cursor.Text().status());
    }
  }
  return kept ? list : Json();
}

absl::Status ReadMetadata(Cursor& cursor, uint64_t count, GgufLists lists, Json* metadata) {
  absl::flat_hash_set<std::string> keys;
  for (uint64_t i = 0; i < count; ++i) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view name, Annotate(cursor.Text(), absl::StrCat("key ", i)));
    std::string key(name);
    const std::string where = absl::StrCat("key '", key, "'");
    if (!keys.insert(key).second) return InvalidArgument(where, ": it occurs twice");
    WEFT_ASSIGN_OR_RETURN(Json value, Annotate(ReadValue(cursor, lists), where));
    metadata->get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
  }
  return absl::OkStatus();
}

struct Entry {
  std::string name;
  uint32_t number = 0;         // of the type in the file
  std::optional<DType> dtype;  // unset: no DType is the type in the file
  Shape shape;
  uint64_t begin = 0;  // offset of its bytes from the first tensor's

  absl::string_view type_name() const { return kTensorTypes[number]; }
  uint64_t bytes() const { return TensorType{*dtype, shape}.bytes(); }
};

absl::StatusOr<Entry> ReadEntry(Cursor& cursor, uint64_t alignment) {
  Entry entry;
  WEFT_ASSIGN_OR_RETURN(const uint32_t axes, cursor.Number<uint32_t>());
  if (axes > kMaxAxes) return InvalidArgument("it has ", axes, " axes, more than ", kMaxAxes);
  int64_t sizes[kMaxAxes];
  for (uint32_t i = axes; i-- > 0;) {
    WEFT_ASSIGN_OR_RETURN(sizes[i], cursor.Number<int64_t>());
  }
  entry.shape = Shape(absl::MakeConstSpan(sizes, axes));
  if (!entry.shape.valid()) return InvalidArgument("its shape ", ToString(entry.shape), " is too large or negative");
  WEFT_ASSIGN_OR_RETURN(entry.number, cursor.Number<uint32_t>());
  if (entry.number >= std::size(kTensorTypes) || kTensorTypes[entry.number].empty()) {
    return InvalidArgument("its type ", entry.number, " is unknown");
  }
  DType dtype = kF32;
  if (ParseDType(absl::AsciiStrToLower(entry.type_name()), &dtype)) entry.dtype = dtype;
  if (entry.dtype && entry.shape.cols() % RowOf(dtype).block != 0) {
    return InvalidArgument("its rows of ", entry.shape.cols(), " numbers are no whole blocks of ", entry.type_name());
  }
  WEFT_ASSIGN_OR_RETURN(entry.begin, cursor.Number<uint64_t>());
  if (entry.begin % alignment == 0) return entry;
  return InvalidArgument("its offset ", entry.begin, " is no multiple of the alignment ", alignment);
}

// Returns an error if the bytes of a tensor are not all in the `size` bytes of the data, or belong to another one, too.
absl::Status CheckRanges(const std::vector<Entry>& entries, uint64_t size) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) {
    if (entry.dtype && entry.bytes() > 0) sorted.push_back(&entry);
  }
  absl::c_sort(sorted, [](const Entry* a, const Entry* b) { return a->begin < b->begin; });
  uint64_t end = 0;
  for (const Entry* const entry : sorted) {
    if (entry->begin > size || entry->bytes() > size - entry->begin) {
      return InvalidArgument("tensor '", entry->name, "': its ", entry->bytes(), " bytes from ", entry->begin,
                             " on run past the end of the file, which has ", size, " for tensors");
    }
    if (entry->begin < end) return InvalidArgument("tensor '", entry->name, "' begins inside of another one");
    end = entry->begin + entry->bytes();
  }
  return absl::OkStatus();
}

// Reads all that comes before the tensors' bytes, and sets `data` to the offset of these.
absl::StatusOr<std::vector<Entry>> ReadHeader(absl::string_view bytes, GgufLists lists, Json* metadata,
                                              uint64_t* data) {
  Cursor cursor(bytes);
  WEFT_ASSIGN_OR_RETURN(const absl::string_view magic, cursor.Take(kMagic.size()));
  if (magic != kMagic) return InvalidArgument("it does not begin with GGUF");
  WEFT_ASSIGN_OR_RETURN(const uint32_t version, cursor.Number<uint32_t>());
  if (version != 2 && version != 3) {
    return InvalidArgument("its version is ", version, ", wanted 2 or 3",
                           version >> 16 ? " in little-endian order" : "");
  }
  WEFT_ASSIGN_OR_RETURN(const uint64_t tensors, cursor.Number<uint64_t>());
  WEFT_ASSIGN_OR_RETURN(const uint64_t keys, cursor.Number<uint64_t>());
  WEFT_RETURN_IF_ERROR(ReadMetadata(cursor, keys, lists, metadata));
  uint64_t alignment = kAlignment;
  if (const auto given = metadata->find(kAlignmentKey); given != metadata->end()) {
    alignment = given->is_number_unsigned() ? given->get<uint64_t>() : 0;
    if (alignment == 0 || alignment > kMaxAlignment) {
      return InvalidArgument(kAlignmentKey, " is ", JsonLine(*given), ", wanted 1 to ", kMaxAlignment);
    }
  }
  std::vector<Entry> entries;
  absl::flat_hash_set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view text, Annotate(cursor.Text(), absl::StrCat("tensor ", i)));
    std::string name(text);
    const std::string where = absl::StrCat("tensor '", name, "'");
    if (!names.insert(name).second) return InvalidArgument(where, ": it occurs twice");
    WEFT_ASSIGN_OR_RETURN(Entry entry, Annotate(ReadEntry(cursor, alignment), where));
    entry.name = std::move(name);
    entries.push_back(std::move(entry));
  }
  *data = std::min<uint64_t>((cursor.position() + alignment - 1) / alignment * alignment, bytes.size());
  WEFT_RETURN_IF_ERROR(CheckRanges(entries, bytes.size() - *data));
  return entries;
}

}  // namespace

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path, GgufLists lists) {
  GgufFile file;
  WEFT_ASSIGN_OR_RETURN(file.mapped_, MappedFile::Open(path));
  uint64_t data = 0;
  WEFT_ASSIGN_OR_RETURN(std::vector<Entry> entries,
                        Annotate(ReadHeader(file.mapped_.bytes(), lists, &file.metadata_, &data),
                                 absl::StrCat(path, " is no valid GGUF file")));
  for (Entry& entry : entries) {
    if (!entry.dtype) {
      file.unread_.emplace_back(std::move(entry.name), absl::StrCat(entry.type_name(), ToString(entry.shape)));
      continue;
    }
    const TensorType type = {*entry.dtype, entry.shape};
    const absl::string_view from =
        type.bytes() > 0 ? file.mapped_.bytes().substr(data + entry.begin, type.bytes()) : "";
    WEFT_ASSIGN_OR_RETURN(const Tensor tensor, Annotate(file.Place(type, from, /*other=*/nullptr), path));
    file.tensors_.push_back({std::move(entry.name), tensor});
  }
  return file;
}

namespace {

// Returns the number of the type of tensors of `dtype`, or -1 if there is no such type.
int32_t TensorTypeOf(DType dtype) {
  const auto found = absl::c_find(kTensorTypes, absl::AsciiStrToUpper(Name(dtype)));
  return found == std::end(kTensorTypes) ? -1 : static_cast<int32_t>(found - std::begin(kTensorTypes));
}

template <class T>
void Put(T number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(T));
}
void PutText(absl::string_view text, std::string* out) {
  Put<uint64_t>(text.size(), out);
  out->append(text.data(), text.size());
}

// Returns the number of the type in which `value` is written, or nothing if there is none.
std::optional<uint32_t> TypeOf(const Json& value) {
  if (value.is_string()) return kText;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_float()) return kFloat32;
  if (value.is_number_unsigned() && value <= std::numeric_limits<uint32_t>::max()) return kUint32;
  if (value.is_number_integer() && !value.is_number_unsigned() && value == value.get<int32_t>()) return kInt32;
  return std::nullopt;
}

void PutValue(const Json& value, uint32_t type, std::string* out) {
  if (type == kText) return PutText(value.get_ref<const std::string&>(), out);
  if (type == kBoolean) return Put<uint8_t>(value.get<bool>() ? 1 : 0, out);
  if (type == kFloat32) return Put(value.get<float>(), out);
  Put(static_cast<uint32_t>(value.get<int64_t>()), out);
}

absl::Status PutKey(const std::string& key, const Json& value, std::string* out) {
  const bool is_list = value.is_array();
  const std::optional<uint32_t> type = !is_list ? TypeOf(value) : value.empty() ? kText : TypeOf(value[0]);
  const bool mixed = is_list && absl::c_any_of(value, [&](const Json& each) { return TypeOf(each) != type; });
  if (!type.has_value() || mixed) {
    return InvalidArgument("the value of the key '", key, "' has no type in a GGUF file");
  }
  PutText(key, out);
  if (is_list) {
    Put(kList, out);
    Put(*type, out);
    Put<uint64_t>(value.size(), out);
    for (const Json& each : value) PutValue(each, *type, out);
  } else {
    Put(*type, out);
    PutValue(value, *type, out);
  }
  return absl::OkStatus();
}

std::string Padding(uint64_t size) { return std::string((kAlignment - size % kAlignment) % kAlignment, '\0'); }

}  // namespace

absl::StatusOr<GgufWriter> GgufWriter::Create(const std::string& path, const Json& metadata,
                                              absl::Span<const NamedType> tensors) {
  std::string header(kMagic);
  Put<uint32_t>(3, &header);
  Put<uint64_t>(tensors.size(), &header);
  Put<uint64_t>(metadata.size(), &header);
  for (const auto& [key, value] : metadata.items()) {
    WEFT_RETURN_IF_ERROR(Annotate(PutKey(key, value, &header), absl::StrCat("cannot write ", path)));
  }
  uint64_t begin = 0;
  for (const auto& [name, type] : tensors) {
    const int32_t number = TensorTypeOf(type.dtype);
    const absl::Span<const int64_t> sizes = type.shape.dims();
    if (number < 0 || sizes.size() > kMaxAxes || type.shape.cols() % RowOf(type.dtype).block != 0) {
      return InvalidArgument("cannot write ", path, ": '", name, "' is ", ToString(type), ", which GGUF does not have");
    }
    PutText(name, &header);
    Put(static_cast<uint32_t>(sizes.size()), &header);
    for (size_t i = sizes.size(); i-- > 0;) Put(sizes[i], &header);
    Put(number, &header);
    Put(begin, &header);
    begin += type.bytes() + Padding(type.bytes()).size();
  }
  header += Padding(header.size());
  WEFT_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  GgufWriter writer(std::move(file));
  WEFT_RETURN_IF_ERROR(writer.file_.Append(header));
  return writer;
}

absl::Status GgufWriter::Add(const Tensor& tensor) {
  WEFT_RETURN_IF_ERROR(file_.Append({tensor.as<const char>(), tensor.type.bytes()}));
  return file_.Append(Padding(tensor.type.bytes()));
}

}  // namespace weft
