// Reads the tensors of ONNX models, whose elements are in the message itself or in another file of the model's folder.
//
//   WEFT_ASSIGN_OR_RETURN(const OnnxConstant value, ReadOnnxTensor(attribute.t()));
#ifndef WEFT_FORMATS_ONNX_ONNX_TENSOR_H_
#define WEFT_FORMATS_ONNX_ONNX_TENSOR_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/base/regular_file.h"
#include "weft/formats/onnx/onnx_node.h"

namespace weft {

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

}  // namespace weft

#endif  // WEFT_FORMATS_ONNX_ONNX_TENSOR_H_
