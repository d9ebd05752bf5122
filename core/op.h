// An OpDef holds everything that Weft knows about one op, as constant data in the op's own file. docs/add_an_op.md
// shows how to write one.
//
// Concepts:
//   Var     the user's handle of a value on a tape.
//   Attrs   an op's constants (an axis, a rate): a small trivially copyable struct, kept inline.
//   Rect    a rectangle of a value seen as a matrix [rows, cols], whose columns are the last axis. A node's tiles are
//           rectangles of one operand, its domain. OpDef::access gives the rectangle that a tile uses of each operand.
//   Kernel  computes one tile. It cannot fail and opens no parallel loop. Its bits may depend on the tiling only if the
//           op has OpDef::workspace.
//
//   constexpr OpDef kScale = {.name = "scale", .infer = InferSame, .kernels = {Kernel<float>, Kernel<double>},
//                             .cut = Cut::kBoth, .in_place = 0, .gradient = Gradient, .reference = Reference,
//                             .attrs = AttrOpsOf<ScaleAttrs>(), .examples = kExamples};
#ifndef WEFT_CORE_OP_H_
#define WEFT_CORE_OP_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/core/tensor.h"

namespace weft {

class Tape;
struct Node;
struct OpDef;

// The index of a value in Program::values. An id converts to an integer implicitly, so it can index vectors. An integer
// converts to an id only explicitly.
enum ValueId : uint32_t {};
inline constexpr ValueId kNoValue{0xffffffff};

struct Var {
  Tape* tape = nullptr;
  ValueId id = kNoValue;

  explicit operator bool() const { return tape != nullptr; }
  // Returns a copy, because recording may reallocate the tape's values, and a reference would then dangle.
  TensorType type() const;
  Shape shape() const { return type().shape; }
  int64_t dim(int axis) const { return shape().dim(axis); }
  DType dtype() const { return type().dtype; }
};
using VarList = absl::InlinedVector<Var, 4>;
using VarSpan = absl::Span<const Var>;

// One field of an op's attributes: its name and a reference to its value. Unless `printed`, PrintAttrs omits it.
template <class T>
struct AttrField {
  const char* name;
  const T& value;
  bool printed = true;

  // Reports whether the values are equal. For floating-point fields, -0.0 and 0.0 are not equal.
  friend bool operator==(const AttrField& a, const AttrField& b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::signbit(a.value) != std::signbit(b.value)) return false;
    }
    return a.value == b.value;
  }
  template <class H>
  friend H AbslHashValue(H h, const AttrField& field) {
    return H::combine(std::move(h), field.value);
  }
};
// Clang 14 deduces no template argument of an aggregate by itself.
template <class T>
AttrField(const char*, const T&, bool = true) -> AttrField<T>;

// A copy of an op's own struct of attributes, kept inline. Equality, hash and print follow from the struct's Fields():
//
//   struct SplitAttrs {
//     int32_t axis = 0, parts = 1;
//     auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"parts", parts}}; }
//   };
//
// The struct must be trivially copyable, with at most kCapacity bytes and an alignment of at most 8 bytes.
class Attrs {
 public:
  static constexpr size_t kCapacity = 80;

  Attrs() = default;
  template <class T>
  static Attrs Of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity && alignof(T) <= 8);
    Attrs attrs;
    std::memcpy(attrs.bytes_, &value, sizeof(T));
    return attrs;
  }
  template <class T>
  T as() const {
    T value;
    std::memcpy(static_cast<void*>(&value), bytes_, sizeof(T));
    return value;
  }

 private:
  alignas(8) std::byte bytes_[kCapacity];
};

// Functions that compare, hash and print the attributes of one op. `print` returns, for example, "axis=1 keep=true".
struct AttrOps {
  bool (*equal)(const Attrs&, const Attrs&) = nullptr;
  size_t (*hash)(const Attrs&) = nullptr;
  std::string (*print)(const Attrs&) = nullptr;
};

struct Rect {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;

  constexpr int64_t rows() const { return row_end - row_begin; }
  constexpr int64_t cols() const { return col_end - col_begin; }
  friend bool operator==(const Rect&, const Rect&) = default;
};
constexpr Rect WholeRect(const Shape& shape) { return {0, shape.rows(), 0, shape.cols()}; }

// A node as compilation sees it: its attributes and types.
struct OpArgs {
  const Attrs& attrs;
  TypeSpan inputs, outputs;
};

struct KernelArgs {
  const Attrs& attrs;
  absl::Span<const Tensor> inputs, outputs;
  std::byte* workspace = nullptr;  // OpDef::workspace bytes, which belong to this worker
  RandomStream random;             // seed and step; a random op's attributes hold its stream number

