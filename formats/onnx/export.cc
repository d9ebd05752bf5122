// The programs of all recordings are first brought to ops that have rows in export_ops.cc, then walked side by side.
#include "weft/formats/onnx/export.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/write_graph.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"

namespace weft {
namespace {

// Sizes of each dimension: in the first recording, in the one in which only this dimension changes, and in the last.
constexpr int64_t kSizes[][3] = {{2, 3, 5}, {7, 11, 19}, {13, 17, 23}, {29, 31, 37}};

absl::StatusOr<std::vector<OnnxDimension>> ChooseSizes(const std::vector<OnnxAxis>& axes) {
  if (axes.size() > std::size(kSizes)) return InvalidArgument("ONNX: more than ", std::size(kSizes), " dimensions");
  std::vector<OnnxDimension> dimensions;
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto& [name, limit] = axes[d];
    if (limit != 0 && limit < 4) return InvalidArgument("ONNX: ", name, " is at most ", limit, ", wanted at least 4");
    const int64_t last = limit != 0 ? limit : kSizes[d][2];
    const bool small = last <= kSizes[d][1];
    OnnxSize sizes(axes.size() + 2, small ? last - 2 : kSizes[d][0]);
    sizes[d + 1] = small ? last - 1 : kSizes[d][1];
    sizes.back() = last;
    dimensions.push_back({.name = name, .sizes = sizes, .bounded = limit != 0});
  }
  return dimensions;
}

// Returns one sum in place of a sum of sums along the same axis: how many sums are recorded depends on its size.
// Returns nothing for other sums.
VarList JoinSums(const Node& node, Var x) {
  const auto [axis, block] = node.attrs.as<BlockAttrs>();
  const Node& before = x.tape->program().producer(x.id);
  if (x.dim(axis) > block || before.op != &kSumBlocks || before.attrs.as<BlockAttrs>().axis != axis) return {};
  const Var from = {x.tape, before.inputs[0]};
  return {SumBlocks(from, axis, from.dim(axis))};
}

// Returns what replaces a node: nothing, if it stays. The first rewriting replaces ops as in mode kEval.
VarList Replacement(const Node& node, VarSpan inputs, bool first, Tape* tape) {
  const OpDef& op = *node.op;
  if (first) return op.in_eval != nullptr ? op.in_eval(node.attrs, inputs) : VarList();
  if (&op == &kSumBlocks) return JoinSums(node, inputs[0]);
  if (HasOnnxOp(op)) return {};
  if (op.elementary != nullptr) return op.elementary(node.attrs, inputs);
  tape->Fail(InvalidArgument("ONNX: the op ", op.name, " has neither a counterpart nor a spelling in smaller ops"));
  return {};
}

// Returns the program of the nodes that `outputs` need, with replacements. Sets `changed` unless all nodes stay.
absl::StatusOr<Program> Rewritten(const Program& from, bool first, std::vector<ValueId>* outputs, bool* changed) {
  std::vector<bool> live(from.nodes.size());
  for (const ValueId output : *outputs) live[from.value(output).producer] = true;
  for (size_t i = from.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const ValueId input : from.nodes[i].inputs) live[from.value(input).producer] = true;
  }
  Tape tape(from);
  std::vector<Var> values(from.values.size());
  *changed = first || absl::c_linear_search(live, false);
  for (size_t i = 0; i < from.nodes.size(); ++i) {
    if (!live[i]) continue;
    const Node& node = from.nodes[i];
    VarList inputs;
    for (const ValueId input : node.inputs) inputs.push_back(values[input]);
    tape.SetScope(node.scope);
    VarList results = Replacement(node, inputs, first, &tape);
    WEFT_RETURN_IF_ERROR(tape.status());
    *changed = *changed || !results.empty();
    if (results.empty()) results = tape.Copy(from, node, inputs);
    for (uint32_t k = 0; k < node.output_count && k < results.size(); ++k) values[node.output(k)] = results[k];
  }
  for (ValueId& output : *outputs) output = values[output].id;
  return std::move(tape).TakeProgram();
}

// Checks that two recordings have the same nodes, and attributes that differ only where export_ops.cc expects it.
absl::Status CheckAlike(const Program& first, const Program& other) {
  const auto alike = [](const Node& a, const Node& b) { return a.op == b.op && a.inputs == b.inputs; };
  const auto [a, b] =
      std::mismatch(first.nodes.begin(), first.nodes.end(), other.nodes.begin(), other.nodes.end(), alike);
  if (a != first.nodes.end() || b != other.nodes.end()) {
    const bool in_first = a != first.nodes.end();
    const Node& node = in_first ? *a : *b;
    return InvalidArgument("ONNX: the program has other nodes at other sizes, from the op ", node.op->name, " at ",
                           (in_first ? first : other).scope(node), " on");
  }
  for (size_t i = 0; i < first.nodes.size(); ++i) {
    const Node& node = first.nodes[i];
    const AttrOps& ops = node.op->attrs;
    const Attrs& attrs = other.nodes[i].attrs;
    if (ops.equal == nullptr || AttrsMayDiffer(*node.op) || ops.equal(node.attrs, attrs)) continue;
    return InvalidArgument("ONNX: the attributes of the op ", node.op->name, " at ", first.scope(node),
                           " differ between sizes: ", ops.print(node.attrs), " and ", ops.print(attrs));
  }
  return absl::OkStatus();
}

