#include "weft/formats/onnx/onnx_node.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "weft/base/little_endian.h"
#include "weft/core/safetensors.h"

namespace weft {
namespace {

constexpr OnnxElement kTypes[] = {
    {onnx::Tensor::FLOAT, 4, kF32},         {onnx::Tensor::DOUBLE, 8, kF64},
    {onnx::Tensor::BFLOAT16, 2, kBF16},     {onnx::Tensor::FLOAT16, 2, kF32},
    {onnx::Tensor::BOOL, 1, kBool, false},  {onnx::Tensor::INT64, 8, kI32},
    {onnx::Tensor::INT32, 4, kI32},         {onnx::Tensor::INT16, 2, kI32},
    {onnx::Tensor::INT8, 1, kI32},          {onnx::Tensor::UINT64, 8, kI32, false},
    {onnx::Tensor::UINT32, 4, kI32, false}, {onnx::Tensor::UINT16, 2, kI32, false},
    {onnx::Tensor::UINT8, 1, kI32, false},
};

// Returns the elements that are in the field for the type as bytes.
std::string TypedBytes(const onnx::Tensor& tensor, const OnnxElement& type) {
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

int64_t IntegerAt(absl::string_view bytes, const OnnxElement& type, int64_t i) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * type.bytes, type.bytes);
  const size_t unused = 64 - 8 * type.bytes;
  // Beyond the largest int64 there is no exact value; the nearest one serves, because it does not fit i32 either.
  if (!type.is_signed) return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  return static_cast<int64_t>(value << unused) >> unused;
}

void Convert(absl::string_view bytes, const OnnxElement& type, OnnxConstant* to) {
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

// Attributes that say how results are computed, or what follows from the inputs. TopK always sorts. BatchNormalization
// has a momentum for training.
constexpr absl::string_view kWithoutEffect[] = {"hidden_size",       "momentum", "round_mode", "saturate",     "seed",
                                                "softmax_precision", "sorted",   "stash_type", "storage_order"};

}  // namespace

OnnxConstant CopyToConstant(const Tensor& tensor) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.type.bytes());
  bytes->resize(bytes->size() + 1);  // so that there is a pointer
  return {.tensor = {tensor.type, bytes->data()}, .bytes = bytes};
}

absl::StatusOr<OnnxElement> OnnxElementOf(int64_t type) {
  const auto* const found = absl::c_find_if(kTypes, [&](const OnnxElement& each) { return each.type == type; });
  if (found != std::end(kTypes)) return *found;
  return absl::UnimplementedError(absl::StrCat("elements of ONNX's type ", type));
}

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
  WEFT_ASSIGN_OR_RETURN(const OnnxElement type, OnnxElementOf(tensor.data_type()));
  if (tensor.dims_size() > Shape::kMaxRank) {
    return absl::UnimplementedError(absl::StrCat("a tensor of ", tensor.dims_size(), " axes"));
  }
  const Shape shape(absl::MakeConstSpan(tensor.dims().data(), static_cast<size_t>(tensor.dims_size())));
  if (!shape.valid()) return InvalidArgument("a tensor's shape ", ToString(shape), " is not possible");
  const uint64_t size = static_cast<uint64_t>(shape.elements()) * type.bytes;
  absl::string_view bytes = tensor.raw_data();
  std::string typed;
  if (tensor.data_location() == onnx::Tensor::EXTERNAL) {
    if (files == nullptr) return absl::UnimplementedError("elements in another file");
    WEFT_ASSIGN_OR_RETURN(bytes, files->Find(tensor, &message));
    if (absl::c_none_of(tensor.external_data(), [](const onnx::Entry& each) { return each.key() == "length"; })) {
      bytes = bytes.substr(0, size);
    }
  } else if (bytes.empty()) {
    typed = TypedBytes(tensor, type);
    bytes = typed;
    message = nullptr;
  }
  if (bytes.size() != size) {
    return InvalidArgument("a tensor ", ToString(shape), " has ", bytes.size(), " bytes in place of ", size);
  }
  OnnxConstant constant = {.tensor = {{type.dtype, shape}}, .wide = {}, .bytes = message};
  if (message != nullptr && type.type != onnx::Tensor::FLOAT16 && IsFloat(type.dtype) &&
      IsUsableInPlace(bytes, nullptr, type.dtype)) {
    constant.tensor.data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes.data()));
    return constant;
  }
  const auto copy = std::make_shared<std::vector<std::byte>>(std::max<size_t>(constant.tensor.type.bytes(), 1));
  constant.tensor.data = copy->data();
  constant.bytes = copy;
  Convert(bytes, type, &constant);
  return constant;
}

