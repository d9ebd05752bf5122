// Arrays of Python as tensors, and tensors as arrays.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/apps/python/bind.h"

namespace weft {
namespace {

// The bytes of a tensor with the buffer protocol.
struct Bytes {
  Tensor tensor;
  py::object owner;
};

// The dtypes that arrays may have, as the buffer protocol and NumPy name them.
struct ArrayType {
  DType dtype;
  const char *format, *name;
};
constexpr ArrayType kArrayTypes[] = {
    {kF32, "f", "float32"}, {kF64, "d", "float64"}, {kI32, "i", "int32"}, {kBool, "?", "bool"}, {kF16, "e", "float16"}};

const ArrayType* FindType(DType dtype) {
  const auto* const found = std::find_if(std::begin(kArrayTypes), std::end(kArrayTypes),
                                         [&](const ArrayType& type) { return type.dtype == dtype; });
  return found == std::end(kArrayTypes) ? nullptr : found;
}

py::buffer_info ToBuffer(const Bytes& self) {
  const auto& [dtype, shape] = self.tensor.type;
  const auto bytes = static_cast<py::ssize_t>(SizeOf(dtype));
  const std::vector<py::ssize_t> sizes(shape.dims().begin(), shape.dims().end());
  std::vector<py::ssize_t> strides;
  for (int i = 0; i < shape.rank(); ++i) strides.push_back(shape.Product(i + 1, shape.rank()) * bytes);
  return {self.tensor.data, bytes, FindType(dtype)->format, shape.rank(), sizes, strides};
}

py::object Numpy(const char* function) { return py::module_::import("numpy").attr(function); }

}  // namespace

py::object ToNumpy(const Tensor& tensor, py::object owner) {
  static PyObject* asarray = nullptr;  // found once; only a thread that holds the GIL comes here
  if (asarray == nullptr) asarray = Numpy("asarray").release().ptr();
  if (tensor.type.dtype == kBF16) {
    py::object array = Numpy("empty")(ToTuple(tensor.type.shape), "float32");
    const ArrayView view(array, kF32, "bf16");
    std::copy_n(tensor.as<BF16>(), tensor.type.shape.elements(), view.tensor().as<float>());
    return array;
  }
  if (FindType(tensor.type.dtype) == nullptr) Raise(InvalidArgument("NumPy has no dtype ", Name(tensor.type.dtype)));
  return py::handle(asarray)(Bytes{tensor, std::move(owner)});
}

ArrayView::ArrayView(py::handle value, DType wanted, const std::string& what) {
  py::object array = py::reinterpret_borrow<py::object>(value);
  if (PyObject_CheckBuffer(value.ptr()) == 0 && py::hasattr(value, "__dlpack__")) {
    array = Numpy("from_dlpack")(value);
  } else if (PyObject_CheckBuffer(value.ptr()) == 0) {
    const ArrayType* const type = FindType(wanted);
    if (type == nullptr) Raise(InvalidArgument(what, ": a number or a list can't become ", Name(wanted)));
    array = Numpy("asarray")(value, type->name);
  }
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw py::error_already_set();
  const std::string format = buffer_.format == nullptr ? "B" : buffer_.format;
  const auto* const sizes = reinterpret_cast<const int64_t*>(buffer_.shape);
  const Shape shape(absl::MakeConstSpan(sizes, static_cast<size_t>(buffer_.ndim)));
  for (const ArrayType& type : kArrayTypes) {
    if (format != type.format || !shape.valid()) continue;
    tensor_ = {{type.dtype, shape}, static_cast<std::byte*>(buffer_.buf)};
    if (PyBuffer_IsContiguous(&buffer_, 'C') == 0) Copy();
    return;
  }
  PyBuffer_Release(&buffer_);
  const std::string name = py::hasattr(array, "dtype") ? std::string(py::str(array.attr("dtype"))) : format;
  Raise(InvalidArgument(what, ": got an array of ", name, ToString(shape),
                        ", wanted f32, f64, i32 or bool and at most ", Shape::kMaxRank, " axes"));
}

void ArrayView::Copy() {
  if (copy_ != nullptr) return;
  copy_ = std::make_unique<std::byte[]>(static_cast<size_t>(buffer_.len));
  if (PyBuffer_ToContiguous(copy_.get(), &buffer_, buffer_.len, 'C') != 0) throw py::error_already_set();
  tensor_.data = copy_.get();
}

void BindArrays(py::module_ m) { py::class_<Bytes>(m, "_Bytes", py::buffer_protocol()).def_buffer(ToBuffer); }

}  // namespace weft
