// Reads ONNX models (https://onnx.ai/onnx/repo-docs/IR.html), such as those that torch.onnx.export writes, and records
// them on a tape, where they run and train as any other model.
//
//   WEFT_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open("model.onnx"));
//   Tape tape;
//   const Var x = tape.Input("x", {kF32, {8, 16}});                            // [batch, 16] in the file
//   WEFT_ASSIGN_OR_RETURN(const VarList y, model.Record(&tape, {{"x", x}}));   // its outputs, in the file's order
//   WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = {y[0]}}));
//   Parameters parameters;
//   model.Provide(&parameters);                                                // the file's weights
//   Runner runner(graph, &parameters);
//
// Integers of all sizes are i32, and float16 is f32. An initializer of floats is a weight, a parameter with its name,
// if it has at least two elements or torch's exporter says that it is one. If the exporter calls it a buffer, the
// parameter is frozen. Other initializers are constants.
#ifndef WEFT_FORMATS_ONNX_ONNX_MODEL_H_
#define WEFT_FORMATS_ONNX_ONNX_MODEL_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"

namespace weft {

struct OnnxFile;

// The opsets of ONNX that are read.
inline constexpr int kMinOnnxOpset = 7, kMaxOnnxOpset = 27;

// An input or output of a model.
struct OnnxPort {
  struct Size {
    int64_t size = 0;       // if `name` is empty
    std::string name = "";  // of a size that the inputs decide; "?" if it has no name
  };
  std::string name;
  DType dtype = kF32;
  std::vector<Size> sizes = {};
  bool has_shape = true;  // whether the file says the number of axes
};

// The value of an input: a Var of the tape, or numbers that are known while the model is recorded, which shapes may
// depend on.
struct OnnxInput {
  std::string name;
  std::variant<Var, Tensor> value;
};

class OnnxModel {
 public:
  // Reads a file. Elements that are in other files must be in its folder. Errors begin with the path: InvalidArgument
  // for a damaged file, Unimplemented for opsets that are not read.
  static absl::StatusOr<OnnxModel> Open(const std::string& path);
  // Reads a model from memory. `folder`: of files with elements.
  static absl::StatusOr<OnnxModel> Parse(absl::string_view bytes, const std::string& folder);

  const std::vector<OnnxPort>& inputs() const;
  const std::vector<OnnxPort>& outputs() const;
  // The weights, frozen ones included.
  absl::Span<const NamedTensor> weights() const;

  // Records the model and returns its outputs. Each input of the file must be there once, except those that have an
  // initializer. Their types must be those of inputs(), and a named size must be the same wherever it occurs. Names of
  // parameters have the tape's scopes before them, and Provide knows only names without scopes. Errors name the node:
  // Unimplemented for an op that Weft lacks; FailedPrecondition if an op such as Reshape needs numbers that are known
  // only when the graph runs; otherwise InvalidArgument.
  absl::StatusOr<VarList> Record(Tape* tape, absl::Span<const OnnxInput> inputs) const;
  // Makes parameters that are created later the weights of the file (Parameters::Provide).
  void Provide(Parameters* parameters) const;

 private:
  explicit OnnxModel(std::shared_ptr<const OnnxFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const OnnxFile> file_;
};

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_ONNX_MODEL_H_
