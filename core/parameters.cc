#include "weft/core/parameters.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"

namespace weft {
namespace {

absl::Status Busy(absl::string_view what, const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot ", what, " ", path, ": these parameters are in use: a call of Run, Save or Load has not ended"));
}

const char* Name(ParameterKind kind) {
  constexpr const char* kNames[] = {"weight", "frozen weight", "statistic", "state", "cache"};
  return kNames[static_cast<int>(kind)];
}

// Reports whether a tensor of type `given` can be converted to a parameter of type `wanted`: only its dtype differs.
bool Converts(const TensorType& given, const TensorType& wanted) {
  return IsWeightFormat(given.dtype) && IsWeightFormat(wanted.dtype) && given.shape == wanted.shape;
}

}  // namespace

absl::Status Parameters::Create(absl::Span<const ParameterSpec> specs) {
  struct New {
    const ParameterSpec& spec;
    const Tensor* given;  // null: nothing was provided
  };
  const std::lock_guard lock(mutex_);
  std::vector<New> created;
  size_t bytes = 0, cache_bytes = 0;
  const auto fail = [](const ParameterSpec& spec, const auto&... problem) {
    return absl::FailedPreconditionError(absl::StrCat("parameter '", spec.name, "' is ", problem...));
  };
  for (const ParameterSpec& spec : specs) {
    if (divided_.contains(spec.name)) {
      return absl::FailedPreconditionError(absl::StrCat("the ranks have divided the weight '", spec.name,
                                                        "' among themselves, but the graph wants the whole weight"));
    }
    if (const auto it = entries_.find(spec.name); it != entries_.end()) {
      const auto& [tensor, kind, is_piece] = it->second;
      if (kind != spec.kind) return fail(spec, "a ", Name(kind), " here, but the graph wants a ", Name(spec.kind));
      if (tensor.type == spec.type) continue;
      return fail(spec, ToString(tensor.type), " here, but the graph wants ", ToString(spec.type));
    }
    const auto given = provided_.find(spec.name);
    created.push_back({spec, given == provided_.end() ? nullptr : &given->second});
    if (given != provided_.end() && given->second.type == spec.type) continue;  // it is used where it is
    if (given != provided_.end() && !Converts(given->second.type, spec.type)) {
      return fail(spec, "given as ", ToString(given->second.type), ", but the graph wants ", ToString(spec.type));
    }
    (spec.kind == ParameterKind::kCache ? cache_bytes : bytes) += AlignUp(std::max<size_t>(spec.type.bytes(), 1));
  }
  if (!arena_.Reserve(bytes) || !caches_.Reserve(cache_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("parameters: no memory for ", bytes + cache_bytes, " bytes"));
  }
  for (const auto& [spec, given] : created) {
    if (entries_.contains(spec.name)) continue;  // `specs` has it twice
    const bool in_place = given != nullptr && given->type == spec.type;
    Arena& arena = spec.kind == ParameterKind::kCache ? caches_ : arena_;
    const Tensor tensor = in_place ? *given : Tensor{spec.type, arena.Allocate(spec.type.bytes())};
    entries_.emplace(spec.name, Entry{tensor, spec.kind});
    if (in_place) continue;
    const bool drawn = spec.initializer.kind != Initializer::Kind::kConstant;
    const bool zero = !drawn && spec.initializer.a == 0;  // as the arena's bytes are, which the system gives when used
    if (given != nullptr) {
      ConvertWeight(*given, tensor);
    } else if (!zero && (options_.draw || !drawn)) {
      Initialize(spec.initializer, options_.seed, spec.name, tensor);
    }
  }
  return absl::OkStatus();
}

absl::Status Parameters::CreatePieces(const ParameterSpec& whole, absl::Span<const ParameterPiece> pieces) {
  const int64_t cols = whole.type.shape.cols();
  const std::lock_guard lock(mutex_);
  if (entries_.contains(whole.name)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the weight '", whole.name, "' exists as a whole, so it can't be divided among ranks"));
  }
  size_t bytes = 0;
  for (const ParameterPiece& piece : pieces) {
    const bool fits =
        0 <= piece.begin_row && piece.begin_row < piece.end_row && piece.end_row <= whole.type.shape.rows();
    if (!fits || entries_.contains(piece.name)) {
      return InvalidArgument("'", piece.name, "', rows ", piece.begin_row, " to ", piece.end_row,
                             ", is no new piece of '", whole.name, "' ", ToString(whole.type));
    }
    bytes += AlignUp(TensorType{whole.type.dtype, {piece.end_row - piece.begin_row, cols}}.bytes());
  }
  if (!arena_.Reserve(bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("parameters: no memory for ", bytes, " bytes"));
  }
  const bool drawn = whole.initializer.kind != Initializer::Kind::kConstant;
  for (const ParameterPiece& piece : pieces) {
    const TensorType type = {whole.type.dtype, {piece.end_row - piece.begin_row, cols}};
    const Tensor tensor = {type, arena_.Allocate(type.bytes())};
    if (options_.draw || !drawn) {
      InitializePart(whole.initializer, options_.seed, whole.name, whole.type.shape, piece.begin_row * cols, tensor);
    }
    entries_.emplace(piece.name, Entry{tensor, whole.kind, /*is_piece=*/true});
  }
  divided_.emplace(whole.name, whole);
  return absl::OkStatus();
}

void Parameters::Provide(absl::Span<const NamedTensor> tensors, std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  for (const NamedTensor& named : tensors) provided_.insert_or_assign(named.name, named.tensor);
  owners_.push_back(std::move(owner));
}

bool Parameters::divided() const {
  const std::lock_guard lock(mutex_);
  return !divided_.empty();
}

absl::StatusOr<Tensor> Parameters::Find(absl::string_view name) const {
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(name);
    if (it != entries_.end()) return it->second.tensor;
    const auto given = provided_.find(name);
    if (given != provided_.end()) return given->second;
  }
  return absl::NotFoundError(absl::StrCat("no parameter '", name, "'", DidYouMean(name, Names())));
}