  template <class T>
  const T* input(int i) const {
    return inputs[i].as<const T>();
  }
  template <class T>
  T* output(int i) const {
    return outputs[i].as<T>();
  }
  const Shape& input_shape(int i) const { return inputs[i].type.shape; }
  const Shape& output_shape(int i) const { return outputs[i].type.shape; }
};
using KernelFunction = void (*)(const KernelArgs&, Rect tile);

struct GradientArgs {
  const Attrs& attrs;
  VarSpan inputs, outputs;
  VarSpan grads;  // one for each output; empty if the loss does not depend on the output

  Var input(int i) const { return inputs[i]; }
  Var output(int i) const { return outputs[i]; }
  Var grad(int i) const { return grads[i]; }
};
// Records and returns one gradient for each input. An input without a gradient gets an empty Var.
using GradientFunction = VarList (*)(const GradientArgs&);

// The arguments of OpDef::reference, which only tests call. Values of every dtype are converted to doubles.
struct ReferenceArgs {
  const Attrs& attrs;
  TypeSpan input_types, output_types;
  absl::Span<const std::vector<double>> inputs;
  absl::Span<std::vector<double>> outputs;  // of the right sizes, filled with zeros
  RandomStream random;                      // the same as the kernel's
};

// The axes of the domain [rows, cols] along which a node may be cut into tiles.
enum class Cut : uint8_t { kNone, kRows, kCols, kBoth };

// In a program compiled in bf16 (CompileOptions::precision), the dtype that inputs recorded in f32 get. Nodes that
// depend on a gradient keep their dtypes.
enum class Autocast : uint8_t {
  kAsRecorded,  // f32
  kProduct,     // bf16
  kFollow,      // bf16 if any input is: for ops that move values or map each value to one
  kFirst,       // input 0 keeps its dtype, the others are f32: for ops that read bf16 but compute in f32
};

struct Cost {
  double flops = 0, bytes = 0;
};

// A message between ranks (graph/run/transport.h), which a node sends or receives.
struct Message {
  bool sends = false;  // false: the node receives
  int peer = 0;        // the other rank
  int tag = 0;
  int operand = 0;             // operand that holds the bytes: inputs first, then outputs, as for Access
  int64_t begin = 0, end = 0;  // elements of the operand, in memory order
};

// One case of the op table test (tests/op_table_test.cc).
struct OpExample {
  // Types of the inputs: "[2,3] i32[4]". If a type names no dtype, the example runs in f32, in f64 and, if the op has a
  // kernel for it, in bf16.
  const char* in = "";
  VarList (*record)(VarSpan in) = nullptr;  // records the op; null: it is recorded without attributes
  double low = -1, high = 1;                // float inputs are drawn uniformly from [low, high)
  int below = 2;                            // integer inputs are drawn from 0 .. below - 1
  const char* out = nullptr;                // the expected type of output 0; null: not checked
  const char* error = nullptr;              // recording must fail with a message that contains this
  double tolerance = 0;                     // relative and absolute, of f32 against the reference; 0: 2e-6
  bool check_gradient = true;               // false where finite differences are wrong, as at a kink
};

struct OpDef {
  const char* name;
  absl::StatusOr<Types> (*infer)(const Attrs&, TypeSpan inputs) = nullptr;  // checks inputs; returns the outputs' types
  size_t outputs = 1;                                                       // number of outputs; 0: it varies
  // Returns the messages that a node sends and receives. The node has one tile, which ends with the last message. If
  // the op also has kernels, the kernel runs before the messages start. Null: the op has no messages.
  std::vector<Message> (*messages)(const OpArgs&) = nullptr;
  // Kernels by dtype: f32, f64, bf16, i32, bool. The dtype of input 0 or, without inputs, of output 0 selects one. A
  // bf16 kernel computes in f32 and rounds once. If `infer` allows it, its other operands may be f32.
  std::array<KernelFunction, kDTypeCount> kernels = {};
  // Returns the bytes that each worker needs while it runs one of these tiles. Null: 0.
  size_t (*workspace)(const OpArgs&, absl::Span<const Rect> tiles) = nullptr;

  // Returns the rows and columns at which a tile may be divided without a change of bits; parts that begin there write
  // disjoint rectangles. Null: a tile of an op with a workspace is never divided; others are divided at their quanta.
  std::pair<int64_t, int64_t> (*unit)(const OpArgs&) = nullptr;

