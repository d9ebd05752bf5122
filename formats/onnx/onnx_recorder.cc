// Records the nodes of an ONNX graph on a tape. A node that depends only on constants and shapes is recorded on a tape
// of its own, which then runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "weft/formats/onnx/onnx_node.h"
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
  for (Var each : fetch) values.push_back(CopyToConstant(run[each]));
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

// In numbers that were moved from integers beyond i32, marks those that stand for such integers.
void MarkWide(OnnxConstant* moved) {
  using Limits = std::numeric_limits<int32_t>;
  if (moved->tensor.type.dtype != kI32) return;
  const absl::Span<const int32_t> nearest(moved->tensor.as<int32_t>(),
                                          static_cast<size_t>(moved->tensor.type.shape.elements()));
  const auto is_limit = [](int32_t each) { return each == Limits::min() || each == Limits::max(); };
  if (absl::c_none_of(nearest, is_limit)) return;
  for (int32_t each : nearest) moved->wide.push_back(is_limit(each) ? each * (int64_t{1} << 31) : each);
}

// Returns the type of a node's integers: the one that it casts to, or that of the first input of integers, if the op
// computes with them.
int ResultType(const OnnxNode& node, const OnnxOp& op) {
  if (node.HasAttribute("to")) return static_cast<int>(node.Int("to", 0));
  if (op.integers == OnnxIntegers::kLike) return node.value(1).type;
  for (size_t i = 0; i < node.input_count() && op.integers != OnnxIntegers::kExact; ++i) {
    if (node.has(i) && node.value(i).tensor_type().dtype == kI32) return node.value(i).type;
  }
  return 0;
}

// Reads the attributes of a node Constant.
absl::StatusOr<OnnxConstant> ConstantOf(const onnx::Node& node) {
  if (node.attribute_size() != 1) return InvalidArgument("it has ", node.attribute_size(), " attributes, not 1");
  const onnx::Attribute& attribute = node.attribute(0);
  const std::string& name = attribute.name();
  onnx::Tensor tensor = attribute.t();
  if (name == "value_int" || name == "value_ints") tensor.set_data_type(onnx::Tensor::INT64);
  if (name == "value_float" || name == "value_floats") tensor.set_data_type(onnx::Tensor::FLOAT);
  if (name == "value_int") tensor.add_int64_data(attribute.i());
  if (name == "value_float") tensor.add_float_data(attribute.f());
  if (name == "value_ints") *tensor.mutable_int64_data() = attribute.ints();
  if (name == "value_floats") *tensor.mutable_float_data() = attribute.floats();
  if (name == "value_ints" || name == "value_floats") tensor.add_dims(attribute.ints_size() + attribute.floats_size());
  return ReadOnnxTensor(tensor);
}

using Values = std::vector<OnnxValue>;

// The values of a graph or function by name. A branch of an If sees those of the graphs around it.
struct Frame {
  Frame* outer = nullptr;
  absl::flat_hash_map<std::string, OnnxValue> values = {};
  // In a function: the attributes that its nodes name by ref_attr_name.
  const absl::flat_hash_map<std::string, onnx::Attribute>* attributes = nullptr;

  OnnxValue* Find(const std::string& name) {
    const auto found = values.find(name);
    if (found != values.end()) return &found->second;
    return outer != nullptr ? outer->Find(name) : nullptr;
  }

  // Returns the inputs of a node.
  absl::StatusOr<Values> Inputs(const onnx::Node& node) {
    Values inputs;
    for (const std::string& name : node.input()) {
      const OnnxValue* const value = name.empty() ? nullptr : Find(name);
      if (!name.empty() && value == nullptr) return InvalidArgument("no earlier node computes its input '", name, "'");
      inputs.push_back(value == nullptr ? OnnxValue() : *value);
    }
    return inputs;
  }
};

class Recorder {
 public:
  Recorder(const onnx::Model& model, int opset, Tape* tape) : model_(model), opset_(opset), tape_(tape) {}

