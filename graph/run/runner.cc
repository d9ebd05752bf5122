// A runner allocates the arena and resolves all operands to pointers once. Each execution then binds the fed arrays to
// the inputs and has the executor run the tasks. Each task, unless it is a join, runs one tile of each kernel call of
// its group, or some parts of these tiles.
#include "weft/graph/run/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "weft/base/arena.h"
#include "weft/base/cores.h"
#include "weft/base/flush_subnormals.h"
#include "weft/base/signal_block.h"
#include "weft/base/status.h"
#include "weft/graph/compile/stages.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;

int64_t Now() {  // nanoseconds
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool HasNan(const Tensor& tensor) {
  if (!IsFloat(tensor.type.dtype)) return false;
  return Dispatch(tensor.type.dtype, [&](auto zero) {
    return absl::c_any_of(tensor.span<decltype(zero)>(), [](auto x) { return std::isnan(static_cast<double>(x)); });
  });
}

// Returns OutOfRange if an integer of `tensor`, which is fed to the input `spec`, breaks the input's bounds. The
// message names the input and the integer's position.
absl::Status CheckBounds(const InputSpec& spec, const Tensor& tensor) {
  if (spec.bounds.below == 0 || spec.type.dtype != kI32) return absl::OkStatus();
  const absl::Span<const int32_t> values = tensor.span<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i];
    if ((value >= 0 && value < spec.bounds.below) || value == spec.bounds.ignored) continue;
    return absl::OutOfRangeError(absl::StrCat("input '", spec.name, "' ", ToString(spec.type), ": ", value, " at ",
                                              IndexText(spec.type.shape, static_cast<int64_t>(i)), " is not below ",
                                              spec.bounds.below, " and at least 0"));
  }
  return absl::OkStatus();
}

}  // namespace

struct Runner::State {
  State(Graph g, Parameters* p, RunnerOptions o) : graph(std::move(g)), parameters(p), options(o) {}

  absl::Status Prepare() {
    if (options.threads < 0 || options.threads > kMaxThreads) {
      return InvalidArgument("run: threads is ", options.threads, ", but must be in 0 .. ", kMaxThreads);
    }
    if (options.policy == nullptr) return InvalidArgument("run: policy is null");
    const Program& program = compiled().program;
    std::vector<ParameterSpec> specs;
    input_used.resize(program.inputs.size());
    for (const Node& node : program.nodes) {
      if (node.op == &kParameterOp) specs.push_back(program.parameter(node));
      if (node.op == &kInputOp) input_used[node.attrs.as<SourceAttrs>().index] = true;
    }
    WEFT_RETURN_IF_ERROR(parameters->Create(specs));
    parameter_data.resize(program.parameters.size());  // null if the graph doesn't need the parameter
    for (const Node& node : program.nodes) {
      if (node.op != &kParameterOp) continue;
      parameter_data[node.attrs.as<SourceAttrs>().index] = parameters->Find(program.parameter(node).name)->data;
    }
    for (const ConstantData& constant : program.constants) {  // copied, because kernels need them aligned
      constant_data.push_back(memory.Allocate(constant.type.bytes()));
      if (constant_data.back() == nullptr) return OutOfMemory();
      std::copy(constant.bytes->begin(), constant.bytes->end(), constant_data.back());
    }
    input_data.resize(program.inputs.size());
    input_fed.resize(program.inputs.size());
    arena = memory.Allocate(compiled().memory.planned);
    if (arena == nullptr) return OutOfMemory();

    for (uint32_t s = 0; s < compiled().calls.size(); ++s) {
      first.push_back(operands.size());
      auto ids = node(s).inputs;
      for (ValueId id : node(s).outputs()) ids.push_back(id);
      for (ValueId id : ids) {
        const Address& address = compiled().addresses[id];
        if (address.kind == Address::Kind::kInput) fed.push_back({operands.size(), address.index});
        operands.push_back({program.value(id).type, Resolve(id)});
      }
    }
    for (const auto& [tape_value, value] : compiled().fetches) {
      fetched.push_back({tape_value, {program.value(value).type, Resolve(value)}});
    }
    messages_left.resize(compiled().calls.size());
    for (const KernelCall& call : compiled().calls) has_messages = has_messages || !call.messages.empty();
    if (has_messages && (options.transport == nullptr || options.check_nan)) {
      return InvalidArgument("run: the graph has messages to other ranks, but ",
                             options.check_nan ? "check_nan runs on one rank" : "the runner has no transport");
    }
    if (options.timed) {
      undivided = compiled().schedule;
      undivided.parts.clear();
    }
    executor = MakeExecutor(*options.policy, options.timed ? &undivided : &compiled().schedule,
                            options.threads > 0 ? options.threads : Cores());
    if (options.timed) tile_times.resize(compiled().tiles.size());
    for (int i = 0; i < executor->threads(); ++i) {
      workspaces.push_back(memory.Allocate(compiled().workspace_bytes));
      if (workspaces.back() == nullptr) return OutOfMemory();
    }
    return absl::OkStatus();
  }

