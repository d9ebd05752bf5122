#include "weft/formats/onnx/onnx_recorder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "weft/formats/onnx/onnx_tensor.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

constexpr int kMaxDepth = 16;                         // of functions and branches
constexpr int64_t kMaxNodes = 1'000'000;              // of a model, and of the tape
constexpr int64_t kMaxFolded = 1 << 22;               // elements that a node computes while recording
constexpr int64_t kMaxFoldedInAll = 16 * kMaxFolded;  // elements of all such nodes

// Runs a tape that needs no inputs, and returns copies of the values.
absl::StatusOr<std::vector<OnnxConstant>> Evaluate(const Tape& tape, VarSpan fetch) {
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = {fetch.begin(), fetch.end()}}));
  Parameters parameters;
  Runner runner(graph, &parameters, {.threads = 1});
  WEFT_ASSIGN_OR_RETURN(const class Outputs run, runner.Run({}));
  std::vector<OnnxConstant> values;
  for (Var each : fetch) {
    const Tensor tensor = run[each];
    const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.type.bytes());
    bytes->resize(bytes->size() + 1);  // so that there is a pointer
    values.push_back({.tensor = {tensor.type, bytes->data()}, .wide = {}, .bytes = bytes});
  }
  return values;
}

// The same node in f64 shows whether integers have wrapped around.
absl::Status CheckFits(const onnx::Node& node, const OnnxOp& op, const std::vector<OnnxValue>& inputs,
                       const std::vector<OnnxConstant>& results) {
  Tape tape;
  std::vector<OnnxValue> wide;
  for (const OnnxValue& input : inputs) {
    const bool is_integer = input.known != nullptr && input.known->tensor.type.dtype == kI32;
    wide.push_back({.var = is_integer ? Cast(tape.Constant(input.known->tensor), kF64) : Var(), .known = input.known});
  }
  const absl::StatusOr<VarList> vars = op.build(OnnxNode(node, op, &tape, wide));
  if (!vars.ok() || !tape.status().ok()) return absl::OkStatus();  // the op has no such form
  WEFT_ASSIGN_OR_RETURN(const std::vector<OnnxConstant> exact, Evaluate(tape, *vars));
  for (size_t i = 0; i < exact.size(); ++i) {
    const Tensor got = results[i].tensor, wanted = exact[i].tensor;
    if (got.type.dtype != kI32 || wanted.type.dtype != kF64) continue;
    for (int64_t k = 0; k < got.type.shape.elements(); ++k) {
      const double value = wanted.as<double>()[k];
      if (std::isfinite(value) && std::trunc(value) != got.as<int32_t>()[k]) {
        return InvalidArgument("its result ", value, " does not fit 32 bits");
      }
    }
  }
  return absl::OkStatus();
}

bool IsNarrow(int type) {
  constexpr int kNarrow[] = {onnx::Tensor::INT8, onnx::Tensor::UINT8, onnx::Tensor::INT16, onnx::Tensor::UINT16};
  return absl::c_linear_search(kNarrow, type);
}

// Returns the type of a node's integers: that of the first input of integers, if the op computes with them.
int ResultType(const OnnxNode& node, const OnnxOp& op) {
  if (node.HasAttribute("to")) return static_cast<int>(node.Int("to", 0));
  for (size_t i = 0; i < node.input_count() && op.integers != OnnxIntegers::kExact; ++i) {
    if (node.has(i) && node.value(i).tensor_type().dtype == kI32) return node.value(i).type;
  }
  return 0;
}

