// The tape checks each node before it records it. After the first error, the tape records nothing more.
#include "weft/core/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"

namespace weft {

Tape::Tape() {
  static std::atomic<uint64_t> next_id{1};
  id_ = next_id++;
  scope_ids_[""] = ScopeId{0};
  poison_ = ValueId{0};
  program_.values.push_back({.type = {kF32, {1, 1, 1, 1, 1, 1}}});
}

Tape::Tape(const Program& program) : Tape() {
  program_.scopes = program.scopes;
  program_.inputs = program.inputs;
  program_.parameters = program.parameters;
  program_.constants = program.constants;
  program_.streams = program.streams;
  const auto with_room = [](size_t count) { return count + count / 8 + 16; };  // for nodes that a pass adds
  program_.nodes.reserve(with_room(program.nodes.size()));
  program_.values.reserve(with_room(program.values.size()));
}

VarList Tape::Copy(const Program& from, const Node& node, VarSpan inputs) {
  scope_ = node.scope;
  absl::InlinedVector<ValueId, 4> ids;
  for (Var v : inputs) ids.push_back(v.id);
  const NodeId id = program_.Append(*node.op, node.attrs, ids, from.OutputTypes(node), node.scope);
  VarList outputs;
  for (ValueId output : program_.node(id).outputs()) outputs.push_back({this, output});
  return outputs;
}

Var Tape::Fail(const absl::Status& status) {
  if (!status_.ok() || status.ok()) return Poison();
  const std::string& scope = program_.scopes[scope_];
  const bool named = function_ == nullptr || absl::StartsWith(status.message(), absl::StrCat(function_, ":"));
  status_ = named ? status : Annotate(status, function_);
  if (!scope.empty()) status_ = absl::Status(status.code(), absl::StrCat(status_.message(), "; at ", scope));
  return Poison();
}

Var Tape::Input(absl::string_view name, TensorType type, InputBounds bounds) {
  if (!status_.ok()) return Poison();
  const bool bounded = bounds.below != 0;
  const char* problem = !type.shape.valid()                                   ? "not a shape"
                        : bounded && (type.dtype != kI32 || bounds.below < 0) ? "bounds are of i32, and positive"
                        : !names_.insert(absl::StrCat("input ", name)).second ? "another input has this name"
                                                                              : nullptr;
  if (problem != nullptr) return Fail(InvalidArgument("input '", name, "' ", ToString(type), ": ", problem));
  const SourceAttrs attrs = {.type = type, .index = static_cast<int32_t>(program_.inputs.size())};
  program_.inputs.push_back({std::string(name), type, bounds});
  return {this, program_.node(program_.Append(kInputOp, Attrs::Of(attrs), {}, {type}, scope_)).output(0)};
}

Var Tape::AddParameter(ParameterSpec spec) {
  if (!status_.ok()) return Poison();
  const bool constant = spec.initializer.kind == Initializer::Kind::kConstant;
  const char* problem = !spec.type.shape.valid()                 ? "not a shape"
                        : !IsFloat(spec.type.dtype) && !constant ? "only a constant can initialise it"
                        : !names_.insert(spec.name).second       ? "another parameter of this tape has this name"
                                                                 : nullptr;
  if (problem != nullptr) {
    return Fail(InvalidArgument("parameter '", spec.name, "' ", ToString(spec.type), ": ", problem));
  }
  const SourceAttrs attrs = {.type = spec.type, .index = static_cast<int32_t>(program_.parameters.size())};
  program_.parameters.push_back(std::move(spec));
  const Var var = {this,
                   program_.node(program_.Append(kParameterOp, Attrs::Of(attrs), {}, {attrs.type}, scope_)).output(0)};
  state_.insert(var.id);
  return var;
}

Var Tape::Parameter(absl::string_view name, TensorType type, Initializer initializer, DType least) {
  std::string full_name = absl::StrCat(name_prefix_, name);
  if (absl::string_view rest = full_name; !shared_name_.empty() && absl::ConsumePrefix(&rest, shared_name_)) {
    const Var shared = FindParameter(absl::StrCat(shared_source_, rest));
    if (!status_.ok() || shared.type() == type) return shared;
    return Fail(InvalidArgument("parameter '", full_name, "' ", ToString(type), " can't be '", shared_source_, rest,
                                "' ", ToString(shared.type())));
  }
  const bool trained = adaptation_ == nullptr || adaptation_->Trains(full_name);
  return AddParameter(
      {std::move(full_name), type, initializer, trained ? ParameterKind::kWeight : ParameterKind::kFrozen, least});
}

void Tape::ShareParameters(absl::string_view name, absl::string_view source) {
  shared_name_ = absl::StrCat(name, ".");
  shared_source_ = absl::StrCat(source, ".");
}

void Tape::Probe(absl::string_view name, Var value) {
  if (!status_.ok()) return;
  probes_.push_back({absl::StrCat(name_prefix_, name), value});
}

Var Tape::State(absl::string_view full_name, TensorType type, Initializer initializer, ParameterKind kind) {
  return AddParameter({std::string(full_name), type, initializer, kind});
}

Var Tape::Constant(const Tensor& tensor) {
  if (!tensor.type.shape.valid()) return Fail(InvalidArgument("constant ", ToString(tensor.type), ": not a shape"));
  if (!status_.ok()) return Poison();
  const SourceAttrs attrs = {.type = tensor.type, .index = static_cast<int32_t>(program_.constants.size())};
  program_.constants.push_back(
      {tensor.type, std::make_shared<const std::vector<std::byte>>(tensor.data, tensor.data + tensor.type.bytes())});
  return {this, program_.node(program_.Append(kConstantOp, Attrs::Of(attrs), {}, {tensor.type}, scope_)).output(0)};
}

VarList Tape::Once(const std::string& key, absl::FunctionRef<VarList()> record) {
  const auto found = once_.find(key);
  return found != once_.end() ? found->second : once_[key] = record();
}

absl::Status Tape::CheckInputs(const char* op, VarSpan inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].tape == this) continue;
    return InvalidArgument(op, ": input ", i, inputs[i].tape == nullptr ? " is an empty Var" : " is from another tape");
  }
  return absl::OkStatus();
}

