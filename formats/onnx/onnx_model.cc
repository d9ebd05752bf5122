#include "weft/formats/onnx/onnx_model.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/stubs/logging.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/onnx.pb.h"
#include "weft/formats/onnx/onnx_node.h"

namespace weft {

struct OnnxFile {
  // Tensors that lie in the message own it; they must not own the file, which holds them.
  std::shared_ptr<onnx::Model> model = std::make_shared<onnx::Model>();
  int opset = kMaxOnnxOpset;
  std::vector<OnnxPort> inputs, outputs;
  absl::flat_hash_map<std::string, OnnxValue> initializers;
  std::vector<NamedTensor> weights;
};

namespace {

// The entry of a value's metadata by which torch's exporter tells parameters from buffers.
constexpr char kKind[] = "pkg.torch.export.graph_signature.InputSpec.kind";

absl::StatusOr<OnnxPort> PortOf(const onnx::ValueInfo& info) {
  WEFT_ASSIGN_OR_RETURN(const OnnxElement element, OnnxElementOf(info.type().tensor_type().elem_type()));
  OnnxPort port = {.name = info.name(), .dtype = element.dtype};
  port.has_shape = info.type().tensor_type().has_shape();
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    const bool is_number = dim.value_case() == onnx::Shape::Dimension::kDimValue;
    port.sizes.push_back(is_number ? OnnxPort::Size{.size = dim.dim_value()}
                                   : OnnxPort::Size{.name = dim.dim_param().empty() ? "?" : dim.dim_param()});
  }
  return port;
}

// Functions must import opsets that are read; their nodes have the meaning that the model's opset gives them.
absl::Status CheckOpsets(const onnx::Model& model, int* opset) {
  std::vector<const google::protobuf::RepeatedPtrField<onnx::OperatorSet>*> imports;
  for (const onnx::Function& function : model.functions()) imports.push_back(&function.opset_import());
  imports.push_back(&model.opset_import());
  for (const auto* const import : imports) {
    for (const onnx::OperatorSet& each : *import) {
      if (!each.domain().empty() && each.domain() != "ai.onnx") continue;
      *opset = static_cast<int>(std::clamp<int64_t>(each.version(), 0, kMaxOnnxOpset));
      if (each.version() >= kMinOnnxOpset && each.version() <= kMaxOnnxOpset) continue;
      return absl::UnimplementedError(absl::StrCat("its opset is ", each.version(), "; opsets from ", kMinOnnxOpset,
                                                   " to ", kMaxOnnxOpset, " are read"));
    }
  }
  if (model.opset_import().empty()) return InvalidArgument("it does not say its opset");
  return absl::OkStatus();
}

absl::Status ReadInitializers(const std::string& folder, OnnxFile* file) {
  absl::flat_hash_map<std::string, std::string> kinds;
  for (const onnx::ValueInfo& info : file->model->graph().value_info()) {
    for (const onnx::Entry& entry : info.metadata_props()) {
      if (entry.key() == kKind) kinds[info.name()] = entry.value();
    }
  }
  OnnxFiles files(folder);
  for (const onnx::Tensor& tensor : file->model->graph().initializer()) {
    const std::string what = absl::StrCat("initializer '", tensor.name(), "'");
    WEFT_ASSIGN_OR_RETURN(OnnxConstant read, Annotate(ReadOnnxTensor(tensor, &files, file->model), what));
    const std::string kind = kinds[tensor.name()];
    const TensorType type = read.tensor.type;
    const bool is_weight = IsFloat(type.dtype) && (type.shape.elements() > 1 || kind == "PARAMETER");
    if (is_weight) file->weights.push_back({tensor.name(), read.tensor});
    OnnxValue value = {.known = std::make_shared<OnnxConstant>(std::move(read)),
                       .weight = is_weight ? tensor.name() : "",
                       .is_frozen = !kind.empty() && kind != "PARAMETER",
                       .type = tensor.data_type()};
    if (tensor.name().empty() || !file->initializers.emplace(tensor.name(), std::move(value)).second) {
      return InvalidArgument(what, " is there twice or has no name");
    }
  }
  return absl::OkStatus();
}

std::string Text(const OnnxPort& port) {
  const auto append = [](std::string* out, const OnnxPort::Size& each) {
    absl::StrAppend(out, each.name.empty() ? absl::StrCat(each.size) : each.name);
  };
  const std::string sizes = absl::StrCat("[", absl::StrJoin(port.sizes, ",", append), "]");
  return absl::StrCat(Name(port.dtype), port.has_shape ? sizes : " of any shape");
}

// Checks an input's type. `sizes`: the named sizes of the inputs so far.
absl::Status CheckInput(const OnnxPort& port, const TensorType& type,
                        absl::flat_hash_map<std::string, int64_t>* sizes) {
  bool fits = type.dtype == port.dtype;
  if (port.has_shape) fits = fits && type.shape.rank() == static_cast<int>(port.sizes.size());
  for (size_t i = 0; i < port.sizes.size() && fits; ++i) {
    const int64_t size = type.shape.dim(static_cast<int>(i));
    const auto& [number, name] = port.sizes[i];
    if (name.empty()) fits = size == number;
    if (name.empty() || name == "?") continue;
    const auto [known, is_new] = sizes->emplace(name, size);
    if (known->second != size) {
      return InvalidArgument("input '", port.name, "' is ", ToString(type), ", so ", name, " is ", size,
                             ", but another input has ", known->second);
    }
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("input '", port.name, "' is ", ToString(type), "; the model wants ", Text(port));
}

}  // namespace

absl::StatusOr<OnnxModel> OnnxModel::Parse(absl::string_view bytes, const std::string& folder) {
  const auto file = std::make_shared<OnnxFile>();
  const google::protobuf::LogSilencer silencer;  // protobuf prints an error for a damaged file
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !file->model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("it is no ONNX model, or it is damaged");
  }
  WEFT_RETURN_IF_ERROR(CheckOpsets(*file->model, &file->opset));
  WEFT_RETURN_IF_ERROR(ReadInitializers(folder, file.get()));
  const onnx::Graph& graph = file->model->graph();
  for (const auto& [infos, ports] : {std::pair{&graph.input(), &file->inputs}, {&graph.output(), &file->outputs}}) {
    for (const onnx::ValueInfo& info : *infos) {
      WEFT_ASSIGN_OR_RETURN(ports->emplace_back(), Annotate(PortOf(info), absl::StrCat("'", info.name(), "'")));
    }
  }
  return OnnxModel(file);
}