  absl::Status OutOfMemory() const {
    return absl::ResourceExhaustedError(absl::StrCat("run: no memory for the graph's ", compiled().memory.planned,
                                                     " bytes of values, its constants and workspaces"));
  }

  std::byte* Resolve(ValueId id) const {
    const Address& address = compiled().addresses[id];
    if (address.kind == Address::Kind::kArena) return arena + address.offset;
    if (address.kind == Address::Kind::kInput) return input_data[address.index];
    if (address.kind == Address::Kind::kParameter) return parameter_data[address.index];
    return constant_data[address.index];
  }

  // Resolves all operands and fetched values again, after the bytes of parameters have changed.
  void ResolveOperands() {
    size_t operand = 0;
    for (uint32_t s = 0; s < compiled().calls.size(); ++s) {
      for (ValueId id : node(s).inputs) operands[operand++].data = Resolve(id);
      for (ValueId id : node(s).outputs()) operands[operand++].data = Resolve(id);
    }
    for (size_t i = 0; i < fetched.size(); ++i) fetched[i].second.data = Resolve(compiled().fetches[i].second);
  }

  absl::Status BindFeeds(absl::Span<const FeedPair> feeds) {
    const Program& program = compiled().program;
    std::fill(input_fed.begin(), input_fed.end(), false);
    for (const auto& [var, feed] : feeds) {
      if (var.tape == nullptr || var.tape->id() != compiled().tape_id) {
        return InvalidArgument("run: a feed is for a Var that is not on the graph's tape");
      }
      if (var.tape->program().value(var.id).producer == kNoNode) return var.tape->status();
      const Node& source = var.tape->program().producer(var.id);
      if (source.op != &kInputOp) {
        return InvalidArgument("run: a feed is for ", source.op->name, " ", ToString(var.type()),
                               ", which is not an input");
      }
      const size_t index = source.attrs.as<SourceAttrs>().index;
      if (index >= program.inputs.size()) continue;  // the graph doesn't need it: it was recorded after compiling
      const InputSpec& spec = program.inputs[index];
      const absl::StatusOr<Tensor> tensor = feed.As(spec.type);
      if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("input '", spec.name, "'"));
      if (input_fed[index]) return InvalidArgument("input '", spec.name, "' is fed twice");
      WEFT_RETURN_IF_ERROR(CheckBounds(spec, *tensor));
      input_fed[index] = true;
      input_data[index] = tensor->data;
    }
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (!input_used[i] || input_fed[i]) continue;
      return InvalidArgument("input '", program.inputs[i].name, "' ", ToString(program.inputs[i].type), " was not fed");
    }
    for (const auto& [operand, input] : fed) operands[operand].data = input_data[input];
    return absl::OkStatus();
  }

  void RunTile(uint32_t call, const Rect& tile, int worker) {
#ifndef NDEBUG
    MakeNan(call, tile);
#endif
    const FlushSubnormals flush;  // not around the executor, because TBB passes the CPU's flags on to other tasks
    compiled().calls[call].kernel({.attrs = node(call).attrs,
                                   .inputs = inputs(call),
                                   .outputs = outputs(call),
                                   .workspace = workspaces[worker],
                                   .random = random},
                                  tile);
  }

  void Execute() {
    const SignalBlock block;
    if (options.check_nan) return ExecuteAndCheckNan();
    if (options.timed) {
      std::fill(tile_times.begin(), tile_times.end(), TileTime{});
      run_began = Now();
    }
    executor->Run([this](TaskPart part, int worker) {
      const uint32_t t = part.task;
      const Task& task = compiled().tasks[t];
      if (task.group == Task::kJoin) return;
      const Group& group = compiled().groups[task.group];
      if (!compiled().calls[group.first_call].messages.empty()) return StartMessages(t, group.first_call, worker);
      for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
        if (!gate.Passes(node(s).op->writes > 0)) return;
        const uint32_t tile = compiled().calls[s].first_tile + task.tile;
        const int64_t begin = options.timed ? Now() : 0;
        const auto run = [&](Rect rect) { RunTile(s, rect, worker); };
        const Rect whole = compiled().tiles[tile];
        options.timed ? run(whole) : ForEachRect(group, whole, part.begin, part.end, run);
        if (options.timed) tile_times[tile] = {begin - run_began, Now() - run_began, worker};
      }
    });
  }

  // Starts the messages of task `t`, whose only kernel call is `call`. Runs its kernel before, if there is one.
  void StartMessages(uint32_t t, uint32_t call, int worker) {
    if (compiled().calls[call].kernel != nullptr) {
      RunTile(call, compiled().tiles[compiled().calls[call].first_tile], worker);
    }
    const std::vector<Message>& messages = compiled().calls[call].messages;
    messages_left[call] = static_cast<uint32_t>(messages.size());
    if (options.timed) {
      const int lane = messages[0].sends ? TileTime::kSendLane : TileTime::kReceiveLane;
      tile_times[compiled().calls[call].first_tile] = {Now() - run_began, 0, lane};
    }
    for (const Message& message : messages) {
      const Tensor& tensor = operands[first[call] + static_cast<size_t>(message.operand)];
      const size_t size = SizeOf(tensor.type.dtype), begin = static_cast<size_t>(message.begin) * size;
      const absl::Span<std::byte> bytes(tensor.data + begin, static_cast<size_t>(message.end) * size - begin);
      const Transport::Done done = {EndMessage, this, t};
      if (message.sends) {
        options.transport->Send(bytes, message.peer, message.tag, done);
      } else {
        options.transport->Receive(bytes, message.peer, message.tag, done);
      }
    }
  }

  // Runs on the transport's thread when a message of task `t` has ended. `object`: the State.
  static void EndMessage(void* object, uint32_t t) {
    State& state = *static_cast<State*>(object);
    const uint32_t call = state.compiled().groups[state.compiled().tasks[t].group].first_call;
    if (--state.messages_left[call] > 0) return;
    if (state.options.timed) state.tile_times[state.compiled().calls[call].first_tile].end = Now() - state.run_began;
    state.executor->End(t);
  }

  // Runs one kernel call after the other, in serial order, and checks the inputs and outputs of each for NaN.
  void ExecuteAndCheckNan() {
    first_nan = SourceWithNan();
    for (uint32_t s = 0; s < compiled().calls.size(); ++s) {
      if (!gate.Passes(node(s).op->writes > 0)) return;
      const bool clean = absl::c_none_of(inputs(s), HasNan);  // checked before the call, which may overwrite its inputs
      for (const Rect& tile : compiled().tiles_of(s)) RunTile(s, tile, 0);
      for (const Tensor& out : outputs(s)) {
        if (!clean || !first_nan.empty() || !HasNan(out)) continue;
        const std::string& scope = compiled().program.scope(node(s));
        first_nan = absl::StrCat(node(s).op->name, " ", ToString(out.type), scope.empty() ? "" : " at ", scope);
      }
    }
  }

  // Before a tile runs, fills its outputs with NaN, except state and outputs in place. So tests see elements that a
  // kernel forgets to write.
  void MakeNan(uint32_t call, const Rect& tile) {
    const Node& n = node(call);
    const Types input_types = compiled().program.InputTypes(n), output_types = compiled().program.OutputTypes(n);
    for (uint32_t i = n.op->writes; i < n.output_count; ++i) {
      const Tensor& out = outputs(call)[i];
      if (n.op->in_place >= 0 && inputs(call)[n.op->in_place].data == out.data) continue;
      const int operand = static_cast<int>(input_types.size() + i);
      const Rect rect = Access(*n.op, {n.attrs, input_types, output_types}, operand, tile);
      const size_t size = SizeOf(out.type.dtype);
      for (int64_t row = rect.row_begin; row < rect.row_end; ++row) {
        std::memset(out.data + (row * out.type.shape.cols() + rect.col_begin) * size, 0xff, rect.cols() * size);
      }
    }
  }

  // Returns the first input or parameter that has a NaN before the execution, like "input 'x'", or "" if none has.
  std::string SourceWithNan() const {
    const Program& program = compiled().program;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (input_used[i] && HasNan({program.inputs[i].type, input_data[i]})) {
        return absl::StrCat("input '", program.inputs[i].name, "'");
      }
    }
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      if (parameter_data[i] != nullptr && HasNan({program.parameters[i].type, parameter_data[i]})) {
        return absl::StrCat("parameter '", program.parameters[i].name, "'");
      }
    }
    return "";
  }

  const CompiledGraph& compiled() const { return graph.compiled(); }
  absl::Span<Tensor> inputs(uint32_t call) { return absl::MakeSpan(operands).subspan(first[call], input_count(call)); }
  absl::Span<Tensor> outputs(uint32_t call) {
    return absl::MakeSpan(operands).subspan(first[call] + input_count(call), node(call).output_count);
  }
  const Node& node(uint32_t call) const { return compiled().program.node(compiled().calls[call].node); }
  size_t input_count(uint32_t call) const { return node(call).inputs.size(); }

  Graph graph;
  Parameters* parameters;
  RunnerOptions options;
  absl::Status status;
  Arena memory;
  std::byte* arena = nullptr;
  std::vector<std::byte*> workspaces;                                 // by worker
  std::vector<std::byte*> parameter_data, constant_data, input_data;  // by index in the program's lists
  std::vector<bool> input_used, input_fed;  // by index: whether the graph reads it; whether this call of Run feeds it
  std::vector<Tensor> operands;             // of all kernel calls: inputs, then outputs
  std::vector<size_t> first;                // kernel call → its first operand
  std::vector<uint32_t> messages_left;      // by kernel call: number of messages that have not ended
  bool has_messages = false;
  std::vector<std::pair<size_t, uint32_t>> fed;  // (operand, input): the pointers that each call of Run sets
  Schedule undivided;  // the schedule of timed executions, in which each tile runs on one worker
  std::unique_ptr<Executor> executor;
  std::vector<TileTime> tile_times;
  int64_t run_began = 0;  // by Now
  RandomStream random;
  CancellationGate gate;
  std::vector<std::pair<ValueId, Tensor>> fetched;  // (value of the tape, its tensor)
  std::string first_nan;
};

