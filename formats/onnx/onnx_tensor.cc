#include "weft/formats/onnx/onnx_tensor.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "weft/base/little_endian.h"
#include "weft/core/stored_dtype.h"

namespace weft {
namespace {

struct ElementType {
  int type;
  size_t bytes;  // of an element in raw_data
  DType dtype;
  bool is_signed = true;
};
constexpr ElementType kTypes[] = {
    {onnx::Tensor::FLOAT, 4, kF32},         {onnx::Tensor::DOUBLE, 8, kF64},
    {onnx::Tensor::BFLOAT16, 2, kBF16},     {onnx::Tensor::FLOAT16, 2, kF32},
    {onnx::Tensor::BOOL, 1, kBool, false},  {onnx::Tensor::INT64, 8, kI32},
    {onnx::Tensor::INT32, 4, kI32},         {onnx::Tensor::INT16, 2, kI32},
    {onnx::Tensor::INT8, 1, kI32},          {onnx::Tensor::UINT64, 8, kI32, false},
    {onnx::Tensor::UINT32, 4, kI32, false}, {onnx::Tensor::UINT16, 2, kI32, false},
    {onnx::Tensor::UINT8, 1, kI32, false},
};

// The elements as bytes: `raw`, or those of the field for the type.
absl::StatusOr<std::string> TypedBytes(const onnx::Tensor& tensor, const ElementType& type) {
  std::string bytes;
  const auto append = [&](auto element) {
    bytes.append(reinterpret_cast<const char*>(&element), std::min(sizeof(element), type.bytes));
  };
  if (type.type == onnx::Tensor::FLOAT) {
    absl::c_for_each(tensor.float_data(), append);
  } else if (type.type == onnx::Tensor::DOUBLE) {
    absl::c_for_each(tensor.double_data(), append);
  } else if (type.type == onnx::Tensor::INT64) {
    absl::c_for_each(tensor.int64_data(), append);
  } else if (type.type == onnx::Tensor::UINT32 || type.type == onnx::Tensor::UINT64) {
    absl::c_for_each(tensor.uint64_data(), append);
  } else {
    absl::c_for_each(tensor.int32_data(), append);
  }
  return bytes;
}

int64_t IntegerAt(absl::string_view bytes, const ElementType& type, int64_t i) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * type.bytes, type.bytes);
  const size_t unused = 64 - 8 * type.bytes;
  // Beyond the largest int64 there is no exact value; the nearest one serves, because it does not fit i32 either.
  if (!type.is_signed) return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  return static_cast<int64_t>(value << unused) >> unused;
}

void Convert(absl::string_view bytes, const ElementType& type, OnnxConstant* to) {
  const int64_t count = to->tensor.type.shape.elements();
  if (type.type == onnx::Tensor::FLOAT16) {
    for (int64_t i = 0; i < count; ++i) {
      to->tensor.as<float>()[i] = FromHalfBits(LittleEndian<uint16_t>(bytes.substr(2 * static_cast<size_t>(i))));
    }
  } else if (type.dtype == kBool) {
    for (int64_t i = 0; i < count; ++i) to->tensor.as<bool>()[i] = bytes[static_cast<size_t>(i)] != 0;
  } else if (type.dtype == kI32) {
    bool fits = true;
    for (int64_t i = 0; i < count; ++i) {
      using Limits = std::numeric_limits<int32_t>;
      const int64_t value = IntegerAt(bytes, type, i), near = std::clamp<int64_t>(value, Limits::min(), Limits::max());
      fits = fits && near == value;
      to->tensor.as<int32_t>()[i] = static_cast<int32_t>(near);
    }
    for (int64_t i = 0; i < count && !fits; ++i) to->wide.push_back(IntegerAt(bytes, type, i));
  } else {
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(to->tensor.data));
  }
}

}  // namespace

