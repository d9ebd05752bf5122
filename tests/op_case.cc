#include "weft/tests/op_case.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/tests/parse_shape.h"

namespace weft {
namespace {

uint32_t Index(ValueId id) { return static_cast<uint32_t>(id); }

OpCase Recorded(const OpDef& op, const OpExample& example, TypeSpan types) {
  OpCase c;
  c.inputs = RecordInputs(c.tape.get(), types, op.writes, example.below);
  for (size_t i = 0; i < types.size(); ++i) {
    c.values.push_back(RandomBuffer(types[i], StableHash(op.name) + i, example.low, example.high, example.below));
  }
  c.outputs = example.record != nullptr ? example.record(c.inputs) : c.tape->Record(op, {}, c.inputs);
  return c;
}

}  // namespace

absl::StatusOr<Types> ParseTypes(const char* text, DType dtype) {
  Types types;
  for (absl::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const size_t bracket = std::min(part.find('['), part.size());
    TensorType type = {.dtype = dtype};
    const std::optional<Shape> shape = ParseShape(part.substr(bracket));
    if (!shape.has_value() || (bracket > 0 && !ParseDType(part.substr(0, bracket), &type.dtype))) {
      return InvalidArgument("'", part, "' is no type");
    }
    type.shape = *shape;
    types.push_back(type);
  }
  return types;
}

bool HasFreeDType(const OpExample& example) {
  for (absl::string_view part : absl::StrSplit(example.in, ' ', absl::SkipEmpty())) {
    if (part[0] == '[') return true;
  }
  return false;
}

VarList RecordInputs(Tape* tape, TypeSpan types, int states, int64_t below) {
  VarList inputs;
  for (const TensorType& type : types) {
    const int i = static_cast<int>(inputs.size());
    const std::string name = absl::StrCat("input", i);
    const InputBounds bounds = {.below = type.dtype == kI32 ? below : 0};
    inputs.push_back(i < states ? tape->State(name, type, Zeros()) : tape->Input(name, type, bounds));
  }
  return inputs;
}

Buffer RandomBuffer(const TensorType& type, uint64_t seed, double low, double high, int64_t below) {
  const RandomStream random = {.seed = seed};
  Buffer buffer(type);
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    const uint64_t index = static_cast<uint64_t>(i);
    buffer.Set(i, IsFloat(type.dtype) ? low + (high - low) * random.Uniform(index)
                                      : static_cast<double>(random.Below(type.dtype == kBool ? 2 : below, index)));
  }
  return buffer;
}

absl::StatusOr<OpCase> MakeCase(const OpDef& op, const OpExample& example, DType dtype) {
  WEFT_ASSIGN_OR_RETURN(const Types types, ParseTypes(example.in, dtype));
  return Recorded(op, example, types);
}

absl::StatusOr<OpCase> MakeTwin(const OpDef& op, const OpExample& example) {
  WEFT_ASSIGN_OR_RETURN(Types types, ParseTypes(example.in, kF64));
  const auto is_bf16 = [](const TensorType& type) { return type.dtype == kBF16; };
  if (std::any_of(types.begin(), types.end(), is_bf16)) {
    for (TensorType& type : types) type.dtype = IsFloat(type.dtype) ? kF64 : type.dtype;
  }
  return Recorded(op, example, types);
}

