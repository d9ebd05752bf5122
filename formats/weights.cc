// Copies of a Weights share the file and the arena that hold the tensors' bytes. A rule that transposes a tensor
// allocates new bytes; other rules only rename, split or drop.
#include "weft/formats/weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/dtype.h"
#include "weft/formats/weight_files.h"

namespace weft {
namespace {

// If `name` fits `pattern`, returns the text that # stands for.
std::optional<std::string> Match(absl::string_view pattern, absl::string_view name) {
  const size_t hash = pattern.find('#');
  if (hash == absl::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const absl::string_view before = pattern.substr(0, hash), after = pattern.substr(hash + 1);
  if (name.size() < before.size() + after.size() || !absl::StartsWith(name, before) || !absl::EndsWith(name, after)) {
    return std::nullopt;
  }
  return std::string(name.substr(before.size(), name.size() - before.size() - after.size()));
}

void Transpose(const Tensor& from, const Tensor& to) {
  const int64_t rows = from.type.shape.dim(0), cols = from.type.shape.dim(1);
  constexpr int64_t kBlock = 16;  // rows and columns of a block that stays in the L1 cache
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t last = std::min(rows, first + kBlock);
    for (int64_t col = 0; col < cols; ++col) {
      for (int64_t row = first; row < last; ++row)
        to.as<float>()[col * rows + row] = from.as<float>()[row * cols + col];
    }
  }
}

// Elements `begin` to `end` - 1 of a tensor or, in a block format, these of its blocks.
struct Part {
  const NamedTensor* named;
  int64_t begin, end;
};

// Returns the index of the first element of `part` whose exponent has all bits of `exponent`, or `part.end` if there is
// none. Such a number is NaN or infinite. `Bits`: the bits of an element. Examines 64 numbers at a time, by additions
// that the compiler turns into vector instructions: the lowest bit of the exponent, added to a number without its sign,
// carries into the place of the sign if and only if all bits of the exponent are set.
template <class Bits>
int64_t FindNotFinite(const Part& part, Bits exponent) {
  constexpr int64_t kAtOnce = 64;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1)), kOthers = static_cast<Bits>(~kSign);
  const Bits lowest = static_cast<Bits>(kSign - exponent);
  const Bits* const numbers = part.named->tensor.as<const Bits>();
  int64_t i = part.begin;
  for (; i + kAtOnce <= part.end; i += kAtOnce) {
    Bits carries = 0;
    for (int64_t k = 0; k < kAtOnce; ++k) carries |= static_cast<Bits>((numbers[i + k] & kOthers) + lowest);
    if ((carries & kSign) != 0) break;
  }
  while (i < part.end && (numbers[i] & exponent) != exponent) ++i;
  return i;
}

// Returns the index of the first element of `part` that is NaN or infinite, or of the first block whose scale is, or
// `part.end` if there is none.
int64_t FindNotFinite(const Part& part) {
  const auto& [dtype, shape] = part.named->tensor.type;
  if (dtype == kF32) return FindNotFinite(part, uint32_t{0x7f800000});
  if (dtype == kBF16) return FindNotFinite(part, uint16_t{0x7f80});
  if (dtype == kF16) return FindNotFinite(part, uint16_t{0x7c00});
  for (int64_t i = part.begin; i < part.end; ++i) {
    if (!IsFiniteBlock(dtype, part.named->tensor.data + static_cast<size_t>(i) * RowOf(dtype).bytes)) return i;
  }
  return part.end;
}

}  // namespace

