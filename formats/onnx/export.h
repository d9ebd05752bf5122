// ExportOnnx writes recorded programs as models of ONNX, which onnxruntime and other programs run. A program has fixed
// shapes, so it is recorded several times, at different sizes of its dimensions. A size or number that differs between
// the recordings must be a product of dimensions, times a constant, plus a constant.
//
//   const auto record = [&](Tape* tape, absl::Span<const int64_t> sizes) -> OnnxOutputs {
//     const Var ids = tape->Input("input_ids", {kI32, {sizes[0], sizes[1]}}, {.below = config.vocabulary});
//     return {{"logits", Gpt(config).Logits(ids)}};
//   };
//   WEFT_RETURN_IF_ERROR(ExportOnnx("model.onnx", {{"batch_size"}, {"sequence_length", config.context}}, record,
//                                   weights.tensors()));
//
// Inputs of i32 are i64 in the model, as in those of `optimum`. Ops are written as in mode kEval; those that ONNX lacks
// by their elementary spelling (OpDef::elementary). An op that can't be written is an error with its name and scope.
#ifndef WEFT_FORMATS_ONNX_EXPORT_H_
#define WEFT_FORMATS_ONNX_EXPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/core/safetensors.h"
#include "weft/core/tape.h"

namespace weft {

// A dimension of the model. At least one input must have an axis of this size.
struct OnnxAxis {
  std::string name;
  int64_t limit = 0;  // the largest size, at least 4; 0: any
};
using OnnxOutputs = std::vector<std::pair<std::string, Var>>;
// Records the program on an empty tape, for these sizes of the dimensions, and returns its outputs by name.
using OnnxRecord = absl::FunctionRef<OnnxOutputs(Tape* tape, absl::Span<const int64_t> sizes)>;

// Writes the program to the file `path` and, if the weights have more than `max_bytes` bytes, to PATH_data. `weights`
// has a tensor for each parameter that the outputs need. There may be at most 4 dimensions.
absl::Status ExportOnnx(const std::string& path, const std::vector<OnnxAxis>& dimensions, OnnxRecord record,
                        absl::Span<const NamedTensor> weights, uint64_t max_bytes = uint64_t{3} << 29);

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_EXPORT_H_
