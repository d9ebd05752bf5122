// Layers call Adapt after each product. Adapt compares the layer's name with the patterns and records the adapter.
#include "weft/models/lora.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/pattern.h"
#include "weft/base/status.h"
#include "weft/models/validate.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr char kWeight[] = ".weight", kBias[] = ".bias";
// The patterns of kQueriesAndValues: layers of GPT-2, of BERT and ViT, and of Llama and the translators.
constexpr char kQueryAndValueNames[] = "*.c_attn,*.query,*.value,*.q_proj,*.v_proj";

std::vector<std::string> Split(absl::string_view patterns) {
  std::vector<std::string> list;
  for (const absl::string_view pattern : absl::StrSplit(patterns, ',', absl::SkipWhitespace())) {
    list.emplace_back(absl::StripAsciiWhitespace(pattern));
  }
  return list;
}

// Reports whether one of the comma-separated `patterns` matches `name`.
bool MatchesAny(absl::string_view patterns, absl::string_view name) {
  return absl::c_any_of(Split(patterns), [&](const std::string& pattern) {
    return pattern == kQueriesAndValues ? MatchesAny(kQueryAndValueNames, name) : MatchesPattern(pattern, name);
  });
}

}  // namespace

absl::Status Validate(const LoraOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckSizes({{"lora rank", options.rank, 0, kMaxFeatures}}));
  if (options.rank == 0) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(CheckPositive("lora alpha", options.alpha));
  WEFT_RETURN_IF_ERROR(CheckDropout(options.dropout, "lora dropout"));
  if (!Split(options.targets).empty()) return absl::OkStatus();
  return InvalidArgument("lora targets is '", options.targets, "', but must name at least one layer: '*.query'");
}

LoraScope::LoraScope(Tape* tape, const LoraOptions& options)
    : tape_(tape), options_(options), outer_(tape->adaptation()) {
  if (options_.rank == 0) return;
  tape_->Fail(Validate(options_));
  tape_->SetAdaptation(this);
}

LoraScope::~LoraScope() {
  if (options_.rank == 0) return;
  tape_->SetAdaptation(outer_);
  for (const std::string& pattern : Split(options_.targets)) {
    if (absl::c_any_of(layers_, [&](const std::string& layer) { return MatchesAny(pattern, layer); })) continue;
    constexpr size_t kMaxListed = 8;  // names of layers in an error
    if (layers_.size() > kMaxListed) layers_.resize(kMaxListed);
    tape_->Fail(
        InvalidArgument("lora: no layer matches '", pattern, "'; the first layers are ", absl::StrJoin(layers_, ", ")));
  }
}

bool LoraScope::Trains(absl::string_view full_name) const {
  if (options_.rank == 0 || absl::EndsWith(full_name, kLoraA) || absl::EndsWith(full_name, kLoraB)) return true;
  absl::string_view layer = full_name;
  if (!absl::ConsumeSuffix(&layer, kWeight)) absl::ConsumeSuffix(&layer, kBias);
  return MatchesAny(options_.also_train, layer);
}

Var LoraScope::Adapt(Var x, Var weight, Var y) {
  if (!tape_->status().ok()) return y;
  const std::string name(absl::StripSuffix(tape_->ParameterName(weight), kWeight));
  layers_.push_back(name);
  if (!MatchesAny(options_.targets, name)) return y;
  constexpr Initializer kKaiming = {.kind = Initializer::Kind::kFanUniform, .a = 0.57735027f};  // ±1 / √in, as in PEFT
  const int64_t out = weight.dim(0), in = weight.dim(1);
  const Var a = tape_->Parameter(&kLoraA[1], {weight.dtype(), {options_.rank, in}}, kKaiming);
  const Var b = tape_->Parameter(&kLoraB[1], {weight.dtype(), {out, options_.rank}}, Zeros());
  const Var low = MatMul(Dropout(x, options_.dropout), a, {.transpose_b = true});  // [..., rank]
  return y + Scale(MatMul(low, b, {.transpose_b = true}), options_.scale());
}

}  // namespace weft
