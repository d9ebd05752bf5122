// OpDef: everything Weft knows about one kind of op, as constant data in the op's own file (see docs/add_an_op.md).
//
// Concepts:
//   Var     the user's handle of a value on a tape.
//   Attrs   an op's constants (an axis, a rate): a small trivially copyable struct, kept inline.
//   Rect    a rectangle of a value seen as [rows, cols], the last axis against all the others. The tiles of a node are
//           rectangles of its domain; OpDef::access tells what a tile reads and writes of every operand.
//   Kernel  computes one tile. It can't fail, opens no parallel loop and gives bits that don't depend on the tiling.
#ifndef WEFT_CORE_OP_H_
#define WEFT_CORE_OP_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/core/tensor.h"

namespace weft {

class Tape;
struct Node;
struct OpDef;

enum class ValueId : uint32_t {};
inline constexpr ValueId kNoValue{0xffffffff};

struct Var {
  Tape* tape = nullptr;
  ValueId id = kNoValue;

  explicit operator bool() const { return tape != nullptr; }
  // By value: recording moves the values, so that a reference would not last.
  TensorType type() const;
  Shape shape() const { return type().shape; }
  int64_t dim(int axis) const { return shape().dim(axis); }
  DType dtype() const { return type().dtype; }
};
using VarList = absl::InlinedVector<Var, 4>;
using VarSpan = absl::Span<const Var>;

// One field of an op's attributes: its name and a reference to its value. Prints omit a field that is not `printed`.
template <class T>
struct AttrField {
  const char* name;
  const T& value;
  bool printed = true;
};

// An op's attributes, kept inline. Equality, hash and print follow from the list of fields that each struct has:
//
//   struct SplitAttrs {
//     int32_t axis = 0, parts = 1;
//     auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"parts", parts}}; }
//   };
//
// The struct is trivially copyable and has at most kCapacity bytes.
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

// How attributes of one struct are compared, hashed and printed ("axis=1 keep=true").
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

struct OpArgs {  // what is known of a node when it is compiled
  const Attrs& attrs;
  TypeSpan inputs, outputs;
};

struct KernelArgs {
  const Attrs& attrs;
  absl::Span<const Tensor> inputs, outputs;
  const void* prepared = nullptr;  // Prepared::state
  std::byte* workspace = nullptr;  // Prepared::workspace bytes of this worker's own
  RandomStream random;             // seed and step of this run; a random op's attributes hold its stream

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
  VarSpan grads;  // one per output; a null Var where nothing flows back

  Var input(int i) const { return inputs[i]; }
  Var output(int i) const { return outputs[i]; }
  Var grad(int i) const { return grads[i]; }
};
using GradientFunction = VarList (*)(const GradientArgs&);  // one per input; a null Var for no gradient

// Values as doubles, whatever their dtype: for slow and plain statements of what an op computes.
struct ReferenceArgs {
  const Attrs& attrs;
  TypeSpan input_types, output_types;
  absl::Span<const std::vector<double>> inputs;
  absl::Span<std::vector<double>> outputs;  // already of the right sizes, filled with zeros
  RandomStream random;                      // as the kernel's
};

enum class Cut : uint8_t { kNone, kRows, kCols, kBoth };

// In which dtype an op gets its f32 inputs when a program is compiled in bf16 (CompileOptions::precision).
enum class Autocast : uint8_t {
  kAsRecorded,  // f32
  kProduct,     // bf16
  kFollow,      // bf16 if one of them is: what moves values, or maps each to one
  kFirst,       // the first as it is, the others f32: what takes bf16, but computes and keeps sums in f32
};

// What an op makes ready at compile time, knowing its tiles.
struct Prepared {
  std::shared_ptr<const void> state;
  size_t workspace = 0;  // bytes that each worker needs while it runs a tile
};

struct Cost {
  double flops = 0, bytes = 0;
};

// One row of the op table test.
struct OpExample {
  // The inputs' types: "[2,3] i32[4]". Where no dtype is said, f32 and f64, and bf16 if there is a kernel.
  const char* in = "";
  VarList (*record)(VarSpan in) = nullptr;  // records the op; null: the op without attributes
  double low = -1, high = 1;                // float inputs are uniform over [low, high)
  int below = 2;                            // integer inputs are drawn from 0 .. below - 1
  const char* out = nullptr;                // the type of output 0, where the example proves the shape rule
  const char* error = nullptr;              // recording fails, and the message contains this
  double tolerance = 0;                     // f32 against the reference: relative and absolute; 0 is 2e-6
  bool check_gradient = true;               // false where a finite difference would straddle a kink or jump
};

struct OpDef {
  const char* name;
  absl::StatusOr<Types> (*infer)(const Attrs&, TypeSpan inputs) = nullptr;  // one type per output
  // By the dtype of input 0 (of output 0 where there are no inputs): f32, f64, bf16, i32, bool. One for bf16 computes
  // in f32 and rounds once; other inputs and outputs of it may be f32, as `infer` says.
  std::array<KernelFunction, kDTypeCount> kernels = {};
  Prepared (*prepare)(const OpArgs&, absl::Span<const Rect> tiles) = nullptr;

