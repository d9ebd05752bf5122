// A Tape records a user's program, one op after the other.
//
// The tape keeps the first error, with its op, shapes and scope. After an error, recording does nothing, so a model
// need not check each line. status() returns the error, and so does Compile.
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
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/program.h"

namespace weft {

// The end of the name of a probe (Tape::Probe) that is the next value of a state: "NAME.next" is the value of NAME
// after a training step that changes the weights. The optimizer's update assigns it, and other graphs leave NAME as it
// is.
inline constexpr char kNextState[] = ".next";

// An Adaptation changes what layers record while a tape has it: it freezes weights, and adds to the results of
// products. models/lora.h has one.
class Adaptation {
 public:
  virtual ~Adaptation() = default;

  // Reports whether training changes the weight `full_name`. If not, Tape::Parameter makes it ParameterKind::kFrozen.
  virtual bool Trains(absl::string_view full_name) const = 0;
  // Returns the result of a layer that has recorded `y` = `x` · `weight`ᵀ, perhaps with a bias. The tape's scope is the
  // layer's.
  virtual Var Adapt(Var x, Var weight, Var y) = 0;
};

class Tape {
 public:
  Tape();
  Tape(const Tape&) = delete;  // Vars point to their tape
  Tape& operator=(const Tape&) = delete;

  // Records an input, whose value the caller feeds to every call of Runner::Run. `bounds`: the integers that an i32
  // input may have, which Run checks. It is an error if another input has this name.
  Var Input(absl::string_view name, TensorType type, InputBounds bounds = {});
  // Records a weight. Its full name has the scopes around it: "h.0.mlp.c_fc.weight". Initial values depend on
  // `initializer`, the full name, the type, and the seed of Parameters. It is an error if another parameter has this
  // name. `least`: the least precise dtype in which inference holds the weight; CompileOptions::weights has no effect
  // below it. Use f32 for a small table on which all results depend, such as positions.
  Var Parameter(absl::string_view name, TensorType type, Initializer initializer, DType least = kQ4_0);
  // Returns the parameter recorded as `full_name`, for a weight that is used twice. It is an error if there is none.
  Var FindParameter(absl::string_view full_name);
  bool HasParameter(absl::string_view full_name) const { return names_.contains(full_name); }
  // From now on, Parameter("NAME.x", ...) returns the parameter "SOURCE.x", which was recorded before, instead of a new
  // one. So layers share their weights, and the gradient of a weight is the sum over these layers.
  void ShareParameters(absl::string_view name, absl::string_view source);
  // Records state that is not learnt: optimizer moments, running statistics, caches. Scopes do not change the name.
  Var State(absl::string_view full_name, TensorType type, Initializer initializer,
            ParameterKind kind = ParameterKind::kState);
  // Records a constant with a copy of the bytes of `tensor`.
  Var Constant(const Tensor& tensor);
  // Returns what `record` returned when this was first called with `key`. So layers share a table that depends on the
  // values in `key` only.
  VarList Once(const std::string& key, absl::FunctionRef<VarList()> record);

  // Checks `inputs` by the op's rules, records one node and returns its outputs. If the check fails, or the tape
  // already has an error, returns `op.outputs` copies of Poison(), at least one. Graphs of one tape may overwrite a
  // version of a state in different ways, but a graph that overwrites it twice does not compile.
  VarList Record(const OpDef& op, const Attrs& attrs, VarSpan inputs);
  // Returns an update group for CompileOptions::update: one value that stands for all updates in `vars`.
  Var Group(VarSpan vars);
  // Returns d `loss` / d `wrt[i]` for each i, as outputs of one node that compilation expands. `loss` must be a float
  // scalar, and each `wrt[i]` must have a float dtype. If the loss does not depend on `wrt[i]`, that gradient is 0.
  VarList Gradient(Var loss, VarSpan wrt);

  // The adaptation in force, or null. It must outlive its use by the tape.
  Adaptation* adaptation() const { return adaptation_; }
  void SetAdaptation(Adaptation* adaptation) { adaptation_ = adaptation; }

  const absl::Status& status() const { return status_; }
  // Returns a placeholder for results after an error. Any op accepts it and, because of the error, records nothing.
  Var Poison() { return {this, poison_}; }
  // If `status` is the tape's first error, keeps it, with the current function and scope added. Returns Poison().
  Var Fail(const absl::Status& status);

