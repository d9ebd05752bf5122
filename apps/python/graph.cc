// weft.compile, weft.Graph, weft.Parameters, weft.Runner and weft.Outputs.
#include <algorithm>
#include <deque>

#include "absl/cleanup/cleanup.h"
#include "weft/apps/python/bind.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/run/check_gradients.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

struct PyGraph {
  std::shared_ptr<PyTape> tape;
  std::vector<Var> fetch;
  Graph graph;
};

// A runner of Python keeps its graph's tape and its parameters.
struct PyRunner {
  PyGraph graph;
  std::shared_ptr<Parameters> parameters;
  Runner runner;
  std::vector<Tensor> fetched = {};  // of the last execution
  uint64_t runs = 0;                 // executions that have begun
};

struct PyOutputs {
  std::shared_ptr<PyRunner> runner;
  Outputs outputs;
  uint64_t run = 0;
};

PyGraph CompileTape(const std::shared_ptr<PyTape>& tape, const std::vector<Var>& fetch, const std::vector<Var>& update,
                    const std::string& mode, const std::string& precision, const std::string& weights,
                    size_t memory_budget) {
  const CompileOptions options = {.fetch = VarList(fetch.begin(), fetch.end()),
                                  .update = VarList(update.begin(), update.end()),
                                  .mode = Choose<Mode>("mode", mode, {{"train", kTrain}, {"eval", kEval}}),
                                  .precision = ToDType(precision),
                                  .weights = ToDType(weights),
                                  .memory_budget = memory_budget};
  return {tape, fetch, WithoutGil([&] { return Compile(*tape, options); })};
}

// The feeds of one execution: a dict from inputs to arrays, which must last as long as the Feeds.
class Feeds {
 public:
  Feeds(const Tape* tape, const py::dict& feeds, absl::Span<const Tensor> overwritten = {}) {
    for (const auto& [key, value] : feeds) {
      if (!py::isinstance<PyVar>(key))
        throw py::type_error("run: wanted a dict from inputs, which are Vars, to arrays");
      const Var var = key.cast<Var>();
      const bool is_input = var.tape == tape && IsOf(kInputOp, var);
      if (!is_input)
        Raise(InvalidArgument("run: ", ToString(var.type()), " is fed, but is no input of the graph's tape"));
      const TensorType type = var.type();
      if (PyFloat_Check(value.ptr()) && type == TensorType{kF32, {}}) {
        pairs_.emplace_back(var, static_cast<float>(PyFloat_AS_DOUBLE(value.ptr())));
        continue;
      }
      const Program& program = tape->program();
      ArrayView& view = views_.emplace_back(value, type.dtype,
                                            absl::StrCat("input '", program.input(program.producer(var.id)).name, "'"));
      const Tensor fed = view.tensor();
      for (const Tensor& old : overwritten) {
        if (fed.data < old.data + old.type.bytes() && old.data < fed.data + fed.type.bytes()) view.Copy();
      }
      pairs_.emplace_back(var, view.tensor());
    }
  }

  absl::Span<const FeedPair> pairs() const { return pairs_; }

 private:
  std::deque<ArrayView> views_;
  absl::InlinedVector<FeedPair, 4> pairs_;
};

PyOutputs Run(const std::shared_ptr<PyRunner>& self, const py::dict& values) {
  const Feeds feeds(self->graph.tape.get(), values, self->fetched);
  const uint64_t run = ++self->runs;
  const Outputs outputs = WithoutGil([&] { return self->runner.Run(feeds.pairs()); });
  self->fetched.clear();
  for (const Var var : self->graph.fetch) self->fetched.push_back(outputs[var]);
  return {self, outputs, run};
}

// Returns the array of an output. A Var that was not fetched would end the program in C++.
py::object OutputArray(const PyOutputs& self, Var var) {
  const std::vector<Var>& fetch = self.runner->graph.fetch;
  if (std::none_of(fetch.begin(), fetch.end(), [&](Var v) { return v.tape == var.tape && v.id == var.id; })) {
    Raise(InvalidArgument("this Var was not fetched: ", ToString(var.type()), "; add it to the fetch of weft.compile"));
  }
  if (self.run != self.runner->runs) {
    Raise(absl::FailedPreconditionError("outputs: the runner has run again since, which overwrote them"));
  }
  const py::object array = ToNumpy(self.outputs[var], py::cast(self.runner));
  return var.shape().rank() == 0 ? array[py::tuple()] : array;  // a scalar is a copy
}

