// A Program holds the nodes and values that a tape records and that the compiler rewrites.
//
// The order of nodes is topological: the inputs of a node are outputs of earlier nodes. Ids are indices into the
// vectors of Program: `program.nodes[node_id]`.
#ifndef WEFT_CORE_PROGRAM_H_
#define WEFT_CORE_PROGRAM_H_

#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "weft/core/initializer.h"
#include "weft/core/op.h"

namespace weft {

enum NodeId : uint32_t {};
enum ScopeId : uint32_t {};
inline constexpr NodeId kNoNode{0xffffffff};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  absl::InlinedVector<ValueId, 4> inputs;
  ValueId first_output = kNoValue;  // the outputs have consecutive ids
  uint32_t output_count = 0;
  ScopeId scope{0};

  ValueId output(uint32_t i) const { return ValueId{first_output + i}; }
  absl::InlinedVector<ValueId, 2> outputs() const;  // all output ids
};

struct Value {
  TensorType type;
  NodeId producer = kNoNode;
};

// The default target that a loss ignores, as in PyTorch.
inline constexpr int32_t kIgnoredTarget = -100;

// The integers that may be fed to an i32 input: 0 .. `below` - 1, and `ignored`.
struct InputBounds {
  int64_t below = 0;  // 0: not checked
  int64_t ignored = std::numeric_limits<int64_t>::min();
};

struct InputSpec {
  std::string name;
  TensorType type;
  InputBounds bounds;
};

enum class ParameterKind : uint8_t {
  kWeight,     // learnt; saved in model.safetensors
  kFrozen,     // a weight that training does not change: no gradient, no moments; saved in model.safetensors
  kStatistic,  // statistics of the data, which training steps change without gradients; saved in model.safetensors
  kState,      // an optimizer's moments; saved in checkpoints only
  kCache       // keys and values of earlier tokens in generation; never saved; a write is no update
};

struct ParameterSpec {
  std::string name;
  TensorType type;
  Initializer initializer;
  ParameterKind kind = ParameterKind::kWeight;
  DType least = kQ4_0;  // the least precise dtype in which inference holds it (CompileOptions::weights)
};

// Returns the dtype in which inference holds a parameter if CompileOptions::weights is `wanted`. This is `wanted`, or
// ParameterSpec::least if that is more precise, for a weight of f32 with two axes of at least 64 elements. Any other
// parameter keeps its dtype. If the result is not `wanted`, sets `reason`, unless that is null.
DType HeldDType(const ParameterSpec& spec, DType wanted, absl::string_view* reason = nullptr);

struct ConstantData {
  TensorType type;
  std::shared_ptr<const std::vector<std::byte>> bytes;
};

// The attributes of kInputOp, kParameterOp and kConstantOp. `index` is the index of an entry in Program::inputs,
// parameters or constants; `type` is the entry's type.
struct SourceAttrs {
  TensorType type;
  int32_t index = 0;

  auto Fields() const {
    return std::tuple{AttrField{"dtype", type.dtype}, AttrField{"shape", type.shape}, AttrField{"index", index}};
  }
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<std::string> scopes = {""};  // "gpt/h.3/mlp"
  // The tables of inputs, parameters and constants. SourceAttrs::index is the index of a node's entry in its table.
  std::vector<InputSpec> inputs;
  std::vector<ParameterSpec> parameters;
  std::vector<ConstantData> constants;
  uint32_t streams = 0;  // number of random streams in use

  const Node& node(NodeId id) const { return nodes[id]; }
  Node& node(NodeId id) { return nodes[id]; }
  const Value& value(ValueId id) const { return values[id]; }
  const Node& producer(ValueId id) const { return node(value(id).producer); }
  const std::string& scope(const Node& n) const { return scopes[n.scope]; }
  // Return the table entry that belongs to an input, parameter or constant node.
  const InputSpec& input(const Node& n) const { return inputs[n.attrs.as<SourceAttrs>().index]; }
  const ParameterSpec& parameter(const Node& n) const { return parameters[n.attrs.as<SourceAttrs>().index]; }
  const ConstantData& constant(const Node& n) const { return constants[n.attrs.as<SourceAttrs>().index]; }

  Types InputTypes(const Node& n) const;
  Types OutputTypes(const Node& n) const;
  // Appends a node and the values of its outputs, without checking the inputs and types.
  NodeId Append(const OpDef& op, const Attrs& attrs, absl::Span<const ValueId> inputs, TypeSpan outputs, ScopeId scope);
};

// Ops without kernels, which only the tape and the compiler record. A runner points the outputs of the first three at
// the fed tensor, the parameter or the constant. A kGroupOp computes nothing: it stands for updates that belong
// together. Compilation replaces kGradientOp by the nodes that compute the gradients.
extern const OpDef kInputOp, kParameterOp, kConstantOp, kGroupOp, kGradientOp;

// The attributes of kGradientOp.
struct GradientAttrs {
  // Whether all variables are independent: a path from a variable to the loss adds nothing to its gradient if the path
  // passes another variable. train/step/late_rows.cc records such gradients.
  bool partial = false;
  auto Fields() const { return std::tuple{AttrField{"partial", partial, /*printed=*/partial}}; }
};

}  // namespace weft

#endif  // WEFT_CORE_PROGRAM_H_