  // Names `value`, so that a caller who did not record it can find and fetch it. The full name has the scopes around
  // it, as for Parameter: "h.0.attn.attention_weights". A probe adds no node, so it costs nothing unless it is fetched.
  void Probe(absl::string_view name, Var value);
  struct NamedValue {
    std::string name;
    Var value;
  };
  // Returns all probes in the order in which they were recorded. After an error there are no more.
  const std::vector<NamedValue>& probes() const { return probes_; }

  uint32_t NextStream() { return program_.streams++; }  // a new stream of random numbers, for a random op's attributes
  const Program& program() const { return program_; }
  uint64_t id() const { return id_; }  // no other tape of the process has the same id
  // Returns the parameters of kind kWeight, in the order in which they were recorded.
  VarList Weights() const;
  const std::string& ParameterName(Var parameter) const;

  // For the compiler, which rewrites a program by recording it on another tape. The new tape has the scopes, inputs,
  // parameters and constants of `program`, but no nodes.
  explicit Tape(const Program& program);
  // Records a copy of a node of `from`, with other inputs. The outputs keep their types, which are not checked again.
  VarList Copy(const Program& from, const Node& node, VarSpan inputs);
  ScopeId scope() const { return scope_; }
  void SetScope(ScopeId scope) { scope_ = scope; }
  Program TakeProgram() && { return std::move(program_); }

 private:
  friend class Scope;
  friend VarList CompositeAll(const char* function, VarSpan inputs, size_t outputs,
                              absl::FunctionRef<absl::StatusOr<VarList>()> body);

  Var AddParameter(ParameterSpec spec);
  absl::Status CheckInputs(const char* op, VarSpan inputs) const;
  absl::Status CheckWrites(const OpDef& op, VarSpan inputs) const;

  Program program_;
  absl::Status status_;
  ValueId poison_;  // the result of ops after an error; its rank is the maximum, so that every axis exists
  ScopeId scope_{0};
  std::string name_prefix_;                  // "h.0.mlp."
  std::string shared_name_, shared_source_;  // of ShareParameters, with a dot at the end, or ""
  absl::flat_hash_map<std::string, ScopeId> scope_ids_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, VarList> once_;
  absl::flat_hash_set<ValueId> state_;  // values that are versions of state
  std::vector<NamedValue> probes_;
  uint64_t id_;
  Adaptation* adaptation_ = nullptr;
  const char* function_ = nullptr;  // the outermost Composite that is being recorded
};

// Records a function that is composed of other ops:
//
//   Var Greater(Var a, Var b) {
//     return Composite("greater", {a, b}, [&] { return Less(b, a); });
//   }
//   Var Norm(Var x, double order) {
//     return Composite("norm", {x}, [&]() -> absl::StatusOr<Var> {
//       if (!(order > 0)) return ShapeError("norm", "the order must be > 0", {x.type()});
//       ...
//     });
//   }
//
// `inputs[0]` must not be empty: otherwise the program stops. If another input is not on the tape of `inputs[0]`, that
// tape gets an error. If the tape has no error, `body` runs and returns the result or an error. Error messages begin
// with the name of the outermost `function`: "min: max: ...". After an error, the result is Tape::Poison().
Var Composite(const char* function, VarSpan inputs, absl::FunctionRef<absl::StatusOr<Var>()> body);
// Like Composite, for a function with several results. `body` must return exactly `outputs` values.
VarList CompositeAll(const char* function, VarSpan inputs, size_t outputs,
                     absl::FunctionRef<absl::StatusOr<VarList>()> body);

// While a Scope exists, its name is added to everything that is recorded on the tape. Errors and prints show
// "outer/inner"; Tape::Parameter names weights "outer.inner.name". An empty name adds nothing.
class Scope {
 public:
  enum Naming { kNames, kNoNames };  // kNoNames: names of parameters omit this scope

  Scope(Tape* tape, absl::string_view name, Naming naming = kNames);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tape* tape_;
  ScopeId outer_;
  size_t outer_prefix_;
};

// Record one node on the tape of the first nonempty input, which must exist. Return the first output, or all outputs.
Var Record(const OpDef& op, std::initializer_list<Var> inputs, const Attrs& attrs = {});
VarList RecordAll(const OpDef& op, VarSpan inputs, const Attrs& attrs = {});

// An empty Var has the type of Tape::Poison(), so that an op can compute with shapes before it reports the empty Var.
inline TensorType Var::type() const {
  return tape != nullptr ? tape->program().value(id).type : TensorType{kF32, {1, 1, 1, 1, 1, 1}};
}

}  // namespace weft

#endif  // WEFT_CORE_TAPE_H_
