// Cases that others made: a node's inputs, attributes and outputs, as tests/onnx/convert.py and tests/pytorch/draw.py
// pack them, and what those are given that record such a node in Weft's ops.
#ifndef WEFT_TESTS_CASES_CASE_FILE_H_
#define WEFT_TESTS_CASES_CASE_FILE_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/arena.h"
#include "weft/core/tensor.h"
#include "weft/graph/runner.h"
#include "weft/ops/ops.h"

namespace weft {

struct Case {
  std::string name, op, skip;  // why it can't be run, or ""
  int opset = 0;
  nlohmann::json attributes;
  std::vector<std::optional<Tensor>> inputs, outputs;  // none where an optional one is left out
};

// The op of a case that is a whole model: tests/pytorch/model_cases.py says what such a case has.
inline constexpr char kModelCase[] = "model";

class CaseFile {
 public:
  static absl::StatusOr<CaseFile> Open(const std::string& path);

  const std::vector<Case>& cases() const { return cases_; }
  Tensor TensorAt(const nlohmann::json& place) const;  // [dtype, shape, offset]

 private:
  Arena arena_;
  std::byte* data_ = nullptr;  // of all tensors
  size_t size_ = 0;
  std::vector<Case> cases_;
};

// A tensor's elements, whatever their dtype.
std::vector<double> Doubles(const Tensor& tensor);

// A node whose ops are to be recorded.
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
  // An input of ids that declares no bounds: in a sum, which ops take without.
  Var ids(size_t i) const { return in(i) + 0; }
  // An input's numbers, where an op wants constants.
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
  // Records the node's outputs. Unimplemented, with the reason, for what Weft does not have.
  CaseResult (*build)(const CaseNode& node) = nullptr;
};

// Whether |got - wanted| is at most absolute + relative · |wanted|, a NaN equal to a NaN: the first difference of types
// or elements, or "".
std::string Difference(const Tensor& got, const Tensor& wanted, double relative, double absolute);

// The inputs of a case, as inputs of a tape, and what is fed to them.
struct CaseInputs {
  std::vector<Var> vars;  // null where one is left out
  std::vector<FeedPair> feeds;
};
CaseInputs RecordInputs(Tape* tape, const Case& of);

}  // namespace weft

#endif  // WEFT_TESTS_CASES_CASE_FILE_H_
