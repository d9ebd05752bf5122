// The tape: where a user's program is recorded, one op after the other.
//
// The first thing that goes wrong while recording is kept, with op, shapes and scope; everything recorded after it does
// nothing, so that a model is written without a check at each line. Compile returns the error, and status() tells it.
//
//   Tape tape;
//   Var x = tape.Input("x", {kF32, {8, 64}});
//   {
//     Scope scope(&tape, "mlp");                                            // names below are "mlp.weight", ...
//     Var w = tape.Parameter("weight", {kF32, {128, 64}}, Gaussian(0.02));
//     Var y = MatMul(x, w, {.transpose_b = true});                          // [8, 128]
//   }
#ifndef WEFT_CORE_TAPE_H_
#define WEFT_CORE_TAPE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/program.h"

namespace weft {

class Tape {
 public:
  Tape();
  Tape(const Tape&) = delete;  // Vars point here
  Tape& operator=(const Tape&) = delete;

  // A value that every run is fed. Integer inputs say their range, which each run checks; a name is used once.
  Var Input(absl::string_view name, TensorType type, InputBounds bounds = {});
  // A weight, named by the scopes it is recorded in: "h.0.mlp.c_fc.weight". Its first values depend on the seed of the
  // Parameters it will live in and on its name. A name used twice is an error.
  Var Parameter(absl::string_view name, TensorType type, Initializer initializer);
  // The one of this full name that was recorded before, for weights that are used twice; an error if there is none.
  Var FindParameter(absl::string_view full_name);
  bool HasParameter(absl::string_view full_name) const { return names_.contains(full_name); }
  // State that is not learnt (an optimizer's moments, running statistics, caches), under its full name.
  Var State(absl::string_view full_name, TensorType type, Initializer initializer,
            ParameterKind kind = ParameterKind::kState);
  // A tensor of constants: the bytes are copied.
  Var Constant(const Tensor& tensor);

  // Records one op, after its shape rule. On an error returns Vars that may be used, and do nothing.
  VarList Record(const OpDef& op, const Attrs& attrs, VarSpan inputs);
  // A value that is there when all of `vars` are: for CompileOptions::update.
  Var Group(VarSpan vars);
  // d loss / d wrt[i], for each i: one node, expanded when the tape is compiled. The loss is a float scalar. What the
  // loss does not depend on has gradient 0.
  VarList Gradient(Var loss, VarSpan wrt);

  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status);  // keeps the first error, with the current scope

  uint32_t NextStream() { return program_.streams++; }  // for a random op's attributes
  const Program& program() const { return program_; }
  uint64_t id() const { return id_; }  // no two tapes of a process have the same
  // The parameters recorded with kind kWeight, in order.
  VarList Weights() const;
  const std::string& ParameterName(Var parameter) const;

  // For the compiler, which rewrites a program by recording it again: a tape with the tables and scopes of `program`
  // but none of its nodes; a node of it recorded again, as it was, on other inputs; the scope of what is recorded next.
  explicit Tape(const Program& program);
  VarList Copy(const Program& from, const Node& node, VarSpan inputs);
  void SetScope(ScopeId scope) { scope_ = scope; }
  Program TakeProgram() && { return std::move(program_); }

 private:
  friend class Scope;
  friend class FunctionScope;

  Var Poison() { return {this, poison_}; }
  Var AddParameter(ParameterSpec spec);
  absl::Status CheckInputs(const char* op, VarSpan inputs) const;
  absl::Status CheckWrites(const OpDef& op, VarSpan inputs) const;

  Program program_;
  absl::Status status_;
  ValueId poison_;  // what ops return after an error: a value of rank 6, so that shape arithmetic stays in bounds
  ScopeId scope_{0};
  std::string name_prefix_;  // "h.0.mlp."
  absl::flat_hash_map<std::string, ScopeId> scope_ids_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_set<uint32_t> overwritten_;  // versions of state that a later version has replaced
  absl::flat_hash_set<uint32_t> state_;        // values that are versions of state
  uint64_t id_;
  const char* called_ = nullptr;  // see FunctionScope
};

// The function that a user called, where it records ops of other names: errors name it first, "min: max: ...". Fails
// the tape of the first input, which no empty Var can stand for, if another one is empty or from another tape.
//
//   Var Greater(Var a, Var b) {
//     const FunctionScope calling("greater", {a, b});
//     return calling.ok() ? Less(b, a) : a;
//   }
class FunctionScope {
 public:
  FunctionScope(const char* function, VarSpan inputs);
  FunctionScope(const char* function, std::initializer_list<Var> inputs)
      : FunctionScope(function, VarSpan(inputs.begin(), inputs.size())) {}
  ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

  bool ok() const { return tape_->status().ok(); }

 private:
  Tape* tape_;
  bool outermost_;
};

// Names what is recorded while it lives: for errors and prints "outer/inner", for parameters "outer.inner.name". An
// empty name adds nothing.
class Scope {
 public:
  enum Naming { kNames, kNoNames };  // kNoNames: not a part of parameters' names

  Scope(Tape* tape, absl::string_view name, Naming naming = kNames);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tape* tape_;
  ScopeId outer_;
  size_t outer_prefix_;
};

// Records one op that has one output (its first is returned). The tape is that of the first input that is
// not empty.
Var Record(const OpDef& op, std::initializer_list<Var> inputs, const Attrs& attrs = {});
VarList RecordAll(const OpDef& op, VarSpan inputs, const Attrs& attrs = {});

// An empty Var is taken for a value of any op after an error, so that the op that gets it can say so.
inline TensorType Var::type() const {
  return tape != nullptr ? tape->program().value(id).type : TensorType{kF32, {1, 1, 1, 1, 1, 1}};
}

}  // namespace weft

#endif  // WEFT_CORE_TAPE_H_