absl::Status Tape::CheckWrites(const OpDef& op, VarSpan inputs) const {
  for (int i = 0; i < op.writes; ++i) {
    const ValueId id = inputs[i].id;
    if (!state_.contains(id)) {
      return InvalidArgument(op.name, ": input ", i, " ", ToString(inputs[i].type()),
                             " is to be written, but is no parameter or state");
    }
    for (int j = 0; j < i; ++j) {
      if (inputs[j].id != inputs[i].id) continue;
      return InvalidArgument(op.name, ": inputs ", j, " and ", i, " are one state, ", ToString(inputs[i].type()),
                             ", that it would write twice");
    }
  }
  return absl::OkStatus();
}

VarList Tape::Record(const OpDef& op, const Attrs& attrs, VarSpan inputs) {
  if (status_.ok()) Fail(CheckInputs(op.name, inputs));
  if (!status_.ok()) return VarList(std::max<size_t>(op.outputs, 1), Poison());
  Types input_types;
  absl::InlinedVector<ValueId, 4> ids;
  for (Var v : inputs) {
    input_types.push_back(v.type());
    ids.push_back(v.id);
  }
  absl::StatusOr<Types> types = op.infer(attrs, input_types);
  if (types.ok()) {
    const auto large = absl::c_find_if(*types, [](const TensorType& t) { return !t.shape.valid(); });
    if (large != types->end()) {
      types = ShapeError(op.name, absl::StrCat("the result ", ToString(*large), " is too large"), input_types);
    }
  }
  if (types.ok() && !op.view && op.lower == nullptr && !IsCall(op, input_types, *types) && &op != &kGradientOp &&
      &op != &kGroupOp) {
    const DType dtype = inputs.empty() ? types->front().dtype : input_types[0].dtype;
    types = ShapeError(op.name, absl::StrCat("not defined for ", Name(dtype)), input_types);
  }
  if (types.ok() && op.outputs != 0 && op.outputs != types->size()) {
    types = absl::InternalError(
        absl::StrCat(op.name, ": infer gives ", types->size(), " outputs, but OpDef::outputs is ", op.outputs));
  }
  Fail(types.ok() ? CheckWrites(op, inputs) : types.status());
  if (!status_.ok()) return VarList(std::max<size_t>(op.outputs, 1), Poison());
  const NodeId id = program_.Append(op, attrs, ids, *types, scope_);
  VarList outputs;
  for (ValueId output : program_.node(id).outputs()) outputs.push_back({this, output});
  for (int i = 0; i < op.writes; ++i) state_.insert(outputs[i].id);
  return outputs;
}

Var Tape::Group(VarSpan vars) { return Record(kGroupOp, {}, vars)[0]; }