Runner::Runner(Graph graph, Parameters* parameters, RunnerOptions options)
    : state_(std::make_unique<State>(std::move(graph), parameters, options)) {
  state_->status = state_->Prepare();
}

Runner::~Runner() = default;

absl::StatusOr<Outputs> Runner::Run(absl::Span<const FeedPair> feeds, const RunOptions& options) {
  State& s = *state_;
  WEFT_RETURN_IF_ERROR(s.status);
  if (!s.parameters->TryLock()) {
    return absl::FailedPreconditionError("run: these parameters are in use: a call of Run, Save or Load has not ended");
  }
  const absl::Cleanup unlock = [&] { s.parameters->Unlock(); };
  WEFT_RETURN_IF_ERROR(s.BindFeeds(feeds));
  s.random = {.seed = s.parameters->seed(), .step = s.parameters->step()};
  s.gate.Open(s.has_messages ? RunOptions{} : options);
  s.gate.Passes(/*writes=*/false);  // so that a graph without tasks can be stopped, too
  s.Execute();
  if (!s.gate.status().ok()) s.executor->Forget();
  WEFT_RETURN_IF_ERROR(s.gate.status());
  if (s.compiled().updates) s.parameters->set_step(s.parameters->step() + 1);
  Outputs outputs;
  outputs.tape_id_ = s.compiled().tape_id;
  outputs.tensors_ = s.fetched;
  return outputs;
}