  // Records nodes and adds their outputs to the frame. Errors name the node.
  absl::Status Record(const google::protobuf::RepeatedPtrField<onnx::Node>& nodes, Frame* frame) {
    if (depth_ >= kMaxDepth) return InvalidArgument("functions and branches are nested more than ", kMaxDepth, " deep");
    ++depth_;
    const auto leave = absl::MakeCleanup([&] { --depth_; });
    for (const onnx::Node& node : nodes) {
      const Scope scope(tape_, node.name(), Scope::kNoNames);
      WEFT_RETURN_IF_ERROR(Annotate(RecordOne(node, frame), absl::StrCat(node.op_type(), " '", node.name(), "'")));
    }
    return absl::OkStatus();
  }

  // Returns the Var of a value, a constant included.
  absl::StatusOr<Var> VarOf(const OnnxValue& value) {
    static constexpr OnnxOp kRead = {.name = "Identity", .integers = OnnxIntegers::kExact};
    const Var var = OnnxNode(onnx::Node::default_instance(), kRead, tape_, {value}).in(0);
    WEFT_RETURN_IF_ERROR(tape_->status());
    return var;
  }

 private:
  absl::Status RecordOne(const onnx::Node& node, Frame* frame) {
    if (++recorded_ > kMaxNodes || tape_->program().nodes.size() > kMaxNodes) {
      return InvalidArgument("the model has more than ", kMaxNodes, " nodes");
    }
    onnx::Node bound;
    if (frame->attributes != nullptr) {  // a node of a function
      bound = node;
      bound.clear_attribute();
      for (const onnx::Attribute& each : node.attribute()) {
        const auto found = frame->attributes->find(each.ref_attr_name());
        if (!each.ref_attr_name().empty() && found == frame->attributes->end()) continue;  // the caller leaves it out
        *bound.add_attribute() = each.ref_attr_name().empty() ? each : found->second;
        bound.mutable_attribute()->rbegin()->set_name(each.name());
      }
    }
    WEFT_ASSIGN_OR_RETURN(const Values outputs, Outputs(frame->attributes != nullptr ? bound : node, frame));
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      if (static_cast<size_t>(i) >= outputs.size()) {
        return absl::UnimplementedError(absl::StrCat("its output ", i, " is not computed"));
      }
      if (!frame->values.emplace(node.output(i), outputs[static_cast<size_t>(i)]).second) {
        return InvalidArgument("another node computes '", node.output(i), "', too");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Values> Outputs(const onnx::Node& node, Frame* frame) {
    for (const onnx::Function& function : model_.functions()) {
      if (function.name() == node.op_type() && function.domain() == node.domain() &&
          function.overload() == node.overload()) {
        return Call(node, function, frame);
      }
    }
    const bool is_own = node.domain().empty() || node.domain() == "ai.onnx";
    if (is_own && node.op_type() == "If") return If(node, frame);
    if (is_own && node.op_type() == "Constant") {
      WEFT_ASSIGN_OR_RETURN(OnnxConstant constant, ConstantOf(node));
      const int type = node.attribute(0).t().data_type();  // 0 if the attribute has no tensor
      return Values{{.known = std::make_shared<OnnxConstant>(std::move(constant)), .type = type}};
    }
    const OnnxOp* const op = FindOnnxOp(node.domain(), node.op_type());
    if (op == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("Weft reads no such op", is_own ? "" : absl::StrCat(" of the domain '", node.domain(), "'")));
    }
    if (opset_ < op->since) {
      return absl::UnimplementedError(absl::StrCat("opset ", opset_, " gives the op another meaning than ", op->since));
    }
    WEFT_ASSIGN_OR_RETURN(Values inputs, frame->Inputs(node));
    const auto is_constant = [](const OnnxValue& value) { return !value.is_there() || value.is_constant(); };
    if (absl::c_all_of(inputs, is_constant) || op->of_shapes) {
      WEFT_ASSIGN_OR_RETURN(Values folded, Fold(node, *op, inputs));
      if (!folded.empty()) return folded;
    }
    absl::StatusOr<Values> outputs = Build(node, *op, tape_, &inputs);
    for (int i = 0; i < node.input_size() && outputs.ok(); ++i) {
      if (!node.input(i).empty()) frame->Find(node.input(i))->var = inputs[static_cast<size_t>(i)].var;
    }
    return outputs;
  }

  absl::StatusOr<Values> Build(const onnx::Node& proto, const OnnxOp& op, Tape* tape, Values* inputs) {
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

  absl::StatusOr<Values> Fold(const onnx::Node& node, const OnnxOp& op, const Values& inputs) {
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
      const absl::StatusOr<OnnxElement> element = OnnxElementOf(each.type);
      is_narrow = is_narrow || (element.ok() && element->is_narrow());
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<OnnxConstant> results, Evaluate(tape, fetch));
    if (op.integers == OnnxIntegers::kWraps && !is_narrow) {
      WEFT_RETURN_IF_ERROR(CheckFits(node, op, inputs, results));
    }
    const auto is_wide = [](const OnnxValue& each) { return each.known != nullptr && !each.known->wide.empty(); };
    const bool moves_wide = op.integers == OnnxIntegers::kMoves && absl::c_any_of(inputs, is_wide);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (moves_wide) MarkWide(&results[i]);
      outputs[i] = {.known = std::make_shared<OnnxConstant>(std::move(results[i])), .type = outputs[i].type};
    }
    return outputs;
  }