  int domain = -1;  // index of the input that tiles cut; -1: they cut output 0
  Cut cut = Cut::kNone;
  int64_t (*quantum)(const OpArgs&) = nullptr;         // tiles begin at multiples of this many rows; null: 1
  int64_t (*column_quantum)(const OpArgs&) = nullptr;  // tiles begin at multiples of this many columns; null: 64
  // Returns the rectangle that `tile` reads of input `operand`. If `operand` is n = inputs.size() or more, returns the
  // rectangle that `tile` writes of output `operand - n`. Null: DefaultAccess.
  Rect (*access)(const OpArgs&, int operand, Rect tile) = nullptr;
  int in_place = -1;  // output 0 may overwrite this input; then a tile reads only elements that it writes
  bool view = false;  // true: output 0 is input 0's bytes with another shape, and nothing runs
  int writes = 0;     // k: the first k inputs are state, and the first k outputs are its next versions in place
  bool random = false;

  GradientFunction gradient = nullptr;  // null: `elementary` is differentiated if there is one
  const char* no_gradient = nullptr;    // the reason why an op has no gradient
  // Records the nodes that replace an op without kernels, after gradients are expanded. Returns the new outputs.
  VarList (*lower)(const Attrs&, VarSpan inputs) = nullptr;
  VarList (*elementary)(const Attrs&, VarSpan inputs) = nullptr;  // the same mathematics in smaller ops
  VarList (*in_eval)(const Attrs&, VarSpan inputs) = nullptr;     // replaces the op in mode kEval
  void (*reference)(const ReferenceArgs&) = nullptr;              // scalar loops, for an op without `elementary`
  Autocast autocast = Autocast::kAsRecorded;

  Cost (*cost)(const OpArgs&) = nullptr;  // null: one FLOP for each element of output 0, and the bytes of all operands
  AttrOps attrs = {};                     // AttrOpsOf<T>(), or {} for an op without attributes
  absl::Span<const OpExample> examples = {};
};

// Returns the error of an op whose inputs do not fit: InvalidArgument "OP: MESSAGE; inputs f32[8,768], f32[512,64]". If
// ops are recorded in a scope, the tape appends "; at SCOPE".
//
//   if (a != b) return ShapeError("matmul", absl::StrCat("inner dimensions differ, ", a, " vs ", b), inputs);
absl::Status ShapeError(absl::string_view op, absl::string_view message, TypeSpan inputs);

// Returns the rectangle of an operand that `tile` touches, for ops without OpDef::access. An operand with the rows and
// columns of `domain` is touched at `tile`. An operand with the same rows only is touched in the tile's rows, in all
// columns. Any other operand is touched as a whole.
Rect DefaultAccess(const OpArgs& args, const Shape& domain, int operand, Rect tile);
// Returns the rectangle of operand number `operand` that `tile` reads or writes, by OpDef::access or its default.
Rect Access(const OpDef& op, const OpArgs& args, int operand, Rect tile);
// Returns the shape of the operand that tiles cut.
const Shape& DomainShape(const OpDef& op, const OpArgs& args);
KernelFunction KernelFor(const OpDef& op, TypeSpan inputs, TypeSpan outputs);  // null if `op` has none for these dtypes
// Reports whether nodes of `op` with these types run a kernel or carry messages.
bool IsCall(const OpDef& op, TypeSpan inputs, TypeSpan outputs);
Cost CostOf(const OpDef& op, const OpArgs& args);
double OperandBytes(const OpArgs& args);  // the sum over all inputs and outputs
std::string PrintAttrs(const OpDef& op, const Attrs& attrs);

template <int64_t kFlops>  // costs kFlops FLOPs for each element of output 0
Cost FlopsPerElement(const OpArgs& args) {
  return {.flops = static_cast<double>(kFlops) * args.outputs[0].shape.elements(), .bytes = OperandBytes(args)};
}

std::string PrintAttr(bool value);
std::string PrintAttr(double value);
std::string PrintAttr(const Shape& value);
std::string PrintAttr(DType value);
template <class T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) std::string PrintAttr(T value) {
  return std::to_string(static_cast<int64_t>(value));
}
template <class T, size_t n>
std::string PrintAttr(const std::array<T, n>& value) {
  std::string text;
  for (const T& x : value) text += (text.empty() ? "" : ",") + PrintAttr(x);
  return text;
}

template <class T>
constexpr AttrOps AttrOpsOf() {
  return {
      .equal = [](const Attrs& a, const Attrs& b) { return a.as<T>().Fields() == b.as<T>().Fields(); },
      .hash = [](const Attrs& a) { return absl::HashOf(a.as<T>().Fields()); },
      .print =
          [](const Attrs& a) {
            const T x = a.as<T>();
            std::string text;
            const auto append = [&](const auto& field) {
              if (!field.printed) return;
              text += (text.empty() ? "" : " ") + std::string(field.name) + "=" + PrintAttr(field.value);
            };
            std::apply([&](const auto&... field) { (append(field), ...); }, x.Fields());
            return text;
          },
  };
}

}  // namespace weft

#endif  // WEFT_CORE_OP_H_
