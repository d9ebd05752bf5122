// A model.bin has version 6 of CTranslate2's binary format and revision 7 of its TransformerSpec. After the header come
// the variables in the order of their names: name, rank, sizes, type and bytes. The aliases follow. All integers are
// little-endian. Each text has its length, which includes a final zero, in 2 bytes.
#include "weft/formats/ctranslate2_file.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/base/regular_file.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/dtype.h"

namespace weft {
namespace {

constexpr uint32_t kBinaryVersion = 6, kRevision = 7;
constexpr char kSpec[] = "TransformerSpec", kScale[] = "_scale";
enum Type : uint32_t { kFloat32, kInt8, kInt16, kInt32, kFloat16, kBFloat16 };  // CTranslate2's types
constexpr size_t kTypeBytes[] = {4, 1, 2, 4, 2, 2};                             // by type

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
  PutText(kSpec, &head);
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

namespace {

// Takes numbers and texts from the front of `rest`. Where too few bytes are left, `ok` becomes false.
struct Bytes {
  absl::string_view rest;
  bool ok = true;

  absl::string_view Take(size_t count) {
    ok = ok && count <= rest.size();
    const absl::string_view taken = rest.substr(0, ok ? count : 0);
    rest.remove_prefix(taken.size());
    return taken;
  }
  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    const absl::string_view taken = Take(bytes);
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  std::string Text() { return std::string(absl::StripSuffix(Take(Number(2)), absl::string_view("\0", 1))); }
};

// A variable of the file, with the bytes of its value.
struct Variable {
  std::vector<int64_t> sizes;
  Type type = kFloat32;
  absl::string_view bytes;

  size_t elements() const { return bytes.size() / kTypeBytes[type]; }
  bool is_integer() const { return type == kInt8 || type == kInt16 || type == kInt32; }
  int64_t Integer(size_t i) const {
    const int unused = 64 - 8 * static_cast<int>(kTypeBytes[type]);
    const uint64_t bits = Bytes{bytes.substr(i * kTypeBytes[type])}.Number(kTypeBytes[type]);
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  float Float(size_t i) const {
    if (is_integer()) return static_cast<float>(Integer(i));
    const auto bits = static_cast<uint32_t>(Bytes{bytes.substr(i * kTypeBytes[type])}.Number(kTypeBytes[type]));
    if (type == kFloat16) return FromHalfBits(static_cast<uint16_t>(bits));
    return absl::bit_cast<float>(type == kBFloat16 ? bits << 16 : bits);
  }
};

absl::StatusOr<Variable> TakeVariable(const std::string& name, Bytes* from) {
  constexpr size_t kMaxRank = 4;
  Variable variable;
  uint64_t elements = 1;
  const size_t rank = from->Number(1);
  for (size_t i = 0; i < rank && rank <= kMaxRank; ++i) {
    variable.sizes.push_back(static_cast<int64_t>(from->Number(4)));
    elements = std::min<uint64_t>(elements, from->rest.size() + 1) * static_cast<uint64_t>(variable.sizes.back());
  }
  const uint64_t type = from->Number(1), bytes = from->Number(4);
  const bool known = rank <= kMaxRank && type < std::size(kTypeBytes);
  if (!known || elements * kTypeBytes[type] != bytes) {
    return InvalidArgument("'", name, "' has rank ", rank, ", type ", type, " and ", bytes,
                           " bytes, which do not fit each other");
  }
  variable.type = static_cast<Type>(type);
  variable.bytes = from->Take(bytes);
  return variable;
}

// Adds the value of `variable`, divided by `scales`: one scale, or one for each row.
absl::Status AddTensor(const std::string& name, const Variable& variable, const Variable* scales, Weights* weights) {
  const size_t elements = variable.elements(), rows = scales == nullptr ? 1 : scales->elements();
  if (variable.sizes.empty()) return InvalidArgument("'", name, "' is a fraction, wanted a whole number");
  const bool fits =
      scales == nullptr ? !variable.is_integer() : rows == 1 || static_cast<int64_t>(rows) == variable.sizes.front();
  if (!fits) return InvalidArgument("'", name, "' has no scales that fit it");
  WEFT_ASSIGN_OR_RETURN(const Tensor tensor, weights->Add(name, {kF32, Shape(variable.sizes)}));
  for (size_t i = 0; i < elements; ++i) {
    const float scale = scales == nullptr ? 1 : scales->Float(i / (elements / rows));
    tensor.as<float>()[i] = variable.Float(i) / scale;
  }
  return absl::OkStatus();
}

absl::StatusOr<CTranslate2File> Parse(absl::string_view contents, Weights* weights) {
  Bytes bytes{contents};
  CTranslate2File file;
  if (const uint64_t version = bytes.Number(4); version != kBinaryVersion) {
    return InvalidArgument("version ", version, " of CTranslate2's files, wanted ", kBinaryVersion,
                           "; a converter of CTranslate2 4 writes it");
  }
  const std::string spec = bytes.Text();
  if (const uint64_t revision = bytes.Number(4); spec != kSpec || revision != kRevision) {
    return InvalidArgument("the model is '", spec, "', revision ", revision, "; wanted ", kSpec, ", revision ",
                           kRevision);
  }
  std::map<std::string, Variable> variables;
  for (uint64_t count = bytes.Number(4); count > 0 && bytes.ok; --count) {
    const std::string name = bytes.Text();
    WEFT_ASSIGN_OR_RETURN(variables[name], TakeVariable(name, &bytes));
  }
  for (uint64_t count = bytes.Number(4); count > 0 && bytes.ok; --count) {
    const std::string alias = bytes.Text(), name = bytes.Text();
    if (!absl::EndsWith(alias, kScale)) file.aliases[alias] = name;
  }
  if (!bytes.ok) return InvalidArgument("the file ends too early, at byte ", contents.size());
  for (const auto& [name, variable] : variables) {
    if (absl::EndsWith(name, kScale)) continue;
    const auto scales = variables.find(name + kScale);
    if (variable.sizes.empty() && variable.is_integer()) {
      file.numbers.push_back({name, static_cast<int>(variable.bytes.size()), static_cast<int>(variable.Integer(0))});
    } else {
      WEFT_RETURN_IF_ERROR(AddTensor(name, variable, scales == variables.end() ? nullptr : &scales->second, weights));
    }
  }
  return file;
}

}  // namespace

absl::StatusOr<CTranslate2File> ReadCTranslate2File(const std::string& path, Weights* weights) {
  WEFT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Annotate(Parse(file.bytes(), weights), path);
}

}  // namespace weft
