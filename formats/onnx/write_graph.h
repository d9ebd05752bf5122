// An OnnxWriter builds a graph of ONNX node by node, and writes it as a model file. Values are known by their names.
//
//   OnnxWriter writer({{.name = "batch_size", .sizes = {2, 3, 5}}});
//   writer.AddInput("x", onnx::Tensor::FLOAT, {{2, 3, 5}, {4, 4, 4}});                    // [batch_size, 4]
//   const std::string y = writer.Node("Reshape", {"x", writer.Shape({{8, 12, 20}})});    // [4 · batch_size]
#ifndef WEFT_FORMATS_ONNX_WRITE_GRAPH_H_
#define WEFT_FORMATS_ONNX_WRITE_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/core/safetensors.h"
#include "weft/formats/onnx/onnx.pb.h"

namespace weft {

// A number in a program, such as the size of an axis: one value for each recording of the program (export.h).
using OnnxSize = std::vector<int64_t>;
using OnnxSizes = std::vector<OnnxSize>;
bool IsFixed(const OnnxSize& size);  // reports whether all recordings have the same value

// A dimension that is known at run time only. The last of its sizes differs from the first.
struct OnnxDimension {
  std::string name;
  OnnxSize sizes;
  bool bounded = false;  // true: no size is larger than that of the last recording
};

// The name and value of a node's attribute.
using OnnxAttribute = std::pair<const char*, std::variant<int64_t, double, std::vector<int64_t>>>;

onnx::Tensor::DataType OnnxType(DType dtype);  // NO_TYPE: ONNX has no such type

class OnnxWriter {
 public:
  using Names = std::vector<std::string>;

  explicit OnnxWriter(std::vector<OnnxDimension> dimensions) : dimensions_(std::move(dimensions)) {}

  const absl::Status& status() const { return status_; }  // the first error, which Write returns, too
  std::string Fail(const absl::Status& status);           // returns ""

  void AddInput(const std::string& name, onnx::Tensor::DataType type, const OnnxSizes& shape);
  void AddOutput(const std::string& name, const std::string& value, DType dtype, const OnnxSizes& shape);
  // Adds a tensor under its own name. Its bytes must stay until Write has returned.
  void AddWeight(const NamedTensor& weight) { weights_.push_back(weight); }

  // Add a node and return the names of its outputs. If an equal node exists, return its names instead.
  Names Nodes(absl::string_view type, Names inputs, size_t outputs, const std::vector<OnnxAttribute>& attributes = {});
  std::string Node(absl::string_view type, Names inputs, const std::vector<OnnxAttribute>& attributes = {}) {
    return Nodes(type, std::move(inputs), 1, attributes)[0];
  }
  void SetScope(absl::string_view scope) { scope_ = std::string(scope); }  // begins the names of nodes, and errors

  // Return the name of a constant. Equal constants are one.
  std::string Constant(onnx::Tensor::DataType type, absl::Span<const int64_t> shape, absl::string_view bytes);
  std::string Number(DType dtype, double value);           // a scalar
  std::string Integers(absl::Span<const int64_t> values);  // i64 [n]
  // Return a shape, i64 [n], or one size as a scalar: a constant, or computed from the inputs' shapes. The writer fails
  // if a size is not a product of dimensions, times a constant, plus a constant.
  std::string Shape(absl::Span<const OnnxSize> sizes);
  std::string Scalar(const OnnxSize& size, DType dtype);
  bool IsBounded(const OnnxSize& size) const;  // reports whether `size` depends on bounded dimensions only

  // Writes the model. If the weights have more than `max_bytes` bytes, those of 1 KiB and more are in the file
  // PATH_data, which the model names, because a message of protocol buffers has at most 2 GiB.
  absl::Status Write(const std::string& path, uint64_t max_bytes);

 private:
  // The number factor · (product of the dimensions whose bits are in `product`) + offset.
  struct Formula {
    int64_t factor = 0, offset = 0;
    uint32_t product = 0;
  };
  std::optional<Formula> Fit(const OnnxSize& size) const;
  std::string Size(const OnnxSize& size);       // i64 [1]
  std::string DimensionSize(size_t dimension);  // the same, of a dimension
  void Declare(const std::string& name, onnx::Tensor::DataType type, const OnnxSizes& shape, onnx::ValueInfo* info);

  const std::vector<OnnxDimension> dimensions_;
  absl::Status status_;
  std::string scope_;
  onnx::Model model_;
  std::vector<OnnxSizes> input_shapes_;
  std::vector<NamedTensor> weights_;
  absl::flat_hash_map<std::string, Names> nodes_;            // by type, inputs and attributes
  absl::flat_hash_map<std::string, std::string> constants_;  // by contents
};

// A node of a program in all its recordings, and the names of its inputs.
struct ExportedNode {
  absl::Span<const Program> recordings;
  NodeId id;
  OnnxWriter::Names inputs;
  OnnxWriter& writer;

  const Node& node(size_t recording = 0) const { return recordings[recording].node(id); }
  template <class Attributes>
  Attributes attrs(size_t recording = 0) const {
    return node(recording).attrs.as<Attributes>();
  }
  // Return a dtype, and the sizes of a value.
  DType input_dtype(size_t i) const { return recordings[0].value(node().inputs[i]).type.dtype; }
  DType dtype() const { return recordings[0].value(node().output(0)).type.dtype; }
  OnnxSizes Shape(ValueId value) const;
  OnnxSizes input_shape(size_t i) const { return Shape(node().inputs[i]); }
  OnnxSizes output_shape() const { return Shape(node().output(0)); }
  // Returns value(i) for each recording i.
  template <class Value>
  OnnxSize Each(Value value) const {
    OnnxSize size;
    for (size_t i = 0; i < recordings.size(); ++i) size.push_back(value(i));
    return size;
  }
  std::string Write(absl::string_view type, OnnxWriter::Names names,
                    const std::vector<OnnxAttribute>& attrs = {}) const {
    return writer.Node(type, std::move(names), attrs);
  }
};

// The ops that ExportOnnx writes as nodes of ONNX. export_ops.cc has a row for each op.
bool HasOnnxOp(const OpDef& op);       // reports whether `op` has a row
bool AttrsMayDiffer(const OpDef& op);  // reports whether its attributes may differ between recordings
OnnxWriter::Names WriteOnnxOp(const ExportedNode& node);  // writes a node of such an op; returns its outputs' names

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_WRITE_GRAPH_H_
