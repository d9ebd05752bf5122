// Finds blocks and parts by the names of parameters, and counts FLOPs on a recorded forward pass of one sequence.
#include "weft/lab/estimate/summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"
#include "weft/core/shape.h"
#include "weft/core/tape.h"

namespace weft {
namespace {

// The place of a parameter: block "h.0" with index 0, part "attn", and the rest "c_attn.weight" of the name.
struct Place {
  std::string block, part, rest;
  int64_t index = -1;
};

Place PlaceOf(const std::string& name) {
  const std::vector<std::string> words = absl::StrSplit(name, '.');
  Place place;
  size_t part_begin = 0, part_end = std::max<size_t>(1, words.size() - 1);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (!absl::SimpleAtoi(words[i], &place.index)) continue;
    place.block = absl::StrJoin(words.begin(), words.begin() + static_cast<int64_t>(i) + 1, ".");
    part_begin = i + 1;
    part_end = std::min(words.size(), i + 2);
    break;
  }
  const auto at = [&](size_t i) { return words.begin() + static_cast<int64_t>(i); };
  place.part = absl::StrJoin(at(part_begin), at(part_end), ".");
  place.rest = absl::StrJoin(at(part_end), words.end(), ".");
  return place;
}

bool SameParts(const SummaryGroup& a, const SummaryGroup& b) {
  return std::equal(
      a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
      [](const SummaryPart& x, const SummaryPart& y) { return x.scope == y.scope && x.shapes == y.shapes; });
}

std::string Stem(const std::string& block) { return block.substr(0, block.rfind('.')); }

// Returns the FLOPs of the matrix products on `tape`: 2·M·N·K each.
double ProductFlops(const Tape& tape) {
  const Program& program = tape.program();
  double flops = 0;
  for (const Node& node : program.nodes) {
    if (absl::string_view(node.op->name) != "matmul") continue;
    const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
    flops += CostOf(*node.op, {node.attrs, inputs, outputs}).flops;
  }
  return flops;
}

}  // namespace

int64_t SummaryGroup::parameters() const {
  int64_t sum = 0;
  for (const SummaryPart& part : parts) sum += part.parameters;
  return sum;
}

std::vector<SummaryGroup> GroupParameters(absl::Span<const ParameterSpec> parameters) {
  std::vector<SummaryGroup> groups;
  std::map<std::string, size_t> blocks;  // block → its group
  for (const ParameterSpec& spec : parameters) {
    const Place place = PlaceOf(spec.name);
    const std::string key = place.block.empty() ? absl::StrCat("part ", place.part) : place.block;
    const auto [found, added] = blocks.insert({key, groups.size()});
    if (added) groups.push_back({.first = place.block, .last = place.block});
    std::vector<SummaryPart>& parts = groups[found->second].parts;
    auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& each) { return each.scope == place.part; });
    if (part == parts.end()) part = parts.insert(part, {.scope = place.part});
    part->shapes.push_back(absl::StrCat(place.rest, " ", ToString(spec.type.shape)));
    part->parameters += spec.type.shape.elements();
  }
  std::vector<SummaryGroup> folded;
  for (SummaryGroup& group : groups) {
    const bool repeats = !folded.empty() && !group.first.empty() && Stem(folded.back().first) == Stem(group.first) &&
                         SameParts(folded.back(), group);
    if (repeats) {
      folded.back().last = group.first;
      ++folded.back().copies;
    } else {
      folded.push_back(std::move(group));
    }
  }
  return folded;
}

absl::StatusOr<ModelSummary> Summarize(const PublishedModel& model) {
  const ModelFamily& family = FamilyOf(model);
  ModelSummary summary = {family.sizes(model), family.name};
  Tape tape;
  family.record(model, summary.context, /*heads=*/false, &tape);
  WEFT_RETURN_IF_ERROR(tape.status());
  std::vector<ParameterSpec> parameters = ParametersOf(model);
  // Blocks in the order of their numbers, "h.2" before "h.10"; otherwise, the order of the model.
  std::stable_sort(parameters.begin(), parameters.end(), [](const ParameterSpec& a, const ParameterSpec& b) {
    const Place x = PlaceOf(a.name), y = PlaceOf(b.name);
    return !x.block.empty() && !y.block.empty() && Stem(x.block) == Stem(y.block) && x.index < y.index;
  });
  summary.groups = GroupParameters(parameters);
  for (const ParameterSpec& spec : parameters) {
    if (spec.kind == ParameterKind::kStatistic) summary.statistics += spec.type.shape.elements();
  }
  for (const SummaryGroup& group : summary.groups) summary.parameters += group.copies * group.parameters();
  summary.forward_flops = ProductFlops(tape) / static_cast<double>(summary.context);
  return summary;
}

}  // namespace weft