py::object ParameterArray(const std::shared_ptr<Parameters>& self, const std::string& name) {
  const absl::StatusOr<Tensor> found = self->Find(name);
  if (!found.ok()) throw py::key_error(std::string(found.status().message()));
  if (found->type.dtype == kBF16) Raise(InvalidArgument(name, ": NumPy has no dtype bf16"));
  return ToNumpy(*found, py::cast(self));
}

// Copies an array to a parameter, which no runner may use meanwhile.
void SetParameter(const std::shared_ptr<Parameters>& self, const std::string& name, const py::object& value) {
  const py::object array = ParameterArray(self, name);
  if (!self->TryLock()) Raise(absl::FailedPreconditionError(absl::StrCat(name, ": a runner is running")));
  const absl::Cleanup unlock = [&] { self->Unlock(); };
  array[py::ellipsis()] = value;
}

void CheckLoss(Var loss, const std::shared_ptr<Parameters>& parameters, const py::dict& values) {
  const Feeds feeds(loss.tape, values);
  WithoutGil([&] { return CheckGradients(loss, parameters.get(), feeds.pairs()); });
}

}  // namespace

void BindGraph(py::module_ m) {
  py::class_<PyGraph>(m, "Graph", "A compiled program. Several runners may share it.")
      .def("__str__", [](const PyGraph& self) { return PrintText(self.graph); });
  m.def("compile", CompileTape, py::arg("tape"), py::kw_only(), py::arg("fetch") = py::tuple(),
        py::arg("update") = py::tuple(), py::arg("mode") = "train", py::arg("precision") = "f32",
        py::arg("weights") = "f32", py::arg("memory_budget") = 0,
        "Compiles a tape to a graph that computes the values `fetch` and makes the updates `update`. mode: 'train', or "
        "'eval' without dropout. precision: 'f32' or 'bf16', of products. memory_budget: bytes of the arena; 0: any.");
  py::class_<Parameters, std::shared_ptr<Parameters>>(
      m, "Parameters",
      "Weights, moments and other state, by name. A Runner creates those that its graph needs. parameters[name] is a "
      "copy; parameters.view(name) shares the parameter's bytes.")
      .def(py::init([](uint64_t seed) { return std::make_shared<Parameters>(Parameters::Options{.seed = seed}); }),
           py::arg("seed") = 0)
      .def("__getitem__", [](const std::shared_ptr<Parameters>& self,
                             const std::string& name) { return ParameterArray(self, name).attr("copy")(); })
      .def("__setitem__", SetParameter)
      .def("__contains__", [](const Parameters& self, const std::string& name) { return self.Find(name).ok(); })
      .def("view", ParameterArray, py::arg("name"), "Returns an array that shares the parameter's bytes.")
      .def_property_readonly("seed", &Parameters::seed)
      .def_property("step", &Parameters::step, &Parameters::set_step);
  py::class_<PyOutputs>(
      m, "Outputs",
      "The fetched values of one run. outputs[var] is a NumPy array that shares the runner's memory: the runner's next "
      "run overwrites it. Values without axes are copies, and so are those of bf16, which become f32.")
      .def("__getitem__", OutputArray);
  py::class_<PyRunner, std::shared_ptr<PyRunner>>(m, "Runner", "Runs one graph on one set of parameters.")
      .def(py::init([](const PyGraph& graph, std::shared_ptr<Parameters> parameters, int threads, bool check_nan) {
             if (parameters == nullptr) parameters = std::make_shared<Parameters>();
             Parameters* const used = parameters.get();
             const RunnerOptions options = {.threads = threads, .check_nan = check_nan};
             std::shared_ptr<PyRunner> made(new PyRunner{graph, std::move(parameters), {graph.graph, used, options}});
             Raise(made->runner.status());
             return made;
           }),
           py::arg("graph"), py::arg("parameters") = py::none(), py::kw_only(), py::arg("threads") = 0,
           py::arg("check_nan") = false)
      .def("run", Run, py::arg("feeds") = py::dict(),
           "Runs the graph once on a dict from inputs to arrays. Contiguous arrays are not copied.")
      .def_readonly("parameters", &PyRunner::parameters)
      .def_property_readonly("first_nan", [](const PyRunner& self) { return self.runner.first_nan(); });
  m.def("check_gradients", CheckLoss, py::arg("loss"), py::arg("parameters"), py::arg("feeds") = py::dict(),
        "Compares the gradients of `loss` by all weights with central differences. Records on the loss's tape.");
}

}  // namespace weft