// All cores search, because a command that generates a few tokens would otherwise wait for this longer than for the
// tokens.
absl::Status CheckFinite(const std::string& path, const Weights& weights) {
  constexpr int64_t kPartBytes = 4 << 20;
  std::vector<Part> parts;
  for (const NamedTensor& named : weights.tensors()) {
    const TensorType& type = named.tensor.type;
    if (!IsWeightFormat(type.dtype)) continue;
    const auto size = static_cast<int64_t>(BytesOf(type.dtype, 1)), count = static_cast<int64_t>(type.bytes()) / size;
    for (int64_t begin = 0; begin < count; begin += kPartBytes / size) {
      parts.push_back({&named, begin, std::min(begin + kPartBytes / size, count)});
    }
  }
  std::atomic<size_t> next = 0, first = parts.size();  // the next part to search, and the first that is not finite
  const auto search = [&] {
    for (size_t i = next++; i < first; i = next++) {
      if (FindNotFinite(parts[i]) == parts[i].end) continue;
      size_t known = first;
      while (i < known && !first.compare_exchange_weak(known, i)) {
      }
    }
  };
  std::vector<std::future<void>> others;
  // If no thread can be started, std::async defers the call, which then never happens: `search` below does all.
  for (size_t i = 1; i < std::min<size_t>(Cores(), parts.size()); ++i) others.push_back(std::async(search));
  search();
  others.clear();  // waits for the threads
  if (first == parts.size()) return absl::OkStatus();
  const auto& [name, tensor] = *parts[first].named;
  const auto& [dtype, shape] = tensor.type;
  const int64_t found = FindNotFinite(parts[first]), cols = shape.cols(), blocks = BlocksOf(dtype, cols);
  const int64_t element = found / blocks * cols + found % blocks * RowOf(dtype).block;
  float value;
  DecodeWeight(dtype, tensor.data + static_cast<size_t>(found) * BytesOf(dtype, 1), {&value, 1});
  return absl::DataLossError(absl::StrCat(path, ": element ", element, " of '", name, "' ", ToString(tensor.type),
                                          " is ", std::isnan(value) ? "NaN" : "infinite"));
}

absl::StatusOr<Weights> Weights::Read(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadStored(path));
  WEFT_RETURN_IF_ERROR(Annotate(weights.ConvertToF32(), weights.path_));
  return weights;
}

absl::StatusOr<Weights> Weights::ReadStored(const std::string& path, WantedChecksum checksum) {
  WEFT_ASSIGN_OR_RETURN(const WeightFiles files, FindWeightFiles(path));
  Weights weights;
  weights.path_ = files.path;
  absl::flat_hash_map<std::string, std::string> origins;  // the file of each tensor
  for (const auto& [file, wanted] : files.tensors) {
    const absl::StatusOr<std::shared_ptr<const TensorFile>> opened = OpenTensorFile(file, checksum);
    if (!opened.ok()) return file == files.path ? opened.status() : Annotate(opened.status(), files.path);
    weights.files_.push_back(*opened);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : (*opened)->tensors()) {
      names.push_back(name);
      if (tensor.type.dtype != kF64) {
        weights.tensors_.push_back({name, tensor});
        continue;
      }
      const absl::StatusOr<Tensor> rounded = weights.Add(name, {kF32, tensor.type.shape});
      if (!rounded.ok()) return Annotate(rounded.status(), file);
      absl::c_copy(tensor.span<const double>(), rounded->as<float>());
    }
    for (const auto& unread : (*opened)->unread()) {
      names.push_back(unread.first);
      weights.unread_.push_back(unread);
    }
    for (const std::string& name : names) {
      const auto [origin, is_new] = origins.emplace(name, file);
      if (!is_new) return InvalidArgument(files.path, ": '", name, "' is in ", origin->second, " and in ", file);
    }
    for (const std::string& name : wanted) {
      const auto origin = origins.find(name);
      if (origin != origins.end() && origin->second == file) continue;
      return InvalidArgument(files.path, ": '", name, "' should be in ", file, ", which lacks it");
    }
  }
  return weights;
}

absl::Status Weights::Fit(absl::Span<const ParameterSpec> wanted) {
  absl::flat_hash_map<absl::string_view, const ParameterSpec*> by_name;
  for (const ParameterSpec& spec : wanted) by_name[spec.name] = &spec;
  for (const auto& [name, type] : unread_) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) continue;
    return absl::FailedPreconditionError(absl::StrCat(path_, " does not fit the model: '", name, "' is ", type,
                                                      ", which is not supported; wanted ",
                                                      ToString(found->second->type)));
  }
  if (!Parameters::Check(path_, tensors_, wanted, Parameters::kMayHaveMore).ok()) {
    return Parameters::Check(path_, tensors_, wanted);
  }
  for (const auto& [name, type] : unread_) extra_.push_back(absl::StrCat("'", name, "' ", type));
  unread_.clear();
  const auto is_extra = [&](const NamedTensor& named) { return !by_name.contains(named.name); };
  for (const NamedTensor& named : tensors_) {
    if (is_extra(named)) extra_.push_back(absl::StrCat("'", named.name, "' ", ToString(named.tensor.type)));
  }
  std::erase_if(tensors_, is_extra);
  return absl::OkStatus();
}