  absl::StatusOr<Values> Branch(const onnx::Node& node, const char* name, Frame* frame) {
    const auto found =
        absl::c_find_if(node.attribute(), [&](const onnx::Attribute& each) { return each.name() == name; });
    if (found == node.attribute().end()) return InvalidArgument("it has no ", name);
    Frame inner = {.outer = frame, .attributes = frame->attributes};
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
  absl::StatusOr<Values> If(const onnx::Node& node, Frame* frame) {
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
    for (size_t i = 0; i < yes.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const Var a, VarOf(yes[i]));
      WEFT_ASSIGN_OR_RETURN(const Var b, VarOf(no[i]));
      if (a.type() != b.type()) {
        return absl::UnimplementedError(absl::StrCat("its branches give ", ToString(a.type()), " and ",
                                                     ToString(b.type()), ", and the condition is not known"));
      }
      yes[i] = {.var = Where(mask, a, b), .type = yes[i].type};
    }
    return yes;
  }

  absl::StatusOr<Values> Call(const onnx::Node& node, const onnx::Function& function, Frame* frame) {
    absl::flat_hash_map<std::string, onnx::Attribute> attributes;
    for (const onnx::Attribute& each : function.attribute_proto()) attributes[each.name()] = each;
    for (const onnx::Attribute& each : node.attribute()) attributes[each.name()] = each;
    if (node.input_size() > function.input_size())
      return InvalidArgument("the function has fewer inputs than the node");
    Frame inner = {.attributes = &attributes};
    WEFT_ASSIGN_OR_RETURN(Values inputs, frame->Inputs(node));
    inputs.resize(static_cast<size_t>(function.input_size()));  // the others stay empty
    for (int i = 0; i < function.input_size(); ++i) inner.values[function.input(i)] = inputs[static_cast<size_t>(i)];
    WEFT_RETURN_IF_ERROR(Record(function.node(), &inner));
    Values outputs;
    for (const std::string& name : function.output()) {
      const OnnxValue* const value = inner.Find(name);
      if (value == nullptr) return InvalidArgument("no node of the function computes '", name, "'");
      outputs.push_back(*value);
    }
    return outputs;
  }

  const onnx::Model& model_;
  int opset_;
  Tape* tape_;
  int depth_ = 0;         // of functions and branches
  int64_t recorded_ = 0;  // nodes
  int64_t folded_ = 0;    // elements
};

}  // namespace

absl::StatusOr<VarList> RecordOnnxGraph(const onnx::Model& model, int opset, Tape* tape,
                                        absl::flat_hash_map<std::string, OnnxValue> values) {
  Frame frame = {.values = std::move(values)};
  Recorder recorder(model, opset, tape);
  WEFT_RETURN_IF_ERROR(recorder.Record(model.graph().node(), &frame));
  VarList outputs;
  for (const onnx::ValueInfo& output : model.graph().output()) {
    const OnnxValue* const value = frame.Find(output.name());
    if (value == nullptr) return InvalidArgument("no node computes the value '", output.name(), "'");
    WEFT_ASSIGN_OR_RETURN(outputs.emplace_back(), recorder.VarOf(*value));
  }
  return outputs;
}

}  // namespace weft
