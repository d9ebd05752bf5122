// The parts of the reader of ONNX models. Only formats/onnx includes this header. An OnnxNode is a node of a model,
// as the functions of the tables of ops see it: inputs, attributes, and the tape on which they record the node in
// Weft's ops.
//
//   OnnxResult Gelu(const OnnxNode& node) {
//     return VarList{Gelu(node.in(0), node.String("approximate", "none") == "tanh" ? GeluForm::kTanh :
//     GeluForm::kErf)};
//   }
//   constexpr OnnxOp kOps[] = {{"Gelu", Gelu}};  // in a file of formats/onnx/ops/
#ifndef WEFT_FORMATS_ONNX_ONNX_NODE_H_
#define WEFT_FORMATS_ONNX_ONNX_NODE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/onnx.pb.h"
#include "weft/ops/ops.h"

namespace weft {

// Numbers that are known while a model is recorded. Integers of all sizes are i32, and float16 is f32.
struct OnnxConstant {
  Tensor tensor;
  // All integers, if some do not fit i32; `tensor` then has the nearest i32. After an op has moved them, those that do
  // not fit have any value beyond i32.
  std::vector<int64_t> wide = {};
  std::shared_ptr<const void> bytes;  // owns the bytes of `tensor`
};

// Returns a constant with a copy of the tensor's bytes.
OnnxConstant CopyToConstant(const Tensor& tensor);

// A type of elements in files.
struct OnnxElement {
  int type;  // onnx::Tensor::DataType
  size_t bytes;
  DType dtype;
  bool is_signed = true;

  bool is_narrow() const { return dtype == kI32 && bytes < 4; }  // integers of fewer bits than i32
};
// Returns Unimplemented for strings and other types that are not read.
absl::StatusOr<OnnxElement> OnnxElementOf(int64_t type);

// The files of a folder that hold elements.
class OnnxFiles {
 public:
  explicit OnnxFiles(std::string folder) : folder_(std::move(folder)) {}
  // Maps the file of the tensor's external_data. Returns its bytes, and sets `owner` to the mapping. The location must
  // be a path in the folder; a link that leads out of the folder is an error.
  absl::StatusOr<absl::string_view> Find(const onnx::Tensor& tensor, std::shared_ptr<const void>* owner);

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<MappedFile>> mapped_;
};

// Reads a tensor. Memory is allocated only once the elements are known to be there. Elements of f32, f64 and bf16 that
// are in bytes stay where they are, for which `message` must be the owner of the tensor, or null to copy them. `files`:
// null if there are none. Errors: Unimplemented for strings, other dtypes and more than six axes, otherwise
// InvalidArgument.
absl::StatusOr<OnnxConstant> ReadOnnxTensor(const onnx::Tensor& tensor, OnnxFiles* files = nullptr,
                                            std::shared_ptr<const void> message = nullptr);

// A value of a model.
struct OnnxValue {
  Var var = {};                                         // empty until an op reads the value
  std::shared_ptr<const OnnxConstant> known = nullptr;  // its numbers, or null
  std::string weight = "";                              // the name of its parameter, or empty
  bool is_frozen = false;                               // training does not change the parameter
  int type = 0;                                         // onnx::Tensor::DataType; 0: any that `var` can have

  bool is_there() const { return var || known != nullptr; }
  bool is_constant() const { return known != nullptr && weight.empty(); }
  TensorType tensor_type() const { return known != nullptr ? known->tensor.type : var.type(); }
};

// The rule of an op for integers.
enum class OnnxIntegers : uint8_t {
  kExact,  // integers must fit i32
  kMoves,  // results are elements of the inputs; integers beyond i32, such as the end of a slice, become the nearest
           // i32
  kWraps,  // results may exceed the integers' type, such as uint8, and then wrap around
  kLike    // integers must fit i32; the result has the type of the second input
};

class OnnxNode;
using OnnxResult = absl::StatusOr<VarList>;

struct OnnxOp {
  const char* name;
  // Records the node's outputs. Returns Unimplemented, with the reason, if Weft has no such op.
  OnnxResult (*build)(const OnnxNode& node) = nullptr;
  OnnxIntegers integers = OnnxIntegers::kExact;
  bool of_shapes = false;  // the results depend only on the inputs' shapes
  absl::string_view domain = "";
  int since = 0;  // the first opset that gives the op this meaning
};

class OnnxNode {
 public:
  OnnxNode(const onnx::Node& node, const OnnxOp& op, Tape* tape, std::vector<OnnxValue> inputs);

  Tape* tape() const { return tape_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return output_count_; }

