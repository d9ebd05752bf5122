// Records the nodes of an ONNX graph on a tape. What depends only on constants and shapes is computed while recording,
// because ops such as Reshape need the numbers: the node is recorded on a tape of its own, which then runs.
#ifndef WEFT_FORMATS_ONNX_ONNX_RECORDER_H_
#define WEFT_FORMATS_ONNX_ONNX_RECORDER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "weft/formats/onnx/onnx_node.h"

namespace weft {

// The values of a graph or function by name. A branch of an If sees those of the graphs around it.
struct OnnxFrame {
  OnnxFrame* outer = nullptr;
  absl::flat_hash_map<std::string, OnnxValue> values = {};
  // In a function: the attributes that its nodes name by ref_attr_name.
  const absl::flat_hash_map<std::string, onnx::Attribute>* attributes = nullptr;

  OnnxValue* Find(const std::string& name);
};

class OnnxRecorder {
 public:
  OnnxRecorder(const onnx::Model& model, int opset, Tape* tape) : model_(model), opset_(opset), tape_(tape) {}

  // Records nodes and adds their outputs to the frame. Errors name the node.
  absl::Status Record(const google::protobuf::RepeatedPtrField<onnx::Node>& nodes, OnnxFrame* frame);
  // Returns the Var of a value, a constant included.
  absl::StatusOr<Var> VarOf(const std::string& name, OnnxFrame* frame);

 private:
  using Values = std::vector<OnnxValue>;
  absl::Status RecordOne(const onnx::Node& node, OnnxFrame* frame);
  absl::StatusOr<Values> Outputs(const onnx::Node& node, OnnxFrame* frame);
  absl::StatusOr<Values> Build(const onnx::Node& node, const OnnxOp& op, Tape* tape, Values* inputs);
  // Returns the outputs as constants, or none if they would be too large.
  absl::StatusOr<Values> Fold(const onnx::Node& node, const OnnxOp& op, const Values& inputs);
  absl::StatusOr<Values> If(const onnx::Node& node, OnnxFrame* frame);
  absl::StatusOr<Values> Branch(const onnx::Node& node, const char* name, OnnxFrame* frame);
  absl::StatusOr<Values> Call(const onnx::Node& node, const onnx::Function& function, OnnxFrame* frame);

  const onnx::Model& model_;
  int opset_;
  Tape* tape_;
  int depth_ = 0;         // of functions and branches
  int64_t recorded_ = 0;  // nodes
  int64_t folded_ = 0;    // elements
};

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_ONNX_RECORDER_H_