absl::StatusOr<absl::string_view> OnnxFiles::Find(const onnx::Tensor& tensor, std::shared_ptr<const void>* owner) {
  std::string location;
  uint64_t offset = 0, length = std::numeric_limits<uint64_t>::max();
  for (const onnx::Entry& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    for (const auto& [key, number] : {std::pair{"offset", &offset}, {"length", &length}}) {
      if (entry.key() == key && !absl::SimpleAtoi(entry.value(), number)) {
        return InvalidArgument("its ", key, " '", entry.value(), "' is no number");
      }
    }
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error), given(location);
  const fs::path path = error ? fs::path() : fs::canonical(folder / given, error);
  const bool inside = !location.empty() && !given.is_absolute() && absl::c_find(given, "..") == given.end();
  if (!inside || (!error && absl::c_mismatch(folder, path).first != folder.end())) {
    return InvalidArgument("its elements are in '", location, "', which is not in the model's folder");
  }
  if (error) return InvalidArgument("its elements are in '", location, "', which cannot be read: ", error.message());
  std::shared_ptr<MappedFile>& mapped = mapped_[path.string()];
  if (mapped == nullptr) {
    WEFT_ASSIGN_OR_RETURN(MappedFile opened, MappedFile::Open(path.string()));
    mapped = std::make_shared<MappedFile>(std::move(opened));
  }
  const absl::string_view bytes = mapped->bytes();
  if (offset > bytes.size()) return InvalidArgument("its offset ", offset, " is beyond the end of '", location, "'");
  *owner = mapped;
  return bytes.substr(offset, length);
}

absl::StatusOr<OnnxConstant> ReadOnnxTensor(const onnx::Tensor& tensor, OnnxFiles* files,
                                            std::shared_ptr<const void> message) {
  const auto* const type =
      absl::c_find_if(kTypes, [&](const ElementType& each) { return each.type == tensor.data_type(); });
  if (type == std::end(kTypes)) {
    return absl::UnimplementedError(absl::StrCat("elements of ONNX's type ", tensor.data_type()));
  }
  if (tensor.dims_size() > Shape::kMaxRank) {
    return absl::UnimplementedError(absl::StrCat("a tensor of ", tensor.dims_size(), " axes"));
  }
  const Shape shape(absl::MakeConstSpan(tensor.dims().data(), static_cast<size_t>(tensor.dims_size())));
  if (!shape.valid()) return InvalidArgument("a tensor's shape ", ToString(shape), " is not possible");
  const uint64_t size = static_cast<uint64_t>(shape.elements()) * type->bytes;
  absl::string_view bytes = tensor.raw_data();
  std::string typed;
  if (tensor.data_location() == onnx::Tensor::EXTERNAL) {
    if (files == nullptr) return absl::UnimplementedError("elements in another file");
    WEFT_ASSIGN_OR_RETURN(bytes, files->Find(tensor, &message));
    if (absl::c_none_of(tensor.external_data(), [](const onnx::Entry& each) { return each.key() == "length"; })) {
      bytes = bytes.substr(0, size);
    }
  } else if (bytes.empty()) {
    WEFT_ASSIGN_OR_RETURN(typed, TypedBytes(tensor, *type));
    bytes = typed;
    message = nullptr;
  }
  if (bytes.size() != size) {
    return InvalidArgument("a tensor ", ToString(shape), " has ", bytes.size(), " bytes in place of ", size);
  }
  OnnxConstant constant = {.tensor = {{type->dtype, shape}}, .wide = {}, .bytes = message};
  if (message != nullptr && type->type != onnx::Tensor::FLOAT16 && IsFloat(type->dtype) &&
      IsUsableInPlace(bytes, nullptr, type->dtype)) {
    constant.tensor.data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes.data()));
    return constant;
  }
  const auto copy = std::make_shared<std::vector<std::byte>>(std::max<size_t>(constant.tensor.type.bytes(), 1));
  constant.tensor.data = copy->data();
  constant.bytes = copy;
  Convert(bytes, *type, &constant);
  return constant;
}

}  // namespace weft