const OnnxOp* FindOnnxOp(absl::string_view domain, absl::string_view name) {
  using Table = std::map<std::pair<absl::string_view, absl::string_view>, const OnnxOp*>;
  static const Table* const all = [] {
    auto* const table = new Table;
    for (const auto& ops : {OnnxArithmetic(), OnnxLayers(), OnnxSequences(), OnnxShapes()}) {
      for (const OnnxOp& op : ops) WEFT_CHECK(table->emplace(std::pair(op.domain, op.name), &op).second);
    }
    return table;
  }();
  const auto found = all->find({domain == "ai.onnx" ? "" : domain, name});
  return found == all->end() ? nullptr : found->second;
}

absl::Status CheckOnnxSteps(int64_t steps) {
  if (steps <= kMaxOnnxSteps) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("it would become ", steps, " nodes; the limit is ", kMaxOnnxSteps));
}

Var InFloats(Var x) { return IsFloat(x.dtype()) ? x : Cast(x, kF64); }

Var WrapTo(Var x, int type) {
  const absl::StatusOr<OnnxElement> element = OnnxElementOf(type);
  if (!element.ok() || !element->is_narrow() || x.dtype() != kI32) return x;
  const double period = element->bytes == 1 ? 256 : 65536, low = element->is_signed ? -period / 2 : 0;
  const Var shifted = x - low, rest = shifted - period * (shifted / period);  // the quotient is truncated
  return Where(Less(rest, Number(rest, 0)), rest + period, rest) + low;
}

Var Every(Var x, int axis, int64_t stride) {
  if (stride == 1) return x;
  const Shape shape = x.shape();
  const int64_t count = (shape.dim(axis) + stride - 1) / stride;
  Shape split(shape.dims().first(axis));
  for (int64_t dim : {count, stride}) split.Append(dim);
  for (int64_t dim : shape.dims().subspan(axis + 1)) split.Append(dim);
  const Var whole = Pad(x, axis, 0, count * stride - shape.dim(axis));
  return Squeeze(Slice(Reshape(whole, split), axis + 1, 0, 1), {axis + 1});
}

Var MoveAxis(Var x, int from, int to) {
  std::vector<int> order = Sequence(0, std::max({x.shape().rank(), from + 1, to + 1}));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return Permute(x, order);
}

OnnxNode::OnnxNode(const onnx::Node& node, const OnnxOp& op, Tape* tape, std::vector<OnnxValue> inputs)
    : node_(node),
      op_(op),
      tape_(tape),
      inputs_(std::move(inputs)),
      found_(static_cast<size_t>(node.attribute_size())) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (!node.output(i).empty()) output_count_ = static_cast<size_t>(i) + 1;
  }
}

Var OnnxNode::in(size_t i) const {
  if (!has(i)) return tape_->Fail(InvalidArgument("it has no input ", i));
  OnnxValue& value = inputs_[i];
  if (value.var) return value.var;
  if (!value.weight.empty()) {
    const TensorType type = value.known->tensor.type;
    return value.var = tape_->HasParameter(value.weight) ? tape_->FindParameter(value.weight)
                       : value.is_frozen ? tape_->State(value.weight, type, Zeros(), ParameterKind::kFrozen)
                                         : tape_->Parameter(value.weight, type, Zeros());
  }
  if (!value.known->wide.empty() && op_.integers != OnnxIntegers::kMoves) {
    return tape_->Fail(InvalidArgument("an integer of input ", i, " does not fit 32 bits"));
  }
  return value.var = tape_->Constant(value.known->tensor);
}

