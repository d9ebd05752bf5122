// A program: the nodes and values that a tape records and that the compiler rewrites.
//
// Nodes stand in topological order: a node's inputs are outputs of nodes before it. Everything is named by an index.
#ifndef WEFT_CORE_PROGRAM_H_
#define WEFT_CORE_PROGRAM_H_

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weft/core/initializer.h"
#include "weft/core/op.h"

namespace weft {

enum class NodeId : uint32_t {};
enum class ScopeId : uint32_t {};
inline constexpr NodeId kNoNode{0xffffffff};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  absl::InlinedVector<ValueId, 4> inputs;
  ValueId first_output = kNoValue;  // the outputs have consecutive ids
  uint32_t output_count = 0;
  ScopeId scope{0};

  ValueId output(uint32_t i) const { return ValueId{static_cast<uint32_t>(first_output) + i}; }
};

struct Value {
  TensorType type;
  NodeId producer = kNoNode;
};

// A target that a loss leaves out, unless it is told another (PyTorch's number).
inline constexpr int32_t kIgnoredTarget = -100;

// What is known of the integers that will be fed to an input: each is in [0, below), or is `ignored`.
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
  kWeight,  // learnt: saved in model.safetensors
  kState,   // an optimizer's moments, running statistics: saved in checkpoints only
  kCache    // what a text that is being generated needs: never saved, and writing it is no update
};

struct ParameterSpec {
  std::string name;
  TensorType type;
  Initializer initializer;
  ParameterKind kind = ParameterKind::kWeight;
};

struct ConstantData {
  TensorType type;
  std::shared_ptr<const std::vector<std::byte>> bytes;
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<std::string> scopes = {""};  // "gpt/h.3/mlp"
  // What the ops input, parameter and constant name by index (see SourceAttrs).
  std::vector<InputSpec> inputs;
  std::vector<ParameterSpec> parameters;
  std::vector<ConstantData> constants;
  uint32_t streams = 0;  // of random numbers, given out so far

  const Node& node(NodeId id) const { return nodes[static_cast<uint32_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<uint32_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<uint32_t>(id)]; }
  const Node& producer(ValueId id) const { return node(value(id).producer); }
  const std::string& scope(const Node& n) const { return scopes[static_cast<uint32_t>(n.scope)]; }

  Types InputTypes(const Node& n) const;
  Types OutputTypes(const Node& n) const;
  // Appends a node and its outputs; what it says is not checked.
  NodeId Append(const OpDef& op, const Attrs& attrs, absl::Span<const ValueId> inputs, TypeSpan outputs, ScopeId scope);
};

// The attributes of kInputOp, kParameterOp and kConstantOp: which entry of the program's table, and its type.
struct SourceAttrs {
  TensorType type;
  int32_t index = 0;

  auto Fields() const {
    return std::tuple{AttrField{"dtype", type.dtype}, AttrField{"shape", type.shape}, AttrField{"index", index}};
  }
};

// The ops that only the tape and the compiler record. They have no kernel: the runner points their outputs at the fed
// tensor, the parameter or the constant; `group` only orders, and `gradient` is gone when a graph is compiled.
extern const OpDef kInputOp, kParameterOp, kConstantOp, kGroupOp, kGradientOp;

}  // namespace weft

#endif  // WEFT_CORE_PROGRAM_H_