absl::StatusOr<OnnxModel> OnnxModel::Open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  return Annotate(Parse(mapped.bytes(), std::filesystem::path(path).parent_path().string()), path);
}

const std::vector<OnnxPort>& OnnxModel::inputs() const { return file_->inputs; }
const std::vector<OnnxPort>& OnnxModel::outputs() const { return file_->outputs; }
absl::Span<const NamedTensor> OnnxModel::weights() const { return file_->weights; }
void OnnxModel::Provide(Parameters* parameters) const { parameters->Provide(file_->weights, file_); }

absl::StatusOr<VarList> OnnxModel::Record(Tape* tape, absl::Span<const OnnxInput> inputs) const {
  WEFT_RETURN_IF_ERROR(tape->status());
  absl::flat_hash_map<std::string, OnnxValue> values = file_->initializers;
  absl::flat_hash_map<std::string, int64_t> sizes;
  absl::flat_hash_set<std::string> given;
  for (const OnnxInput& input : inputs) {
    const OnnxPort* const port = FindRow(file_->inputs, input.name);
    if (port == nullptr || !given.insert(input.name).second) {
      return InvalidArgument("the model has no input '", input.name, "', or it is given twice",
                             DidYouMean(input.name, RowNames(file_->inputs)));
    }
    OnnxValue value;
    if (const Tensor* const tensor = std::get_if<Tensor>(&input.value)) {
      value.known = std::make_shared<OnnxConstant>(CopyToConstant(*tensor));
    } else {
      value.var = std::get<Var>(input.value);
      if (value.var.tape != tape) return InvalidArgument("input '", input.name, "' is not on the tape");
    }
    WEFT_RETURN_IF_ERROR(CheckInput(*port, value.tensor_type(), &sizes));
    const auto& info = file_->model->graph().input(static_cast<int>(port - file_->inputs.data()));
    value.type = info.type().tensor_type().elem_type();
    values[input.name] = std::move(value);
  }
  for (const OnnxPort& port : file_->inputs) {
    if (!values.contains(port.name)) return InvalidArgument("input '", port.name, "' is missing");
  }
  return RecordOnnxGraph(*file_->model, file_->opset, tape, std::move(values));
}

}  // namespace weft
