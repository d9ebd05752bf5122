// These functions read test cases made by ONNX and PyTorch: a node's inputs, attributes and outputs, packed by
// tests/onnx/convert.py, tests/onnx/draw.py and tests/pytorch/draw.py. CaseNode gives a case of PyTorch to the function
// that records it in Weft's ops.
#ifndef WEFT_TESTS_CASES_CASE_FILE_H_
#define WEFT_TESTS_CASES_CASE_FILE_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/base/arena.h"
#include "weft/core/tensor.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {

struct Case {
  std::string name, op, skip;  // skip: why the case can't be run, or ""
  int opset = 0;
  std::string model;  // the bytes of a file with the case's node, or ""
  nlohmann::json attributes;
  std::vector<std::optional<Tensor>> inputs, outputs;  // empty if an optional one is left out
};

// The op of a case that is a whole model; tests/pytorch/model_cases.py describes such cases.
inline constexpr char kModelCase[] = "model";

class CaseFile {
 public:
  static absl::StatusOr<CaseFile> Open(const std::string& path);

  const std::vector<Case>& cases() const { return cases_; }
  Tensor TensorAt(const nlohmann::json& entry) const;  // [dtype, shape, offset]

 private:
  Arena arena_;
  std::byte* data_ = nullptr;  // of all tensors
  size_t size_ = 0;
  std::vector<Case> cases_;
};

// Returns a tensor's elements, of any dtype, as doubles.
std::vector<double> Doubles(const Tensor& tensor);

// A case's node, whose ops are to be recorded.
class CaseNode {
 public:
  CaseNode(const CaseFile& file, const Case& of, Tape* tape, std::vector<Var> inputs)
      : file_(file), case_(of), tape_(tape), inputs_(std::move(inputs)) {}

  Tape* tape() const { return tape_; }
  int opset() const { return case_.opset; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return case_.outputs.size(); }

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Var in(size_t i) const { return i < inputs_.size() ? inputs_[i] : Var{}; }
  // Returns input i, a tensor of ids, plus 0. Ops require that inputs of ids have declared bounds, but computed ids
  // need none.
  Var ids(size_t i) const { return in(i) + 0; }
  // Return an input's numbers, for ops that take constants.
  std::vector<int64_t> Integers(size_t i) const;
  double Number(size_t i) const { return Doubles(*case_.inputs[i])[0]; }

  bool HasAttribute(const char* name) const { return case_.attributes.contains(name); }
  int64_t Int(const char* name, int64_t otherwise) const { return case_.attributes.value(name, otherwise); }
  double Float(const char* name, double otherwise) const { return case_.attributes.value(name, otherwise); }
  std::vector<int64_t> Ints(const char* name, std::vector<int64_t> otherwise = {}) const {
    return case_.attributes.value(name, otherwise);
  }
  std::string String(const char* name, const std::string& otherwise) const {
    return case_.attributes.value(name, otherwise);
  }
  Tensor Value(const char* name) const { return file_.TensorAt(case_.attributes.at(name)); }

 private:
  const CaseFile& file_;
  const Case& case_;
  Tape* tape_;
  std::vector<Var> inputs_;
};

using CaseResult = absl::StatusOr<VarList>;
template <Var (*function)(Var)>
CaseResult UnaryCase(const CaseNode& node) {
  return VarList{function(node.in(0))};
}
template <Var (*function)(Var, Var)>
CaseResult BinaryCase(const CaseNode& node) {
  return VarList{function(node.in(0), node.in(1))};
}

struct CaseOp {
  const char* name;
  // Records the node's outputs. Returns Unimplemented, with the reason, if Weft has no such op.
  CaseResult (*build)(const CaseNode& node) = nullptr;
};

// Returns the first difference of types or elements, or "". Finite elements agree if |got - wanted| is at most absolute
// + relative · |wanted|. Other elements must be equal, or both NaN.
std::string Difference(const Tensor& got, const Tensor& wanted, double relative, double absolute);

// The inputs of a case as inputs of a tape, and their feeds.
struct CaseInputs {
  std::vector<Var> vars;  // null if an optional input is left out
  std::vector<FeedPair> feeds;
};
CaseInputs RecordInputs(Tape* tape, const Case& of);

}  // namespace weft

#endif  // WEFT_TESTS_CASES_CASE_FILE_H_
