// Reads any bytes as an ONNX model, and records it with inputs of small sizes.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/formats/onnx/onnx.pb.h"
#include "weft/formats/onnx/onnx_model.h"
#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

// A graph that is built one node after the other.
struct Builder {
  onnx::Model model;

  explicit Builder(int64_t opset) {
    model.set_ir_version(10);
    model.add_opset_import()->set_version(opset);
  }
  void AddPort(onnx::ValueInfo* port, const std::string& name, int type, const std::vector<int64_t>& sizes) {
    port->set_name(name);
    onnx::Type::Tensor* const tensor = port->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    for (int64_t size : sizes) {
      onnx::Shape::Dimension* const dim = tensor->mutable_shape()->add_dim();
      size > 0 ? dim->set_dim_value(size) : dim->set_dim_param("n");
    }
  }
  onnx::Node* Add(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::Node* const node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }
  void SetInt(onnx::Node* node, const std::string& name, int64_t value) {
    onnx::Attribute* const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::Attribute::INT);
    attribute->set_i(value);
  }
  void Integers(const std::string& name, const std::vector<int64_t>& values) {
    onnx::Tensor* const tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::Tensor::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t value : values) tensor->add_int64_data(value);
  }
  void Floats(const std::string& name, const std::vector<int64_t>& sizes) {
    onnx::Tensor* const tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::Tensor::FLOAT);
    size_t elements = 1;
    for (int64_t size : sizes) {
      tensor->add_dims(size);
      elements *= static_cast<size_t>(size);
    }
    tensor->set_raw_data(std::string(4 * elements, '\1'));
  }
};

// Shapes that are computed while recording.
std::string Shapes() {
  Builder b(17);
  b.AddPort(b.model.mutable_graph()->add_input(), "x", onnx::Tensor::FLOAT, {0, 4});
  b.Integers("one", {1});
  b.Integers("minus", {-1});
  b.Integers("far", {INT64_MAX});
  b.Floats("w", {4, 3});
  b.Add("Shape", {"x"}, "shape");
  b.SetInt(b.Add("Gather", {"shape", "one"}, "width"), "axis", 0);
  b.SetInt(b.Add("Concat", {"width", "minus"}, "wanted"), "axis", 0);
  b.Add("Reshape", {"x", "wanted"}, "turned");
  b.Add("Slice", {"turned", "one", "far", "minus"}, "cut");
  b.Add("Transpose", {"cut"}, "back");
  b.Add("MatMul", {"back", "w"}, "y");
  b.AddPort(b.model.mutable_graph()->add_output(), "y", onnx::Tensor::FLOAT, {0, 3});
  return b.model.SerializeAsString();
}

// A function, a branch and a convolution.
std::string Structure() {
  Builder b(20);
  b.AddPort(b.model.mutable_graph()->add_input(), "x", onnx::Tensor::FLOAT, {1, 2, 4, 4});
  b.AddPort(b.model.mutable_graph()->add_input(), "c", onnx::Tensor::BOOL, {1});
  b.Floats("w", {2, 1, 3, 3});
  onnx::Node* const conv = b.Add("Conv", {"x", "w"}, "z");
  b.SetInt(conv, "group", 2);
  onnx::Attribute* const pads = conv->add_attribute();
  pads->set_name("pads");
  pads->set_type(onnx::Attribute::INTS);
  for (int i = 0; i < 4; ++i) pads->add_ints(1);
  b.Add("Twice", {"z"}, "t")->set_domain("own");
  onnx::Node* const choice = b.Add("If", {"c"}, "y");
  for (const char* const name : {"then_branch", "else_branch"}) {
    onnx::Attribute* const branch = choice->add_attribute();
    branch->set_name(name);
    branch->set_type(onnx::Attribute::GRAPH);
    onnx::Node* const node = branch->mutable_g()->add_node();
    node->set_op_type(name[0] == 't' ? "Tanh" : "Neg");
    node->add_input("t");
    node->add_output(absl::StrCat(name, "_y"));
    branch->mutable_g()->add_output()->set_name(absl::StrCat(name, "_y"));
  }
  b.AddPort(b.model.mutable_graph()->add_output(), "y", onnx::Tensor::FLOAT, {1, 2, 4, 4});
  onnx::Function* const twice = b.model.add_functions();
  twice->set_name("Twice");
  twice->set_domain("own");
  twice->add_input("a");
  twice->add_output("b");
  onnx::Node* const add = twice->add_node();
  add->set_op_type("Add");
  for (int i = 0; i < 2; ++i) add->add_input("a");
  add->add_output("b");
  return b.model.SerializeAsString();
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() { return {Shapes(), Structure()}; }

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto model = weft::OnnxModel::Parse(bytes, "/nonexistent");
  weft::accepted = false;
  if (!model.ok()) return 0;
  weft::Tape tape;
  std::vector<weft::OnnxInput> inputs;
  for (const weft::OnnxPort& port : model->inputs()) {
    weft::Shape shape;
    for (const auto& each : port.sizes) shape.Append(each.name.empty() ? each.size : 3);
    inputs.push_back({port.name, tape.Input(port.name, {port.dtype, shape})});
  }
  weft::accepted = model->Record(&tape, inputs).ok();
  return 0;
}
