// Dynamic sizes are computed by Shape, Mul and Add from the shapes of the graph's inputs.
#include "weft/formats/onnx/write_graph.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr int64_t kIrVersion = 8, kOperatorSet = 17;
// Smaller tensors stay in the model's file. The others begin at multiples of a page, so that readers can map them.
constexpr size_t kMinExternalBytes = 1024, kPage = 4096;

void Set(const OnnxAttribute& from, onnx::Attribute* to) {
  to->set_name(from.first);
  if (const auto* const integer = std::get_if<int64_t>(&from.second)) {
    to->set_type(onnx::Attribute::INT);
    to->set_i(*integer);
  } else if (const auto* const number = std::get_if<double>(&from.second)) {
    to->set_type(onnx::Attribute::FLOAT);
    to->set_f(static_cast<float>(*number));
  } else {
    const auto& integers = std::get<std::vector<int64_t>>(from.second);
    to->set_type(onnx::Attribute::INTS);
    to->mutable_ints()->Add(integers.begin(), integers.end());
  }
}

}  // namespace

bool IsFixed(const OnnxSize& size) {
  return absl::c_all_of(size, [&](int64_t value) { return value == size[0]; });
}

onnx::Tensor::DataType OnnxType(DType dtype) {
  static constexpr onnx::Tensor::DataType kTypes[] = {onnx::Tensor::FLOAT, onnx::Tensor::DOUBLE, onnx::Tensor::BFLOAT16,
                                                      onnx::Tensor::INT32, onnx::Tensor::BOOL,   onnx::Tensor::FLOAT16};
  return static_cast<size_t>(dtype) < std::size(kTypes) ? kTypes[static_cast<size_t>(dtype)] : onnx::Tensor::NO_TYPE;
}

std::string OnnxWriter::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = scope_.empty() ? status : Annotate(status, scope_);
  return "";
}

void OnnxWriter::Declare(const std::string& name, onnx::Tensor::DataType type, const OnnxSizes& shape,
                         onnx::ValueInfo* info) {
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  onnx::Shape* const to = info->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const OnnxSize& size : shape) {
    onnx::Shape::Dimension* const axis = to->add_dim();
    if (IsFixed(size)) axis->set_dim_value(size[0]);
    for (const OnnxDimension& dimension : dimensions_) {
      if (dimension.sizes == size) axis->set_dim_param(dimension.name);
    }
  }
}

void OnnxWriter::AddInput(const std::string& name, onnx::Tensor::DataType type, const OnnxSizes& shape) {
  Declare(name, type, shape, model_.mutable_graph()->add_input());
  input_shapes_.push_back(shape);
}

void OnnxWriter::AddOutput(const std::string& name, const std::string& value, DType dtype, const OnnxSizes& shape) {
  onnx::Node* const node = model_.mutable_graph()->add_node();
  node->set_op_type("Identity");
  node->set_name("/" + name);
  node->add_input(value);
  node->add_output(name);
  Declare(name, OnnxType(dtype), shape, model_.mutable_graph()->add_output());
}

OnnxWriter::Names OnnxWriter::Nodes(absl::string_view type, Names inputs, size_t outputs,
                                    const std::vector<OnnxAttribute>& attributes) {
  if (!status_.ok()) return Names(outputs);
  onnx::Node node;
  node.set_op_type(std::string(type));
  for (std::string& input : inputs) node.add_input(std::move(input));
  for (const OnnxAttribute& attribute : attributes) Set(attribute, node.add_attribute());
  Names& names = nodes_[absl::StrCat(outputs, " ", node.SerializeAsString())];
  if (!names.empty()) return names;
  node.set_name(absl::StrCat(scope_.empty() ? "" : "/", scope_, "/", type, "_", nodes_.size()));
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(absl::StrCat(node.name(), "_output_", i));
    node.add_output(names.back());
  }
  *model_.mutable_graph()->add_node() = std::move(node);
  return names;
}

std::string OnnxWriter::Constant(onnx::Tensor::DataType type, absl::Span<const int64_t> shape,
                                 absl::string_view bytes) {
  onnx::Tensor tensor;
  tensor.mutable_dims()->Add(shape.begin(), shape.end());
  tensor.set_data_type(type);
  tensor.set_raw_data(bytes.data(), bytes.size());
  std::string& name = constants_[tensor.SerializeAsString()];
  if (!name.empty()) return name;
  name = absl::StrCat("/constant_", constants_.size());
  tensor.set_name(name);
  *model_.mutable_graph()->add_initializer() = std::move(tensor);
  return name;
}

std::string OnnxWriter::Number(DType dtype, double value) {
  return Dispatch(dtype, [&](auto zero) {
    const auto number = static_cast<decltype(zero)>(value);
    return Constant(OnnxType(dtype), {}, {reinterpret_cast<const char*>(&number), sizeof(number)});
  });
}

std::string OnnxWriter::Integers(absl::Span<const int64_t> values) {
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return Constant(onnx::Tensor::INT64, {static_cast<int64_t>(values.size())}, bytes);
}