// Reads the attributes of a node Constant.
absl::StatusOr<OnnxConstant> ConstantOf(const onnx::Node& node) {
  if (node.attribute_size() != 1) return InvalidArgument("it has ", node.attribute_size(), " attributes, not 1");
  const onnx::Attribute& attribute = node.attribute(0);
  onnx::Tensor tensor = attribute.t();
  const auto set = [&](onnx::Tensor::DataType type, const auto& from, auto* to, bool is_vector) {
    tensor.set_data_type(type);
    if (is_vector) tensor.add_dims(from.size());
    to->CopyFrom(from);
  };
  if (attribute.name() == "value_int") tensor.add_int64_data(attribute.i());
  if (attribute.name() == "value_int") tensor.set_data_type(onnx::Tensor::INT64);
  if (attribute.name() == "value_float") tensor.add_float_data(attribute.f());
  if (attribute.name() == "value_float") tensor.set_data_type(onnx::Tensor::FLOAT);
  if (attribute.name() == "value_ints") set(onnx::Tensor::INT64, attribute.ints(), tensor.mutable_int64_data(), true);
  if (attribute.name() == "value_floats") {
    set(onnx::Tensor::FLOAT, attribute.floats(), tensor.mutable_float_data(), true);
  }
  return ReadOnnxTensor(tensor);
}

}  // namespace

OnnxValue* OnnxFrame::Find(const std::string& name) {
  const auto found = values.find(name);
  if (found != values.end()) return &found->second;
  return outer != nullptr ? outer->Find(name) : nullptr;
}

