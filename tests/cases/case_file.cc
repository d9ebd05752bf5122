#include "weft/tests/cases/case_file.h"

#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"

namespace weft {

absl::StatusOr<CaseFile> CaseFile::Open(const std::string& path) {
  const absl::StatusOr<std::string> read = ReadMaybeGzip(path);
  if (!read.ok()) return read.status();
  const absl::string_view bytes = *read;
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) return InvalidArgument(path, " is too short");
  std::copy_n(bytes.begin(), sizeof(length), reinterpret_cast<char*>(&length));
  const size_t data = sizeof(length) + length;
  if (data > bytes.size()) return InvalidArgument(path, " is too short");
  const nlohmann::json header =
      nlohmann::json::parse(bytes.begin() + sizeof(length), bytes.begin() + static_cast<int64_t>(data));
  CaseFile file;
  file.size_ = bytes.size() - data;
  file.data_ = file.arena_.Allocate(file.size_ + 1);
  std::memcpy(file.data_, bytes.data() + data, file.size_);
  for (const nlohmann::json& json : header.at("cases")) {
    Case& of = file.cases_.emplace_back();
    of.name = json.at("name");
    of.op = json.at("op");
    of.skip = json.value("skip", "");
    if (!of.skip.empty()) continue;
    of.opset = json.at("opset");
    of.attributes = json.at("attributes");
    WEFT_CHECK(absl::Base64Unescape(json.value("model", ""), &of.model));
    for (const auto& [key, side] : {std::pair{"inputs", &of.inputs}, {"outputs", &of.outputs}}) {
      for (const nlohmann::json& entry : json.at(key)) {
        side->push_back(entry.is_null() ? std::nullopt : std::optional(file.TensorAt(entry)));
      }
    }
  }
  return file;
}

Tensor CaseFile::TensorAt(const nlohmann::json& entry) const {
  Tensor tensor;
  WEFT_CHECK(ParseDType(entry.at(0).get<std::string>(), &tensor.type.dtype));
  for (int64_t dim : entry.at(1)) tensor.type.shape.Append(dim);
  const size_t offset = entry.at(2);
  WEFT_CHECK(offset + tensor.type.bytes() <= size_);
  tensor.data = data_ + offset;
  return tensor;
}

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.type.shape.elements()));
  Dispatch(tensor.type.dtype, [&](auto zero) {
    const auto* const elements = tensor.as<const decltype(zero)>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(elements[i]);
  });
  return values;
}

std::string Difference(const Tensor& got, const Tensor& wanted, double relative, double absolute) {
  if (got.type != wanted.type) return absl::StrCat("got ", ToString(got.type), ", wanted ", ToString(wanted.type));
  const std::vector<double> x = Doubles(got), y = Doubles(wanted);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool equal = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    const bool near = std::isfinite(y[i]) && std::abs(x[i] - y[i]) <= absolute + relative * std::abs(y[i]);
    if (equal || near) continue;
    return absl::StrFormat("element %d is %.17g, wanted %.17g", i, x[i], y[i]);
  }
  return "";
}

CaseInputs RecordInputs(Tape* tape, const Case& of) {
  CaseInputs inputs;
  for (const std::optional<Tensor>& input : of.inputs) {
    inputs.vars.push_back(input ? tape->Input(absl::StrCat("x", inputs.vars.size()), input->type) : Var{});
    if (input) inputs.feeds.push_back({inputs.vars.back(), *input});
  }
  return inputs;
}

std::vector<int64_t> CaseNode::Integers(size_t i) const {
  const std::vector<double> values = Doubles(*case_.inputs[i]);
  return {values.begin(), values.end()};
}

}  // namespace weft