std::optional<OnnxWriter::Formula> OnnxWriter::Fit(const OnnxSize& size) const {
  if (IsFixed(size)) return Formula{.offset = size[0]};
  for (uint32_t product = 1; product < 1u << dimensions_.size(); ++product) {
    OnnxSize sizes(size.size(), 1);
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      for (size_t i = 0; (product >> d & 1) != 0 && i < sizes.size(); ++i) sizes[i] *= dimensions_[d].sizes[i];
    }
    const int64_t factor = (size.back() - size[0]) / (sizes.back() - sizes[0]), offset = size[0] - factor * sizes[0];
    for (int64_t& each : sizes) each = factor * each + offset;
    if (sizes == size) return Formula{.factor = factor, .offset = offset, .product = product};
  }
  return std::nullopt;
}

bool OnnxWriter::IsBounded(const OnnxSize& size) const {
  const uint32_t product = Fit(size).value_or(Formula()).product;
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    if ((product >> d & 1) != 0 && !dimensions_[d].bounded) return false;
  }
  return true;
}

std::string OnnxWriter::DimensionSize(size_t dimension) {
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    const auto axis = absl::c_find(input_shapes_[i], dimensions_[dimension].sizes);
    if (axis == input_shapes_[i].end()) continue;
    const int64_t at = axis - input_shapes_[i].begin();
    return Node("Shape", {model_.graph().input(static_cast<int>(i)).name()}, {{"start", at}, {"end", at + 1}});
  }
  return Fail(InvalidArgument("no input has the dimension ", dimensions_[dimension].name));
}

std::string OnnxWriter::Size(const OnnxSize& size) {
  const std::optional<Formula> formula = Fit(size);
  if (!formula) {
    return Fail(InvalidArgument("a size that is ", absl::StrJoin(size, ", "),
                                " in the recordings is not a product of "
                                "dimensions, times a constant, plus a constant"));
  }
  std::string value;
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    if ((formula->product >> d & 1) == 0) continue;
    value = value.empty() ? DimensionSize(d) : Node("Mul", {value, DimensionSize(d)});
  }
  if (value.empty()) return Integers({formula->offset});
  if (formula->factor != 1) value = Node("Mul", {value, Integers({formula->factor})});
  return formula->offset == 0 ? value : Node("Add", {value, Integers({formula->offset})});
}

std::string OnnxWriter::Shape(absl::Span<const OnnxSize> sizes) {
  std::vector<int64_t> fixed;
  for (const OnnxSize& size : sizes) fixed.push_back(size[0]);
  if (absl::c_all_of(sizes, IsFixed)) return Integers(fixed);
  Names parts;
  for (const OnnxSize& size : sizes) parts.push_back(Size(size));
  return parts.size() == 1 ? parts[0] : Node("Concat", parts, {{"axis", 0}});
}

std::string OnnxWriter::Scalar(const OnnxSize& size, DType dtype) {
  if (IsFixed(size)) return Number(dtype, static_cast<double>(size[0]));
  return Node("Cast", {Node("Squeeze", {Size(size), Integers({0})})}, {{"to", OnnxType(dtype)}});
}

absl::Status OnnxWriter::Write(const std::string& path, uint64_t max_bytes) {
  WEFT_RETURN_IF_ERROR(status_);
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("weft");
  model_.add_opset_import()->set_version(kOperatorSet);
  model_.mutable_graph()->set_name("main");
  uint64_t bytes = 0;
  for (const NamedTensor& weight : weights_) bytes += weight.tensor.type.bytes();
  const std::string data = path + "_data";
  std::optional<NewFile> external;
  if (bytes > max_bytes) {
    WEFT_ASSIGN_OR_RETURN(NewFile created, NewFile::Create(data));
    external.emplace(std::move(created));
  }
  size_t offset = 0;
  for (const auto& [name, tensor] : weights_) {
    onnx::Tensor* const to = model_.mutable_graph()->add_initializer();
    to->mutable_dims()->Add(tensor.type.shape.dims().begin(), tensor.type.shape.dims().end());
    to->set_data_type(OnnxType(tensor.type.dtype));
    to->set_name(name);
    const absl::string_view contents(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
    if (!external || contents.size() < kMinExternalBytes) {
      to->set_raw_data(contents.data(), contents.size());
      continue;
    }
    const std::string gap((kPage - offset % kPage) % kPage, '\0');
    WEFT_RETURN_IF_ERROR(external->Append(gap));
    WEFT_RETURN_IF_ERROR(external->Append(contents));
    to->set_data_location(onnx::Tensor::EXTERNAL);
    const auto add = [&](const char* key, const std::string& value) {
      onnx::Entry* const entry = to->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", data.substr(data.rfind('/') + 1));
    add("offset", absl::StrCat(offset + gap.size()));
    add("length", absl::StrCat(contents.size()));
    offset += gap.size() + contents.size();
  }
  if (external) WEFT_RETURN_IF_ERROR(external->Commit());
  std::string message;
  if (!model_.SerializeToString(&message)) return InvalidArgument(path, ": the model has more than 2 GiB");
  return WriteFile(path, {message});
}

}  // namespace weft