absl::Status Weights::CheckNoExtra() const {
  if (extra_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path_, " does not fit the model: unexpected ", absl::StrJoin(extra_, "; unexpected "),
                   "; `weft import --ignore-extra-tensors` and `weft train --ignore-extra-tensors` leave "
                   "such tensors out"));
}

absl::Status ProvideFiniteWeights(const std::string& path, const Weights& weights, Parameters* parameters) {
  WEFT_RETURN_IF_ERROR(CheckFinite(path, weights));
  parameters->Provide(weights.tensors(), std::make_shared<const Weights>(weights));
  return absl::OkStatus();
}

const Tensor* Weights::Find(absl::string_view name) const {
  const NamedTensor* const found = FindRow(tensors_, name);
  return found != nullptr ? &found->tensor : nullptr;
}

bool Weights::Has(absl::string_view prefix) const {
  return absl::c_any_of(tensors_, [&](const NamedTensor& named) { return absl::StartsWith(named.name, prefix); });
}

absl::Status Weights::ConvertToF32() {
  for (auto& [name, tensor] : tensors_) {
    if (tensor.type.dtype == kF32 || !IsWeightFormat(tensor.type.dtype)) continue;
    WEFT_ASSIGN_OR_RETURN(const Tensor to, Allocate(name, {kF32, tensor.type.shape}));
    ConvertWeight(tensor, to);
    tensor = to;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Weights::Allocate(absl::string_view name, const TensorType& type) {
  const Tensor tensor = {type, arena_->Allocate(type.bytes())};
  if (tensor.data != nullptr) return tensor;
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for the ", type.bytes(), " bytes of '", name, "' ", ToString(type)));
}

absl::StatusOr<Tensor> Weights::Add(const std::string& name, TensorType type) {
  WEFT_ASSIGN_OR_RETURN(const Tensor tensor, Allocate(name, type));
  tensors_.push_back({name, tensor});
  return tensor;
}

absl::Status Weights::AddCopy(const std::string& name, Tensor from) {
  WEFT_ASSIGN_OR_RETURN(const Tensor to, Add(name, from.type));
  std::memcpy(to.data, from.data, from.type.bytes());
  return absl::OkStatus();
}

absl::Status Weights::Apply(const std::vector<Rule>& rules) {
  std::vector<NamedTensor> renamed;
  absl::flat_hash_map<std::string, std::string> origins;  // by new name
  // Returns the first rule that matches `name`, with the matched text in its new names.
  const auto rule_of = [&](const std::string& name) {
    for (const Rule& each : rules) {
      const std::optional<std::string> text = Match(each.from, name);
      if (!text.has_value()) continue;
      Rule rule = each;
      for (std::string& to : rule.to) to = absl::StrReplaceAll(to, {{"#", *text}});
      return rule;
    }
    return Rule{.to = {name}};
  };
  for (const auto& [name, from] : tensors_) {
    const Rule keep = rule_of(name);
    Tensor tensor = from;
    const Shape shape = tensor.type.shape;
    const bool split = keep.to.size() > 1;
    int64_t units = 0, unit = 0;  // of all groups' parts, and the rows of one; 0: the rows can't be split
    for (size_t i = 0; i < keep.to.size(); ++i) units += keep.groups * keep.part(i);
    if (split && shape.rank() > 0 && shape.dim(0) % units == 0) unit = shape.dim(0) / units;
    if ((keep.transpose && (shape.rank() != 2 || tensor.type.dtype != kF32)) || (split && unit == 0)) {
      return InvalidArgument("'", name, "' is ", ToString(tensor.type), ", wanted ",
                             keep.transpose ? "an f32 matrix" : "rows in ",
                             keep.transpose ? "" : absl::StrCat(keep.to.size(), " parts"));
    }
    if (keep.transpose) {
      WEFT_ASSIGN_OR_RETURN(tensor, Allocate(name, {kF32, {shape.dim(1), shape.dim(0)}}));
      Transpose(from, tensor);
    }
    const size_t row = split ? tensor.type.bytes() / static_cast<size_t>(shape.dim(0)) : 0;
    const size_t group = split ? tensor.type.bytes() / static_cast<size_t>(keep.groups) : 0;
    for (size_t i = 0; i < keep.to.size(); ++i) {
      const auto [origin, is_new] = origins.emplace(keep.to[i], name);
      if (!is_new) {
        return InvalidArgument("'", origin->second, "' and '", name, "' are both the model's '", keep.to[i], "'");
      }
      Tensor part = tensor;
      if (split) {
        part.type.shape.set_dim(0, keep.groups * keep.part(i) * unit);
        const size_t bytes = static_cast<size_t>(keep.part(i) * unit) * row;
        if (keep.groups > 1) {
          WEFT_ASSIGN_OR_RETURN(part, Allocate(keep.to[i], part.type));
          for (size_t g = 0; g < static_cast<size_t>(keep.groups); ++g) {
            std::memcpy(part.data + g * bytes, tensor.data + g * group, bytes);
          }
        }
        tensor.data += bytes;
      }
      renamed.push_back({keep.to[i], part});
    }
  }
  tensors_ = std::move(renamed);
  for (const auto& [name, type] : std::exchange(unread_, {})) {
    for (const std::string& to : rule_of(name).to) unread_.emplace_back(to, type);
  }
  return absl::OkStatus();
}

absl::Status Weights::Tie(const std::string& name, const std::string& copy) {
  const Tensor *const first = Find(name), *const second = Find(copy);
  if (second == nullptr) return absl::OkStatus();
  if (first == nullptr) return Apply({{copy, {name}}});
  if (first->type == second->type && std::memcmp(first->data, second->data, first->type.bytes()) == 0) {
    return Apply({{copy, {}}});
  }
  return InvalidArgument("'", name, "' and '", copy, "' differ, but are one weight of the model");
}

absl::Status Weights::Revert(const std::vector<Rule>& rules) {
  std::vector<Rule> renames;
  for (const Rule& rule : rules) {
    if (rule.to.empty()) continue;  // a dropped tensor can't come back
    if (rule.to.size() == 1) {
      renames.push_back({rule.to[0], {rule.from}, rule.transpose});
      continue;
    }
    std::vector<std::string> texts;  // for which # stands
    for (const NamedTensor& named : tensors_) {
      if (const std::optional<std::string> text = Match(rule.to[0], named.name)) texts.push_back(*text);
    }
    for (const std::string& text : texts) {
      Rule whole = rule;
      for (std::string& name : whole.to) name = absl::StrReplaceAll(name, {{"#", text}});
      whole.from = absl::StrReplaceAll(rule.from, {{"#", text}});
      WEFT_RETURN_IF_ERROR(Join(whole));
    }
  }
  return Apply(renames);
}

absl::Status Weights::Join(const Rule& rule) {
  std::vector<Tensor> parts;
  Shape shape;
  for (const std::string& name : rule.to) {
    const Tensor* const part = Find(name);
    if (part == nullptr) return InvalidArgument("missing '", name, "'");
    Shape grown = part->type.shape;
    if (!parts.empty()) grown.set_dim(0, shape.dim(0) + grown.dim(0));
    shape = grown;
    parts.push_back(*part);
  }
  std::erase_if(tensors_, [&](const NamedTensor& named) { return absl::c_linear_search(rule.to, named.name); });
  WEFT_ASSIGN_OR_RETURN(const Tensor joined, Add(rule.from, {kF32, shape}));
  std::byte* at = joined.data;
  for (size_t group = 0; group < static_cast<size_t>(rule.groups); ++group) {
    for (const Tensor& part : parts) {
      const size_t bytes = part.type.bytes() / static_cast<size_t>(rule.groups);
      std::memcpy(at, part.data + group * bytes, bytes);
      at += bytes;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