  int domain = -1;  // what the tiles cut: -1 output 0, else this input
  Cut cut = Cut::kNone;
  int64_t (*quantum)(const OpArgs&) = nullptr;         // tiles begin at multiples of this many rows; null: 1
  int64_t (*column_quantum)(const OpArgs&) = nullptr;  // and columns; null: 64
  // What `tile` reads of input `operand`, or writes of output `operand - inputs.size()`. Null: see DefaultAccess.
  Rect (*access)(const OpArgs&, int operand, Rect tile) = nullptr;
  int in_place = -1;  // output 0 may overwrite this input, because a tile reads of it only what it writes
  bool view = false;  // output 0 is input 0's bytes under another shape: nothing runs
  int writes = 0;     // the first k inputs are state, the first k outputs their next versions, in the same bytes
  bool random = false;

  GradientFunction gradient = nullptr;  // null with an `elementary`: the elementary spelling is differentiated
  const char* no_gradient = nullptr;    // the reason, for an op that has none
  // Ordinary nodes that take its place once gradients are expanded: for an op that has no kernels.
  VarList (*lower)(const Attrs&, VarSpan inputs) = nullptr;
  VarList (*elementary)(const Attrs&, VarSpan inputs) = nullptr;  // the same mathematics in smaller ops
  VarList (*in_eval)(const Attrs&, VarSpan inputs) = nullptr;     // what stands in for it in mode kEval
  void (*reference)(const ReferenceArgs&) = nullptr;              // scalar loops, where there is no elementary spelling
  Autocast autocast = Autocast::kAsRecorded;

  Cost (*cost)(const OpArgs&) = nullptr;  // null: one flop an output element, each operand's bytes once
  AttrOps attrs = {};                     // AttrOpsOf<T>(), or nothing where there are no attributes
  absl::Span<const OpExample> examples = {};
};

// The default for OpDef::access: an operand with the domain's rows and cols is touched at `tile` itself, one with its
// rows only at the tile's rows, any other as a whole.
Rect DefaultAccess(const OpArgs& args, const Shape& domain, int operand, Rect tile);
// What `op` touches: its own access, or the default.
Rect Access(const OpDef& op, const OpArgs& args, int operand, Rect tile);
// The shape that the tiles of a node cut.
const Shape& DomainShape(const OpDef& op, const OpArgs& args);
KernelFunction KernelFor(const OpDef& op, TypeSpan inputs, TypeSpan outputs);  // null if there is none
Cost CostOf(const OpDef& op, const OpArgs& args);
double OperandBytes(const OpArgs& args);  // of all inputs and outputs
std::string PrintAttrs(const OpDef& op, const Attrs& attrs);

template <int64_t kFlops>  // a cost of so many flops for each element of output 0
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

// Reports whether two attributes have equal bits: -0.0 and 0.0 differ.
template <class T>
bool SameAttr(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

template <class T>
constexpr AttrOps AttrOpsOf() {
  return {
      .equal =
          [](const Attrs& a, const Attrs& b) {
            const T x = a.as<T>(), y = b.as<T>();
            return std::apply(
                [&](const auto&... in_x) {
                  return std::apply([&](const auto&... in_y) { return (SameAttr(in_x.value, in_y.value) && ...); },
                                    y.Fields());
                },
                x.Fields());
          },
      .hash =
          [](const Attrs& a) {
            const T x = a.as<T>();
            return std::apply([](const auto&... field) { return absl::HashOf(field.value...); }, x.Fields());
          },
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