absl::Status OnnxRecorder::Record(const google::protobuf::RepeatedPtrField<onnx::Node>& nodes, OnnxFrame* frame) {
  if (depth_ >= kMaxDepth) return InvalidArgument("functions and branches are nested more than ", kMaxDepth, " deep");
  ++depth_;
  const auto leave = absl::MakeCleanup([&] { --depth_; });
  for (const onnx::Node& node : nodes) {
    const Scope scope(tape_, node.name(), Scope::kNoNames);
    WEFT_RETURN_IF_ERROR(Annotate(RecordOne(node, frame), absl::StrCat(node.op_type(), " '", node.name(), "'")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Var> OnnxRecorder::VarOf(const std::string& name, OnnxFrame* frame) {
  OnnxValue* const value = frame->Find(name);
  if (value == nullptr) return InvalidArgument("no node computes the value '", name, "'");
  static constexpr OnnxOp kRead = {.name = "Identity", .integers = OnnxIntegers::kExact};
  const OnnxNode node(onnx::Node::default_instance(), kRead, tape_, {*value});
  value->var = node.in(0);
  WEFT_RETURN_IF_ERROR(tape_->status());
  return value->var;
}

absl::Status OnnxRecorder::RecordOne(const onnx::Node& node, OnnxFrame* frame) {
  if (++recorded_ > kMaxNodes || tape_->program().nodes.size() > kMaxNodes) {
    return InvalidArgument("the model has more than ", kMaxNodes, " nodes");
  }
  absl::StatusOr<Values> outputs;
  if (frame->attributes != nullptr) {  // a node of a function
    onnx::Node bound = node;
    bound.clear_attribute();
    for (const onnx::Attribute& each : node.attribute()) {
      const auto found = frame->attributes->find(each.ref_attr_name());
      if (!each.ref_attr_name().empty() && found == frame->attributes->end()) continue;  // the caller leaves it out
      *bound.add_attribute() = each.ref_attr_name().empty() ? each : found->second;
      bound.mutable_attribute()->rbegin()->set_name(each.name());
    }
    outputs = Outputs(bound, frame);
  } else {
    outputs = Outputs(node, frame);
  }
  if (!outputs.ok()) return outputs.status();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= outputs->size()) {
      return absl::UnimplementedError(absl::StrCat("its output ", i, " is not computed"));
    }
    if (!frame->values.emplace(node.output(i), (*outputs)[static_cast<size_t>(i)]).second) {
      return InvalidArgument("another node computes '", node.output(i), "', too");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::Outputs(const onnx::Node& node, OnnxFrame* frame) {
  for (const onnx::Function& function : model_.functions()) {
    if (function.name() == node.op_type() && function.domain() == node.domain()) return Call(node, function, frame);
  }
  const bool is_own = node.domain().empty() || node.domain() == "ai.onnx";
  if (is_own && node.op_type() == "If") return If(node, frame);
  if (is_own && node.op_type() == "Constant") {
    WEFT_ASSIGN_OR_RETURN(OnnxConstant constant, ConstantOf(node));
    return Values{{.known = std::make_shared<OnnxConstant>(std::move(constant))}};
  }
  const OnnxOp* const op = FindOnnxOp(node.domain(), node.op_type());
  if (op == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("Weft reads no such op", is_own ? "" : absl::StrCat(" of the domain '", node.domain(), "'")));
  }
  if (opset_ < op->since) {
    return absl::UnimplementedError(absl::StrCat("opset ", opset_, " gives the op another meaning than ", op->since));
  }
  Values inputs;
  bool is_constant = true;
  for (const std::string& name : node.input()) {
    const OnnxValue* const value = name.empty() ? nullptr : frame->Find(name);
    if (!name.empty() && value == nullptr) return InvalidArgument("no earlier node computes its input '", name, "'");
    inputs.push_back(value == nullptr ? OnnxValue() : *value);
    is_constant = is_constant && (value == nullptr || !value->is_there() || value->is_constant());
  }
  if (is_constant || op->of_shapes) {
    WEFT_ASSIGN_OR_RETURN(Values folded, Fold(node, *op, inputs));
    if (!folded.empty()) return folded;
  }
  absl::StatusOr<Values> outputs = Build(node, *op, tape_, &inputs);
  for (int i = 0; i < node.input_size() && outputs.ok(); ++i) {
    if (!node.input(i).empty()) frame->Find(node.input(i))->var = inputs[static_cast<size_t>(i)].var;
  }
  return outputs;
}

absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::Build(const onnx::Node& proto, const OnnxOp& op, Tape* tape,
                                                         Values* inputs) {
  const OnnxNode node(proto, op, tape, *inputs);
  const OnnxResult result = op.build(node);
  WEFT_RETURN_IF_ERROR(tape->status());
  if (!result.ok()) return result.status();
  const int type = ResultType(node, op);
  WEFT_RETURN_IF_ERROR(node.CheckAttributes());
  Values outputs;
  for (Var each : *result) {
    const bool wraps = op.integers == OnnxIntegers::kWraps;
    outputs.push_back({.var = wraps ? WrapTo(each, type) : each, .type = each.dtype() == kI32 ? type : 0});
  }
  for (size_t i = 0; i < inputs->size(); ++i) (*inputs)[i] = node.value(i);
  return outputs;
}

absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::Fold(const onnx::Node& node, const OnnxOp& op,
                                                        const Values& inputs) {
  Tape tape;
  Values constants = inputs;
  for (size_t i = 0; i < inputs.size() && op.of_shapes; ++i) {
    if (inputs[i].is_there()) constants[i] = {.var = tape.Input(absl::StrCat("x", i), inputs[i].tensor_type())};
  }
  for (OnnxValue& each : constants) each.var = op.of_shapes ? each.var : Var();
  WEFT_ASSIGN_OR_RETURN(Values outputs, Build(node, op, &tape, &constants));
  int64_t elements = 0;
  bool is_narrow = false;
  VarList fetch;
  for (const Value& value : tape.program().values) {
    elements = std::min(elements + value.type.shape.elements(), kMaxFoldedInAll + 1);
  }
  if ((elements > kMaxFolded || folded_ + elements > kMaxFoldedInAll) && !op.of_shapes) return Values{};
  if (!op.of_shapes) folded_ += elements;
  for (const OnnxValue& each : outputs) {
    fetch.push_back(each.var);
    is_narrow = is_narrow || IsNarrow(each.type);
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<OnnxConstant> results, Evaluate(tape, fetch));
  if (op.integers == OnnxIntegers::kWraps && !is_narrow) {
    WEFT_RETURN_IF_ERROR(CheckFits(node, op, inputs, results));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {.known = std::make_shared<OnnxConstant>(std::move(results[i])), .type = outputs[i].type};
  }
  return outputs;
}

absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::Branch(const onnx::Node& node, const char* name, OnnxFrame* frame) {
  const auto found =
      absl::c_find_if(node.attribute(), [&](const onnx::Attribute& each) { return each.name() == name; });
  if (found == node.attribute().end()) return InvalidArgument("it has no ", name);
  OnnxFrame inner = {.outer = frame, .attributes = frame->attributes};
  for (const onnx::Tensor& tensor : found->g().initializer()) {
    WEFT_ASSIGN_OR_RETURN(OnnxConstant constant, ReadOnnxTensor(tensor));
    inner.values[tensor.name()] = {.known = std::make_shared<OnnxConstant>(std::move(constant)),
                                   .type = tensor.data_type()};
  }
  WEFT_RETURN_IF_ERROR(Record(found->g().node(), &inner));
  Values outputs;
  for (const onnx::ValueInfo& output : found->g().output()) {
    const OnnxValue* const value = inner.Find(output.name());
    if (value == nullptr) return InvalidArgument("no node of ", name, " computes '", output.name(), "'");
    outputs.push_back(*value);
  }
  return outputs;
}

// If the condition is not known, both branches are recorded, and the condition selects among their results.
absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::If(const onnx::Node& node, OnnxFrame* frame) {
  const OnnxValue* const condition = node.input_size() == 1 ? frame->Find(node.input(0)) : nullptr;
  if (condition == nullptr) return InvalidArgument("it has no condition");
  const TensorType type = condition->tensor_type();
  if (type.dtype != kBool || type.shape.elements() != 1) return InvalidArgument("its condition is ", ToString(type));
  if (condition->is_constant()) {
    return Branch(node, *condition->known->tensor.as<bool>() ? "then_branch" : "else_branch", frame);
  }
  const Var mask = Reshape(condition->var, {});
  WEFT_ASSIGN_OR_RETURN(Values yes, Branch(node, "then_branch", frame));
  WEFT_ASSIGN_OR_RETURN(Values no, Branch(node, "else_branch", frame));
  if (yes.size() != no.size()) return InvalidArgument("its branches differ in their number of outputs");
  OnnxFrame both = {.outer = nullptr, .values = {}};
  for (size_t i = 0; i < yes.size(); ++i) {
    both.values["yes"] = yes[i];
    both.values["no"] = no[i];
    WEFT_ASSIGN_OR_RETURN(const Var a, VarOf("yes", &both));
    WEFT_ASSIGN_OR_RETURN(const Var b, VarOf("no", &both));
    if (a.type() != b.type()) {
      return absl::UnimplementedError(absl::StrCat("its branches give ", ToString(a.type()), " and ",
                                                   ToString(b.type()), ", and the condition is not known"));
    }
    yes[i] = {.var = Where(mask, a, b), .type = yes[i].type};
  }
  return yes;
}

absl::StatusOr<OnnxRecorder::Values> OnnxRecorder::Call(const onnx::Node& node, const onnx::Function& function,
                                                        OnnxFrame* frame) {
  absl::flat_hash_map<std::string, onnx::Attribute> attributes;
  for (const onnx::Attribute& each : function.attribute_proto()) attributes[each.name()] = each;
  for (const onnx::Attribute& each : node.attribute()) attributes[each.name()] = each;
  if (node.input_size() > function.input_size()) return InvalidArgument("the function has fewer inputs than the node");
  OnnxFrame inner = {.outer = nullptr, .values = {}, .attributes = &attributes};
  for (int i = 0; i < function.input_size(); ++i) {
    OnnxValue& input = inner.values[function.input(i)];  // stays empty if the caller leaves it out
    if (i >= node.input_size() || node.input(i).empty()) continue;
    const OnnxValue* const value = frame->Find(node.input(i));
    if (value == nullptr) return InvalidArgument("no earlier node computes its input '", node.input(i), "'");
    input = *value;
  }
  WEFT_RETURN_IF_ERROR(Record(function.node(), &inner));
  Values outputs;
  for (const std::string& name : function.output()) {
    const OnnxValue* const value = inner.Find(name);
    if (value == nullptr) return InvalidArgument("no node of the function computes '", name, "'");
    outputs.push_back(*value);
  }
  return outputs;
}

}  // namespace weft
