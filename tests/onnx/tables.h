// These tables map ONNX's ops to functions that record them in Weft's ops.
#ifndef WEFT_TESTS_ONNX_TABLES_H_
#define WEFT_TESTS_ONNX_TABLES_H_

#include "absl/types/span.h"
#include "weft/tests/cases/case_file.h"

namespace weft {

absl::Span<const CaseOp> OnnxElementwise();
absl::Span<const CaseOp> OnnxShapes();
absl::Span<const CaseOp> OnnxReductions();
absl::Span<const CaseOp> OnnxNetworks();
absl::Span<const CaseOp> OnnxAttention();
absl::Span<const CaseOp> OnnxTraining();

}  // namespace weft

#endif  // WEFT_TESTS_ONNX_TABLES_H_