VarList Tape::Gradient(Var loss, VarSpan wrt) {
  VarList inputs = {loss};
  inputs.insert(inputs.end(), wrt.begin(), wrt.end());
  if (status_.ok()) Fail(CheckInputs(kGradientOp.name, inputs));
  if (status_.ok() && (loss.shape().rank() != 0 || !IsFloat(loss.dtype()))) {
    Fail(InvalidArgument("gradient: the loss must be a float scalar, not ", ToString(loss.type())));
  }
  for (size_t i = 0; status_.ok() && i < wrt.size(); ++i) {
    if (IsFloat(wrt[i].dtype())) continue;
    Fail(InvalidArgument("gradient: by ", ToString(wrt[i].type()), ", which is not of floats"));
  }
  if (!status_.ok()) return VarList(wrt.size(), Poison());
  if (wrt.empty()) return {};
  return Record(kGradientOp, Attrs::Of(GradientAttrs()), inputs);
}

VarList Tape::Weights() const {
  VarList weights;
  for (const Node& node : program_.nodes) {
    if (node.op != &kParameterOp) continue;
    const bool weight = program_.parameter(node).kind == ParameterKind::kWeight;
    if (weight) weights.push_back({const_cast<Tape*>(this), node.output(0)});
  }
  return weights;
}

Var Tape::FindParameter(absl::string_view full_name) {
  for (const Node& node : program_.nodes) {
    if (node.op == &kParameterOp && program_.parameter(node).name == full_name) return {this, node.output(0)};
  }
  return Fail(InvalidArgument("no parameter '", full_name, "' was recorded before"));
}

const std::string& Tape::ParameterName(Var parameter) const {
  WEFT_CHECK(parameter.tape == this && program_.value(parameter.id).producer != kNoNode);
  const Node& node = program_.producer(parameter.id);
  WEFT_CHECK(node.op == &kParameterOp);
  return program_.parameter(node).name;
}

VarList CompositeAll(const char* function, VarSpan inputs, size_t outputs,
                     absl::FunctionRef<absl::StatusOr<VarList>()> body) {
  Tape* const tape = inputs.empty() ? nullptr : inputs[0].tape;
  if (tape == nullptr) CheckFailed(__FILE__, __LINE__, absl::StrCat(function, ": input 0 is an empty Var").c_str());
  const bool outermost = tape->function_ == nullptr;
  if (outermost) tape->function_ = function;
  if (tape->status_.ok()) tape->Fail(tape->CheckInputs(function, inputs));
  absl::StatusOr<VarList> results;
  if (tape->status_.ok()) {
    results = body();
    tape->Fail(results.status());
  }
  if (outermost) tape->function_ = nullptr;
  if (!tape->status_.ok()) return VarList(outputs, tape->Poison());
  WEFT_CHECK(results->size() == outputs);
  return *std::move(results);
}

Var Composite(const char* function, VarSpan inputs, absl::FunctionRef<absl::StatusOr<Var>()> body) {
  return CompositeAll(function, inputs, 1, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const Var result, body());
    return VarList{result};
  })[0];
}

Scope::Scope(Tape* tape, absl::string_view name, Naming naming)
    : tape_(tape), outer_(tape->scope_), outer_prefix_(tape->name_prefix_.size()) {
  const std::string& outer = tape->program_.scopes[outer_];
  const std::string path = name.empty() ? outer : outer.empty() ? std::string(name) : absl::StrCat(outer, "/", name);
  const auto [entry, added] =
      tape->scope_ids_.try_emplace(path, ScopeId{static_cast<uint32_t>(tape->program_.scopes.size())});
  if (added) tape->program_.scopes.push_back(path);
  tape->scope_ = entry->second;
  if (naming == kNames && !name.empty()) absl::StrAppend(&tape->name_prefix_, name, ".");
}

Scope::~Scope() {
  tape_->scope_ = outer_;
  tape_->name_prefix_.resize(outer_prefix_);
}

VarList RecordAll(const OpDef& op, VarSpan inputs, const Attrs& attrs) {
  const auto first = absl::c_find_if(inputs, [](Var v) { return v.tape != nullptr; });
  if (first == inputs.end()) {
    CheckFailed(__FILE__, __LINE__, absl::StrCat(op.name, ": all inputs are empty Vars").c_str());
  }
  return first->tape->Record(op, attrs, inputs);
}

Var Record(const OpDef& op, std::initializer_list<Var> inputs, const Attrs& attrs) {
  return RecordAll(op, inputs, attrs)[0];
}

}  // namespace weft
