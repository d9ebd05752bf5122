#include "weft/apps/python/bind.h"

#include "weft/options/option_names.h"

namespace weft {

void Raise(const absl::Status& status) {
  if (status.ok()) return;
  PyObject* type = PyExc_RuntimeError;
  if (absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)) type = PyExc_ValueError;
  if (absl::IsNotFound(status)) type = PyExc_FileNotFoundError;
  if (absl::IsCancelled(status)) type = PyExc_KeyboardInterrupt;
  PyErr_SetObject(type, Recorded(std::string(status.message())).ptr());
  throw py::error_already_set();
}

Var Recorded(Var result) {
  Raise(result.tape->status());
  return result;
}

VarList Recorded(VarList results) {
  if (!results.empty()) Raise(results[0].tape->status());
  return results;
}

py::tuple Recorded(const BatchNormResult& results) {
  return py::make_tuple(Recorded(results.y), results.mean, results.variance);
}

py::str Recorded(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
}

DType ToDType(const std::string& name) {
  DType dtype = kF32;
  if (!ParseDType(name, &dtype)) Raise(InvalidArgument("dtype: '", name, "' is unknown; wanted f32, f64, bf16, ..."));
  return dtype;
}

void NotEmpty(const char* function, const std::vector<Var>& parts) {
  if (parts.empty()) Raise(InvalidArgument(function, ": got no value, wanted at least one"));
}

bool IsOf(const OpDef& source, Var var) {
  const Program& program = var.tape->program();
  return program.value(var.id).producer != kNoNode && program.producer(var.id).op == &source;
}

GivenFlags ToFlags(const GivenFlags& texts, const Hyperparameters& table) {
  std::vector<std::string> flags;
  for (const Hyperparameter& row : table) flags.push_back(row.flag);
  GivenFlags given;
  for (const auto& [name, text] : texts) {
    const std::string flag = FindOption(name, flags);
    if (flag.empty()) {
      throw py::type_error(absl::StrCat("unknown option '", name, "'", Suggestion(name, flags, NameStyle::kKey)));
    }
    const auto [at, first] = given.try_emplace(flag, text);
    if (!first && at->second != text) {
      throw py::type_error(absl::StrCat("two values for the option '", flag, "', which has several names"));
    }
  }
  return given;
}

GivenFlags SetOptions(const GivenFlags& texts, const Hyperparameters& table) {
  GivenFlags given = ToFlags(texts, table);
  Raise(SetFromTexts(given, table));
  return given;
}

}  // namespace weft

namespace pybind11::detail {

bool type_caster<weft::Var>::load(handle from, bool /*convert*/) {
  make_caster<weft::PyVar> caster;
  if (from.is_none() || !caster.load(from, false)) return false;
  value = cast_op<weft::PyVar&>(caster).var;
  return true;
}

handle type_caster<weft::Var>::cast(weft::Var var, return_value_policy /*policy*/, handle parent) {
  if (var.tape == nullptr) return none().release();
  weft::PyVar made = {static_cast<weft::PyTape*>(var.tape)->shared_from_this(), var};
  return make_caster<weft::PyVar>::cast(std::move(made), return_value_policy::move, parent);
}

}  // namespace pybind11::detail
