// Finds blocks and parts by the names of parameters, counts FLOPs on a recorded forward pass of one sequence, and
// prints both.
#include "weft/lab/estimate/summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/core/tensor.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/compile/speedup.h"
#include "weft/lab/page.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

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
                         folded.back().parts == group.parts;
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

namespace {

constexpr double kBytes = 4;            // of an f32 value
constexpr double kOptimizerValues = 2;  // of AdamW for each trained weight: two moments

// Returns "66,048".
std::string Commas(int64_t number) {
  std::string text = absl::StrCat(number);
  for (size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string Row(const std::string& name, int64_t parameters, size_t indent) {
  const std::string number = Commas(parameters), left = absl::StrCat(std::string(indent, ' '), name);
  const size_t used = CountCharacters(left) + number.size();
  return absl::StrCat(left, std::string(used < kTextColumns ? kTextColumns - used : 1, ' '), number, "\n");
}

std::string PartText(const SummaryPart& part, size_t indent) {
  std::vector<std::string> shapes = part.shapes;
  for (size_t i = 0; i + 1 < shapes.size(); ++i) shapes[i] += ",";
  const std::string wrapped = WrapWords({shapes.begin(), shapes.end()}, indent + 4, indent + 4);
  return absl::StrCat(Row(part.scope, part.parameters, indent), std::string(indent + 4, ' '), wrapped, "\n");
}

std::string Megabytes(double bytes) { return absl::StrFormat("%.1f MB", bytes * 1e-6); }
std::string Megaflops(double flops) { return absl::StrFormat("%.4g MFLOP", flops * 1e-6); }

double Bytes(int64_t values) { return kBytes * static_cast<double>(values); }

// A figure of the summary: its key and value in JSON, and its line in the text, which has none if `name` is empty.
struct Figure {
  const char* key;
  Json value;
  std::string name = "", text = "", note = "";
};

std::vector<Figure> Figures(const ModelSummary& summary, const TrainedParameters& trained) {
  std::string kinds = absl::StrCat(Commas(trained.trained), " trained, ", Commas(trained.frozen), " frozen");
  if (trained.statistics > 0) absl::StrAppend(&kinds, ", ", Commas(trained.statistics), " statistics");
  const double weights = Bytes(trained.all()), gradients = Bytes(trained.trained);
  const double optimizer = kOptimizerValues * gradients;
  const double cache = static_cast<double>(summary.cache_bytes) * static_cast<double>(summary.context);
  return {
      {"parameters", trained.all(), "parameters", Commas(trained.all()), kinds},
      {"trained", trained.trained},
      {"frozen", trained.frozen},
      {"statistics", trained.statistics},
      {"context", summary.context},
      {"forward_flops_per_token", summary.forward_flops, "forward pass", Megaflops(summary.forward_flops),
       absl::StrCat("a token, products only, ", summary.context, " tokens")},
      {"training_flops_per_token", summary.training_flops(), "training", Megaflops(summary.training_flops()),
       "a token"},
      {"weight_bytes", weights, "weights", Megabytes(weights), "f32"},
      {"gradient_bytes", gradients, "gradients", Megabytes(gradients), "in training"},
      {"optimizer_bytes", optimizer, "optimizer state", Megabytes(optimizer), "in training, AdamW"},
      {"cache_bytes_per_token", summary.cache_bytes, summary.cache_bytes > 0 ? "keys and values" : "",
       absl::StrCat(Commas(summary.cache_bytes), " B"),
       absl::StrCat("a token generated; ", Megabytes(cache), " for ", summary.context, " tokens")},
  };
}

}  // namespace

std::string PrintSummary(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step) {
  std::vector<std::string> sizes;
  for (const SizeName& size : summary.sizes) {
    sizes.push_back(absl::StrCat(sizes.empty() ? "" : "· ", size.name, " = ", size.value, " (", size.meaning, ")"));
  }
  std::string text = absl::StrCat(summary.kind, "\n", WrapWords({sizes.begin(), sizes.end()}, 0, 0), "\n\n");
  for (const SummaryGroup& group : summary.groups) {
    const bool block = !group.first.empty();
    if (block) {
      const std::string name = group.copies == 1 ? group.first
                                                 : absl::StrCat(group.first, " .. ", group.last, ", ", group.copies,
                                                                " blocks, each with ", Commas(group.parameters()));
      absl::StrAppend(&text, Row(name, group.copies * group.parameters(), 0));
    }
    for (const SummaryPart& part : group.parts) absl::StrAppend(&text, PartText(part, block ? 2 : 0));
  }
  text += "\n";
  for (const Figure& each : Figures(summary, trained)) {
    if (!each.name.empty()) absl::StrAppendFormat(&text, "%-20s %14s  %s\n", each.name, each.text, each.note);
  }
  if (step != nullptr) absl::StrAppend(&text, "\na training step by the cost model: ", PrintSpeedup(*step));
  return text;
}

std::string PrintSummaryJson(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step) {
  Json sizes = Json::object(), groups = Json::array();
  for (const SizeName& size : summary.sizes) sizes[size.name] = size.value;
  for (const SummaryGroup& group : summary.groups) {
    Json parts = Json::array();
    for (const SummaryPart& part : group.parts) {
      parts.push_back({{"scope", part.scope}, {"shapes", part.shapes}, {"parameters", part.parameters}});
    }
    groups.push_back({{"first", group.first}, {"last", group.last}, {"copies", group.copies}, {"parts", parts}});
  }
  Json json = {{"model", summary.kind}, {"sizes", sizes}, {"groups", groups}};
  for (const Figure& each : Figures(summary, trained)) json[each.key] = each.value;
  if (step != nullptr) {
    const GraphSpeedup speedup = SpeedupOf(*step);
    json["step"] = {{"work_seconds", speedup.work}, {"path_seconds", speedup.path}, {"speedup", speedup.ratio()}};
  }
  return JsonLine(json) + "\n";
}

}  // namespace weft