absl::StatusOr<std::vector<int64_t>> OnnxNode::Integers(size_t i) const {
  if (!has(i)) return InvalidArgument("it has no input ", i);
  if (!inputs_[i].known) {
    const std::string name = i < static_cast<size_t>(node_.input_size()) ? node_.input(static_cast<int>(i)) : "";
    return absl::FailedPreconditionError(absl::StrCat("the numbers of its input '", name,
                                                      "' must be known while the model is recorded, but depend on "
                                                      "inputs of the model"));
  }
  const OnnxConstant& known = *inputs_[i].known;
  if (!known.wide.empty()) return known.wide;
  std::vector<int64_t> numbers(static_cast<size_t>(known.tensor.type.shape.elements()));
  Dispatch(known.tensor.type.dtype, [&](auto zero) {
    const auto* const elements = known.tensor.as<const decltype(zero)>();
    for (size_t k = 0; k < numbers.size(); ++k) {
      // A float beyond 2^62 is at that bound, and NaN is 0.
      const double number = static_cast<double>(elements[k]);
      numbers[k] = number == number ? static_cast<int64_t>(std::clamp(number, -0x1p62, 0x1p62)) : 0;
    }
  });
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> OnnxNode::Integers(size_t i, std::vector<int64_t> otherwise) const {
  return has(i) ? Integers(i) : std::move(otherwise);
}

absl::StatusOr<double> OnnxNode::Number(size_t i) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> integers, Integers(i));
  if (integers.size() != 1) return InvalidArgument("input ", i, " has ", integers.size(), " elements, not 1");
  const OnnxConstant& known = *inputs_[i].known;
  if (!known.wide.empty()) return static_cast<double>(known.wide[0]);
  return Dispatch(known.tensor.type.dtype,
                  [&](auto zero) { return static_cast<double>(*known.tensor.as<const decltype(zero)>()); });
}

absl::StatusOr<double> OnnxNode::Number(size_t i, double otherwise) const { return has(i) ? Number(i) : otherwise; }

absl::StatusOr<int> OnnxNode::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) return InvalidArgument("its axis ", axis, " is not one of ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<int>> OnnxNode::Axes(int rank, bool of_result) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, Integers(1, Ints("axes")));
  std::vector<int> axes;
  for (int64_t each : given) {
    WEFT_ASSIGN_OR_RETURN(axes.emplace_back(), Axis(each, rank + (of_result ? static_cast<int>(given.size()) : 0)));
  }
  return axes;
}

const onnx::Attribute* OnnxNode::Find(absl::string_view name) const {
  const auto found =
      absl::c_find_if(node_.attribute(), [&](const onnx::Attribute& each) { return each.name() == name; });
  if (found == node_.attribute().end()) return nullptr;
  found_[static_cast<size_t>(found - node_.attribute().begin())] = true;
  return &*found;
}
absl::Status OnnxNode::CheckAttributes() const {
  for (size_t i = 0; i < found_.size(); ++i) {
    const std::string& name = node_.attribute(static_cast<int>(i)).name();
    if (found_[i] || absl::c_linear_search(kWithoutEffect, name)) continue;
    return absl::UnimplementedError(absl::StrCat("its attribute '", name, "' is not read"));
  }
  return absl::OkStatus();
}
const onnx::Attribute* OnnxNode::Find(absl::string_view name, onnx::Attribute::Type type) const {
  const onnx::Attribute* const found = Find(name);
  if (found == nullptr || found->type() == type) return found;
  tape_->Fail(InvalidArgument("its attribute '", name, "' has type ", found->type(), " in place of ", type));
  return nullptr;
}
int64_t OnnxNode::Int(absl::string_view name, int64_t otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::INT);
  return found == nullptr ? otherwise : found->i();
}
double OnnxNode::Float(absl::string_view name, double otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::FLOAT);
  return found == nullptr ? otherwise : static_cast<double>(found->f());
}
std::vector<int64_t> OnnxNode::Ints(absl::string_view name, std::vector<int64_t> otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::INTS);
  return found == nullptr ? std::move(otherwise) : std::vector<int64_t>(found->ints().begin(), found->ints().end());
}
std::string OnnxNode::String(absl::string_view name, const std::string& otherwise) const {
  const onnx::Attribute* const found = Find(name, onnx::Attribute::STRING);
  return found == nullptr ? otherwise : found->s();
}

}  // namespace weft