std::vector<std::string> Parameters::Names(Selection selection) const {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (Selects(selection, entry.kind)) names.push_back(name);
  }
  return names;
}

int64_t Parameters::ElementCount(Selection selection) const {
  int64_t count = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (Selects(selection, entry.kind) && !entry.is_piece) count += entry.tensor.type.shape.elements();
  }
  for (const auto& [name, whole] : divided_) {
    if (Selects(selection, whole.kind)) count += whole.type.shape.elements();
  }
  return count;
}

absl::Status Parameters::Save(const std::string& path, Selection selection) const {
  if (!TryLock()) return Busy("save", path);
  const absl::Cleanup unlock = [this] { Unlock(); };
  std::vector<NamedTensor> tensors;
  for (const std::string& name : Names(selection)) tensors.push_back({name, *Find(name)});
  return WriteSafetensors(path, tensors);
}

absl::Status Parameters::Load(const std::string& path, Selection selection, Others others, WantedChecksum checksum) {
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path, checksum));
  return Set(path, file.tensors(), selection, others);
}

absl::Status Parameters::Set(const std::string& path, absl::Span<const NamedTensor> tensors, Selection selection,
                             Others others) {
  if (!TryLock()) return Busy("load", path);
  const absl::Cleanup unlock = [this] { Unlock(); };
  std::vector<ParameterSpec> wanted;
  for (const std::string& name : Names(selection)) wanted.push_back({.name = name, .type = Find(name)->type});
  WEFT_RETURN_IF_ERROR(Check(path, tensors, wanted, others));
  absl::flat_hash_map<absl::string_view, Tensor> found;
  for (const NamedTensor& named : tensors) found[named.name] = named.tensor;
  for (const ParameterSpec& spec : wanted) {
    ConvertWeight(found[spec.name], *Find(spec.name));
  }
  return absl::OkStatus();
}

absl::Status Parameters::Check(const std::string& path, absl::Span<const NamedTensor> tensors,
                               absl::Span<const ParameterSpec> wanted, Others others) {
  absl::flat_hash_map<absl::string_view, TensorType> found;
  for (const NamedTensor& named : tensors) found[named.name] = named.tensor.type;
  std::vector<std::string> problems;
  for (const ParameterSpec& spec : wanted) {
    const auto it = found.find(spec.name);
    if (it == found.end()) {
      problems.push_back(absl::StrCat("missing '", spec.name, "' ", ToString(spec.type)));
    } else if (it->second != spec.type && !Converts(it->second, spec.type)) {
      problems.push_back(absl::StrCat("'", spec.name, "' is ", ToString(it->second), ", wanted ", ToString(spec.type)));
    }
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const ParameterSpec& spec : wanted) names.insert(spec.name);
  for (const auto& [name, tensor] : tensors) {
    if (others == kMayHaveMore || names.contains(name)) continue;
    problems.push_back(absl::StrCat("unexpected '", name, "' ", ToString(tensor.type)));
  }
  if (problems.empty()) return absl::OkStatus();
  constexpr size_t kMaxProblems = 8;  // an error lists at most 8 tensors
  const size_t more = problems.size() - std::min(problems.size(), kMaxProblems);
  problems.resize(problems.size() - more);
  return absl::FailedPreconditionError(absl::StrCat(path, " does not fit the model: ", absl::StrJoin(problems, "; "),
                                                    more > 0 ? absl::StrCat("; and ", more, " more") : ""));
}

}  // namespace weft