  // Whether there is an input i; optional ones may be left out.
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].is_there(); }
  // Returns input i. If it is left out, or does not fit i32, the tape gets an error.
  Var in(size_t i) const;
  Var optional(size_t i) const { return has(i) ? in(i) : Var{}; }
  // Returns input i, a tensor of ids, plus 0. Ops require that inputs of ids have declared bounds, but computed ids
  // need none.
  Var ids(size_t i) const { return in(i) + 0; }
  int type(size_t i) const { return i < inputs_.size() ? inputs_[i].type : 0; }
  // Return an input's numbers, for ops that take constants, or `otherwise` if the input is left out. If they are known
  // only when the graph runs, the error is FailedPrecondition.
  absl::StatusOr<std::vector<int64_t>> Integers(size_t i) const;
  absl::StatusOr<std::vector<int64_t>> Integers(size_t i, std::vector<int64_t> otherwise) const;
  absl::StatusOr<double> Number(size_t i) const;
  absl::StatusOr<double> Number(size_t i, double otherwise) const;
  // Returns `axis` counted from the front, or an error if a value of `rank` axes lacks it.
  absl::StatusOr<int> Axis(int64_t axis, int rank) const;
  absl::StatusOr<int> AxisOf(Var x, int64_t otherwise) const { return Axis(Int("axis", otherwise), x.shape().rank()); }
  // Returns the axes, counted from the front, that the attribute "axes" names or, since opset 13 or 18, input 1. The
  // value has `rank` axes. If the axes are `of_result`, they count in the result, which has them beside the value's.
  absl::StatusOr<std::vector<int>> Axes(int rank, bool of_result = false) const;

  // Return an attribute, or `otherwise` if it is not there. If it has another type, the tape gets an error.
  bool HasAttribute(absl::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(absl::string_view name, int64_t otherwise) const;
  double Float(absl::string_view name, double otherwise) const;
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::string String(absl::string_view name, const std::string& otherwise) const;
  const onnx::Attribute* Find(absl::string_view name) const;

  // Returns Unimplemented if the function has not looked at an attribute of the node.
  absl::Status CheckAttributes() const;
  // For the recorder: input i with the Var that in() has recorded.
  const OnnxValue& value(size_t i) const { return inputs_[i]; }

 private:
  const onnx::Attribute* Find(absl::string_view name, onnx::Attribute::Type type) const;

  const onnx::Node& node_;
  const OnnxOp& op_;
  Tape* tape_;
  mutable std::vector<OnnxValue> inputs_;
  mutable std::vector<bool> found_;  // the attributes that the function has looked at
  size_t output_count_ = 0;
};

template <Var (*function)(Var)>
OnnxResult Unary(const OnnxNode& node) {
  return VarList{function(node.in(0))};
}
template <Var (*function)(Var, Var)>
OnnxResult Binary(const OnnxNode& node) {
  return VarList{function(node.in(0), node.in(1))};
}

// Returns the integers x, i32, as those of `type`, such as UINT8: they wrap around. Other types leave x as it is.
Var WrapTo(Var x, int type);

// Returns the numbers from `begin` to `end` - 1.
template <class T>
std::vector<T> Sequence(T begin, T end) {
  std::vector<T> numbers(static_cast<size_t>(std::max<T>(end - begin, 0)));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

// Returns x, with integers and bools cast to f64, which represents all of them exactly.
Var InFloats(Var x);
// Returns every `stride`-th element along the axis, beginning with the first.
Var Every(Var x, int axis, int64_t stride);
// Moves axis `from` to `to`.
Var MoveAxis(Var x, int from, int to);

// The number of nodes that one op of a model may become.
inline constexpr int64_t kMaxOnnxSteps = 4096;
// Returns an error if the op needs more.
absl::Status CheckOnnxSteps(int64_t steps);

absl::Span<const OnnxOp> OnnxArithmetic();
absl::Span<const OnnxOp> OnnxLayers();
absl::Span<const OnnxOp> OnnxSequences();
absl::Span<const OnnxOp> OnnxShapes();
// Returns the row of an op, or null.
const OnnxOp* FindOnnxOp(absl::string_view domain, absl::string_view name);

// Records the nodes of the model's graph, and returns the graph's outputs. `values`: the inputs and initializers. What
// depends only on constants and shapes is computed while recording, because ops such as Reshape need the numbers.
// Errors name the node.
absl::StatusOr<VarList> RecordOnnxGraph(const onnx::Model& model, int opset, Tape* tape,
                                        absl::flat_hash_map<std::string, OnnxValue> values);

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_ONNX_NODE_H_