absl::StatusOr<NodeCase> FindNode(const OpDef& op, const OpCase& c) {
  const Program& program = c.tape->program();
  const auto last =
      std::find_if(program.nodes.rbegin(), program.nodes.rend(), [&](const Node& n) { return n.op == &op; });
  if (last == program.nodes.rend()) {
    return absl::FailedPreconditionError(absl::StrCat("the example records no ", op.name));
  }
  std::vector<std::optional<Buffer>> values(program.values.size());
  for (size_t i = 0; i < c.inputs.size(); ++i) values[Index(c.inputs[i].id)] = c.values[i];
  for (const Node& node : program.nodes) {
    if (node.op == &kInputOp || node.op == &kParameterOp) continue;
    if (node.op == &kConstantOp) {
      const ConstantData& constant = program.constants[node.attrs.as<SourceAttrs>().index];
      values[Index(node.first_output)] = Buffer(Tensor{constant.type, const_cast<std::byte*>(constant.bytes->data())});
      continue;
    }
    NodeCase this_node = {.op = node.op,
                          .attrs = node.attrs,
                          .input_types = program.InputTypes(node),
                          .output_types = program.OutputTypes(node)};
    for (const ValueId id : node.inputs) this_node.inputs.push_back(*values[Index(id)]);
    if (&node == &*last) return this_node;
    std::vector<Buffer> outputs = EvaluateNode(this_node);
    for (uint32_t i = 0; i < node.output_count; ++i) values[Index(node.output(i))] = std::move(outputs[i]);
  }
  return absl::InternalError("the node was there");
}

// Evaluates the node of an op without kernels, by the nodes with which the compiler replaces it.
std::vector<Buffer> EvaluateLowered(const NodeCase& node) {
  Tape tape;
  const VarList inputs = RecordInputs(&tape, node.input_types, /*states=*/0, /*below=*/0);
  VarList outputs = tape.Record(*node.op, node.attrs, inputs);
  const auto compiled = CompiledCase::Make(tape, outputs, inputs);
  WEFT_CHECK(compiled.ok());
  const auto values = (*compiled)->Run(node.inputs);
  WEFT_CHECK(values.ok());
  return *values;
}

std::vector<Buffer> EvaluateNode(const NodeCase& node) {
  if (node.op->lower != nullptr) return EvaluateLowered(node);
  std::vector<Buffer> outputs;
  std::vector<Tensor> in, out;
  for (const Buffer& input : node.inputs) in.push_back(input.tensor());
  for (size_t i = 0; i < node.output_types.size(); ++i) {
    outputs.emplace_back(node.output_types[i], std::byte{0xee});
    const bool same_bytes = static_cast<int>(i) < node.op->writes || node.op->view;
    if (same_bytes) outputs[i].Set(in[i]);
    out.push_back(outputs[i].tensor());
    if (same_bytes) in[i].data = out[i].data;
  }
  if (!node.op->view) Evaluate(*node.op, node.attrs, in, out, kExampleRandom);
  return outputs;
}

absl::StatusOr<std::unique_ptr<CompiledCase>> CompiledCase::Make(const Tape& tape, const VarList& fetch, VarSpan inputs,
                                                                 int threads, bool raise) {
  const PassSet without = raise ? PassSet() : PassSet({Pass::kRaise});
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = fetch, .without = without}));
  std::unique_ptr<CompiledCase> made(new CompiledCase(tape, graph, fetch, inputs));
  made->runner_ = std::make_unique<Runner>(graph, &made->parameters_, RunnerOptions{.threads = threads});
  WEFT_RETURN_IF_ERROR(made->runner_->status());
  return made;
}

absl::StatusOr<std::vector<Buffer>> CompiledCase::Run(absl::Span<const Buffer> values) {
  std::vector<FeedPair> feeds;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (tape_.program().producer(inputs_[i].id).op == &kInputOp) {
      feeds.emplace_back(inputs_[i], values[i].tensor());
      continue;
    }
    const absl::StatusOr<Tensor> state = parameters_.Find(tape_.ParameterName(inputs_[i]));
    if (!state.ok()) continue;  // the graph doesn't need it
    std::memcpy(state->data, values[i].data(), values[i].type().bytes());
  }
  parameters_.set_step(kExampleRandom.step);
  WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner_->Run(feeds));
  std::vector<Buffer> fetched;
  for (const Var var : fetch_) fetched.emplace_back(outputs[var]);
  return fetched;
}

}  // namespace weft
