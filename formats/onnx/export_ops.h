// The ops that ExportOnnx writes as nodes of ONNX. export_ops.cc has a row for each op.
#ifndef WEFT_FORMATS_ONNX_EXPORT_OPS_H_
#define WEFT_FORMATS_ONNX_EXPORT_OPS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/formats/onnx/write_graph.h"

namespace weft {

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

bool HasOnnxOp(const OpDef& op);       // reports whether `op` has a row
bool AttrsMayDiffer(const OpDef& op);  // reports whether its attributes may differ between recordings
OnnxWriter::Names WriteOnnxOp(const ExportedNode& node);  // writes a node of such an op; returns its outputs' names

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_EXPORT_OPS_H_
