// weft.Var with its operators, weft.Tape, and scopes. Most methods of Tape are generated from core/tape.h.
#include <functional>

#include "weft/apps/python/bind.h"

namespace weft {
namespace {

// A scope of Python, which begins and ends with a `with` statement.
struct PyScope {
  std::shared_ptr<PyTape> tape;
  std::string name;
  std::unique_ptr<Scope> scope = nullptr;
};

struct Power {
  Var operator()(Var a, auto b) const { return Pow(a, b); }
  Var operator()(double a, Var b) const { return Pow(Number(b, a), b); }
};

// Adds the operator `name`, such as "add", of two Vars, and those of a Var and a number on either side.
template <class Operator>
void BindOperator(py::class_<PyVar>* var, const std::string& name, Operator op) {
  const std::string left = absl::StrCat("__", name, "__"), right = absl::StrCat("__r", name, "__");
  const auto of_vars = [op](Var a, Var b) { return Recorded(op(a, b)); };
  const auto with_number = [op](Var a, double b) { return Recorded(op(a, b)); };
  const auto of_number = [op](Var a, double b) { return Recorded(op(b, a)); };
  var->def(left.c_str(), of_vars, py::is_operator()).def(left.c_str(), with_number, py::is_operator());
  var->def(right.c_str(), of_number, py::is_operator());
}

void BindVar(py::module_ m) {
  py::class_<PyVar> var(m, "Var",
                        "A value on a tape. +, -, *, / and ** record ops, and @ records matmul. == asks whether two "
                        "Vars are one value; weft.equal compares elements.");
  BindOperator(&var, "add", std::plus<>());
  BindOperator(&var, "sub", std::minus<>());
  BindOperator(&var, "mul", std::multiplies<>());
  BindOperator(&var, "truediv", std::divides<>());
  BindOperator(&var, "pow", Power());
  const auto equal = [](const PyVar& a, const PyVar& b) { return a.tape == b.tape && a.var.id == b.var.id; };
  const auto product = [](Var a, Var b) { return Recorded(MatMul(a, b)); };
  var.def("__matmul__", product, py::is_operator())
      .def("__neg__", [](Var a) { return Recorded(-a); })
      .def("__eq__", equal, py::is_operator())
      .def("__hash__", [](const PyVar& a) { return a.tape->id() << 32 ^ a.var.id; })
      .def("__repr__", [](Var a) { return absl::StrCat("<weft.Var ", ToString(a.type()), ">"); })
      .def_property_readonly("shape", [](Var a) { return ToTuple(a.shape()); })
      .def_property_readonly("dtype", [](Var a) { return std::string(Name(a.dtype())); })
      .def_readonly("tape", &PyVar::tape);
  var.attr("__array_ufunc__") = py::none();  // so that NumPy leaves `array + var` to Var
}

PyScope MakeScope(PyTape& tape, const std::string& name) { return {tape.shared_from_this(), name}; }

Var MakeConstant(PyTape& tape, const py::object& value, const std::string& dtype) {
  return Recorded(tape.Constant(ArrayView(value, ToDType(dtype), "constant").tensor()));
}

std::string ParameterName(PyTape& tape, Var parameter) {
  if (parameter.tape == &tape && IsOf(kParameterOp, parameter)) return tape.ParameterName(parameter);
  throw py::value_error("parameter_name: this Var is no parameter of the tape");
}

py::dict Probes(const PyTape& tape) {
  py::dict probes;
  for (const Tape::NamedValue& probe : tape.probes()) probes[py::str(probe.name)] = probe.value;
  return probes;
}

}  // namespace

void BindTape(py::module_ m) {
  py::class_<PyTape, std::shared_ptr<PyTape>> tape(
      m, "Tape",
      "Records a program. After an error, every op on the tape raises the same error again. Nothing may be recorded "
      "while another thread compiles or runs a graph of the tape.");
  BindVar(m);
  py::class_<Initializer>(m, "Initializer", "The distribution of a parameter's initial values.");
  py::class_<PyScope>(m, "Scope")
      .def("__enter__", [](PyScope& self) { self.scope = std::make_unique<Scope>(self.tape.get(), self.name); })
      .def("__exit__", [](PyScope& self, const py::args&) { self.scope.reset(); });
  tape.def(py::init<>())
      .def("scope", MakeScope, py::arg("name"),
           "`with tape.scope(name):` adds the name to those of parameters and in errors.")
      .def("constant", MakeConstant, py::arg("value"), py::arg("dtype") = "f32",
           "Records a copy of an array, or of a number or list as `dtype`.")
      .def("parameter_name", ParameterName, py::arg("parameter"))
      .def("probes", Probes, "Returns named values, such as attention weights, by their full names.");
}

}  // namespace weft