struct Recordings {
  std::vector<Program> programs;
  std::vector<std::string> names;  // of the outputs
  std::vector<ValueId> outputs;    // the same in all programs
};

absl::StatusOr<Recordings> RecordAt(const std::vector<OnnxDimension>& dimensions, OnnxRecord record) {
  Recordings result;
  for (size_t i = 0; i < (dimensions.empty() ? 1 : dimensions[0].sizes.size()); ++i) {
    Tape tape;
    std::vector<int64_t> sizes;
    for (const OnnxDimension& dimension : dimensions) sizes.push_back(dimension.sizes[i]);
    const OnnxOutputs outputs = record(&tape, sizes);
    WEFT_RETURN_IF_ERROR(tape.status());
    result.names.clear();
    result.outputs.clear();
    for (const auto& [name, value] : outputs) {
      result.names.push_back(name);
      result.outputs.push_back(value.id);
    }
    Program program = std::move(tape).TakeProgram();
    bool changed = true;
    for (bool first = true; changed; first = false) {
      WEFT_ASSIGN_OR_RETURN(program, Rewritten(program, first, &result.outputs, &changed));
    }
    result.programs.push_back(std::move(program));
    WEFT_RETURN_IF_ERROR(CheckAlike(result.programs[0], result.programs.back()));
  }
  return result;
}

// Declares the inputs and adds the weights that the program reads.
absl::Status AddSources(absl::Span<const Program> recordings, absl::Span<const NamedTensor> weights,
                        OnnxWriter* writer) {
  for (size_t i = 0; i < recordings[0].inputs.size(); ++i) {
    const auto& [name, type, bounds] = recordings[0].inputs[i];
    OnnxSizes shape(static_cast<size_t>(type.shape.rank()));
    for (const Program& each : recordings) {
      for (size_t axis = 0; axis < shape.size(); ++axis) shape[axis].push_back(each.inputs[i].type.shape.dims()[axis]);
    }
    writer->AddInput(name, type.dtype == kI32 ? onnx::Tensor::INT64 : OnnxType(type.dtype), shape);
  }
  for (const Node& node : recordings[0].nodes) {
    if (node.op != &kParameterOp) continue;
    const ParameterSpec& spec = recordings[0].parameter(node);
    const NamedTensor* const found = FindRow(weights, spec.name);
    if (found == nullptr || found->tensor.type != spec.type) {
      return InvalidArgument("ONNX: there is no value ", ToString(spec.type), " of the parameter '", spec.name, "'");
    }
    writer->AddWeight(*found);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportOnnx(const std::string& path, const std::vector<OnnxAxis>& dimensions, OnnxRecord record,
                        absl::Span<const NamedTensor> weights, uint64_t max_bytes) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<OnnxDimension> sizes, ChooseSizes(dimensions));
  WEFT_ASSIGN_OR_RETURN(const Recordings recorded, RecordAt(sizes, record));
  const Program& first = recorded.programs[0];
  OnnxWriter writer(sizes);
  WEFT_RETURN_IF_ERROR(AddSources(recorded.programs, weights, &writer));
  OnnxWriter::Names values(first.values.size());
  ExportedNode node = {recorded.programs, NodeId{0}, {}, writer};
  for (; node.id < first.nodes.size(); node.id = NodeId{node.id + 1}) {
    node.inputs.clear();
    for (const ValueId input : node.node().inputs) node.inputs.push_back(values[input]);
    writer.SetScope(first.scope(node.node()));
    const OnnxWriter::Names names = WriteOnnxOp(node);
    WEFT_RETURN_IF_ERROR(Annotate(writer.status(), absl::StrCat("ONNX: ", node.node().op->name)));
    for (size_t k = 0; k < names.size(); ++k) values[node.node().output(static_cast<uint32_t>(k))] = names[k];
  }
  for (size_t i = 0; i < recorded.outputs.size(); ++i) {
    const ValueId id = recorded.outputs[i];
    writer.AddOutput(recorded.names[i], values[id], first.value(id).type.dtype, node.Shape(id));
  }
  return writer.Write(path, max_bytes);
}

}  // namespace weft
