// This table maps the ops of draw.py to functions that record them in Weft's ops.
#ifndef WEFT_TESTS_PYTORCH_OPS_H_
#define WEFT_TESTS_PYTORCH_OPS_H_

#include "absl/types/span.h"
#include "weft/tests/cases/case_file.h"

namespace weft {

absl::Span<const CaseOp> PytorchOps();

}  // namespace weft

#endif  // WEFT_TESTS_PYTORCH_OPS_H_