absl::Status Runner::UseParameters(absl::Span<const std::pair<std::string, std::string>> names) {
  State& s = *state_;
  WEFT_RETURN_IF_ERROR(s.status);
  const std::vector<ParameterSpec>& specs = s.compiled().program.parameters;
  absl::flat_hash_map<absl::string_view, size_t> indices;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (s.parameter_data[i] != nullptr) indices[specs[i].name] = i;
  }
  std::vector<std::pair<size_t, std::byte*>> data;
  for (const auto& [name, other] : names) {
    const auto index = indices.find(name);
    const absl::StatusOr<Tensor> tensor = s.parameters->Find(other);
    if (index == indices.end()) return InvalidArgument("run: the graph has no parameter '", name, "'");
    if (!tensor.ok()) return InvalidArgument("run: there is no parameter '", other, "'");
    const TensorType& wanted = specs[index->second].type;
    if (tensor->type != wanted) {
      return InvalidArgument("run: '", other, "' is ", ToString(tensor->type), ", but '", name, "' is ",
                             ToString(wanted));
    }
    data.emplace_back(index->second, tensor->data);
  }
  for (const auto& [index, bytes] : data) s.parameter_data[index] = bytes;
  s.ResolveOperands();
  return absl::OkStatus();
}

absl::Span<const TileTime> Runner::tile_times() const { return state_->tile_times; }
const absl::Status& Runner::status() const { return state_->status; }
int Runner::workers_entered() const {
  if (state_->executor == nullptr) return 0;
  return state_->options.check_nan ? 1 : state_->executor->workers_entered();
}
std::optional<uint64_t> Runner::steals() const {
  if (state_->executor == nullptr || state_->options.check_nan) return std::nullopt;
  return state_->executor->steals();
}
const std::string& Runner::first_nan() const { return state_->first_nan; }

}  // namespace weft
