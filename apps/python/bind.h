// These functions are shared by the parts of the Python module. They turn errors into exceptions, and convert values.
// In Python, a dtype is its name ("f32"), and a shape is a sequence of sizes. Arrays use the buffer protocol, so
// NumPy's headers are not needed.
//
//   m.def("relu", [](Var x) { return Recorded(Relu(x)); }, py::arg("x"));
#ifndef WEFT_APPS_PYTHON_BIND_H_
#define WEFT_APPS_PYTHON_BIND_H_

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/apps/flags.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/ops/ops.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace py = pybind11;

namespace weft {

// A tape of Python, which lives as long as one of its Vars.
class PyTape : public Tape, public std::enable_shared_from_this<PyTape> {};

struct PyVar {
  std::shared_ptr<PyTape> tape;
  Var var;
};

// Throws the Python exception of an error, with its message: ValueError for InvalidArgument and OutOfRange,
// FileNotFoundError for NotFound, KeyboardInterrupt for Cancelled, and RuntimeError for all others.
void Raise(const absl::Status& status);
template <class T>
T Get(absl::StatusOr<T> result) {
  Raise(result.status());
  return *std::move(result);
}
// Each overload converts the result of a C++ function to a value of Python. If the result is a Var whose tape has an
// error, or a status that is an error, the overload raises it.
Var Recorded(Var result);
VarList Recorded(VarList results);
py::tuple Recorded(const BatchNormResult& results);
py::str Recorded(const std::string& text);  // bytes that are not UTF-8 become U+FFFD
inline std::vector<int32_t> Recorded(const ModelInput& input) { return input.ids; }
inline void Recorded(const absl::Status& status) { Raise(status); }
template <class T>
T Recorded(T value) {
  return value;
}
template <class T>
auto Recorded(absl::StatusOr<T> result) {
  return Recorded(Get(std::move(result)));
}
// Calls `work` without holding Python's global lock, so that other threads can run. `work` must use no Python object.
// Raises the error of its result, or returns the value.
template <class Work>
auto WithoutGil(Work work) {
  const auto call = [&] {
    const py::gil_scoped_release release;
    return work();
  };
  return Recorded(call());
}
// Raises ValueError if `parts`, the first argument of `function`, is empty: then there is no tape to record on.
void NotEmpty(const char* function, const std::vector<Var>& parts);
// Reports whether `var` is an output of the op `source`, such as kParameterOp.
bool IsOf(const OpDef& source, Var var);

// Return a dtype by its name, and a shape. Raise ValueError for an unknown name.
DType ToDType(const std::string& name);
inline Shape ToShape(const std::vector<int64_t>& sizes) { return Shape(absl::MakeConstSpan(sizes)); }
inline py::tuple ToTuple(const Shape& shape) {
  return py::tuple(py::cast(std::vector(shape.dims().begin(), shape.dims().end())));
}

// Returns a NumPy array that shares the bytes of `tensor`, which `owner` keeps alive. NumPy has no bf16: such a tensor
// is copied to f32. Raises ValueError for a block format.
py::object ToNumpy(const Tensor& tensor, py::object owner);

// A view of a value of Python as a tensor, as long as the ArrayView exists. A contiguous array of f32, f64, i32 or bool
// is not copied. An array with gaps is copied. A value without the buffer protocol becomes a NumPy array: one of
// another library by DLPack, without a copy; a number or a list with the dtype `wanted`, which NumPy must have.
class ArrayView {
 public:
  // Raises ValueError, which begins with `what`, if Weft does not have the array's dtype.
  ArrayView(py::handle value, DType wanted, const std::string& what);
  ~ArrayView() { PyBuffer_Release(&buffer_); }
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;

  const Tensor& tensor() const { return tensor_; }
  // Makes the view show a copy of the array.
  void Copy();

 private:
  Tensor tensor_;
  Py_buffer buffer_ = {};
  std::unique_ptr<std::byte[]> copy_;
};

// Returns the value that is called `text`. Raises ValueError with all names if there is none.
template <class E>
E Choose(const char* argument, const std::string& text, std::initializer_list<std::pair<const char*, E>> names) {
  std::string all;
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    absl::StrAppend(&all, all.empty() ? "" : ", ", name);
  }
  throw py::value_error(absl::StrCat(argument, ": '", text, "' is not one of ", all));
}

// Returns the options of `texts`, by their names or aliases, by the flags of `table`. Raises TypeError, with the
// nearest name, for a name that is no option. SetOptions also sets them, and raises ValueError for a wrong value.
GivenFlags ToFlags(const GivenFlags& texts, const Hyperparameters& table);
GivenFlags SetOptions(const GivenFlags& texts, const Hyperparameters& table);

// The parts of the module, each in a file of its own. The last is written by bind_headers.py. It adds to the others.
void BindArrays(py::module_ m);
void BindTape(py::module_ m);
void BindGraph(py::module_ m);
void BindModels(py::module_ m);
void BindUse(py::module_ m);
void BindGenerated(py::module_ m);

}  // namespace weft

namespace pybind11::detail {

template <>
struct type_caster<weft::Var> {
  PYBIND11_TYPE_CASTER(weft::Var, const_name("Var"));
  bool load(handle from, bool convert);
  static handle cast(weft::Var var, return_value_policy policy, handle parent);
};

template <>
struct type_caster<weft::VarList> : list_caster<weft::VarList, weft::Var> {};

}  // namespace pybind11::detail

#endif  // WEFT_APPS_PYTHON_BIND_H_
