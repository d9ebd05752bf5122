// Prints a model's summary as text and as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/json.h"
#include "weft/graph/print.h"
#include "weft/graph/speedup.h"
#include "weft/lab/estimate/summary.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kColumns = 80;
constexpr double kBytes = 4;            // of an f32 value
constexpr double kOptimizerValues = 2;  // of AdamW for each trained weight: two moments

// Returns "66,048".
std::string Commas(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

// Returns `words` with spaces between them, in lines of at most kColumns that begin with `indent` spaces.
std::string Wrap(const std::vector<std::string>& words, size_t indent) {
  std::string text, line(indent, ' ');
  bool empty = true;
  for (const std::string& word : words) {
    if (!empty && CountCharacters(line) + 1 + CountCharacters(word) > kColumns) {
      absl::StrAppend(&text, line, "\n");
      line.assign(indent, ' ');
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  return absl::StrCat(text, line, "\n");
}

std::string Row(const std::string& name, int64_t parameters, size_t indent) {
  const std::string number = Commas(parameters), left = absl::StrCat(std::string(indent, ' '), name);
  const size_t used = CountCharacters(left) + number.size();
  return absl::StrCat(left, std::string(used < kColumns ? kColumns - used : 1, ' '), number, "\n");
}

std::string PartText(const SummaryPart& part, size_t indent) {
  std::string text = Row(part.scope, part.parameters, indent);
  std::vector<std::string> shapes;
  for (size_t i = 0; i < part.shapes.size(); ++i) {
    shapes.push_back(absl::StrCat(part.shapes[i], i + 1 < part.shapes.size() ? "," : ""));
  }
  return absl::StrCat(text, Wrap(shapes, indent + 4));
}

std::string Figure(const std::string& name, const std::string& value, const std::string& note) {
  return absl::StrFormat("%-20s %14s  %s\n", name, value, note);
}

std::string Megabytes(double bytes) { return absl::StrFormat("%.1f MB", bytes * 1e-6); }

double Bytes(int64_t values) { return kBytes * static_cast<double>(values); }

}  // namespace

std::string PrintSummary(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step) {
  std::vector<std::string> sizes;
  for (const SizeName& size : summary.sizes) {
    sizes.push_back(absl::StrCat(sizes.empty() ? "" : "· ", size.name, " = ", size.value, " (", size.meaning, ")"));
  }
  std::string text = absl::StrCat(summary.kind, "\n", Wrap(sizes, 0), "\n");
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
  std::string kinds = absl::StrCat(Commas(trained.trained), " trained, ", Commas(trained.frozen), " frozen");
  if (trained.statistics > 0) absl::StrAppend(&kinds, ", ", Commas(trained.statistics), " statistics");
  absl::StrAppend(&text, "\n", Figure("parameters", Commas(trained.all()), kinds));
  absl::StrAppend(
      &text,
      Figure("forward pass", absl::StrFormat("%.4g MFLOP", summary.forward_flops * 1e-6),
             absl::StrCat("a token, products only, ", summary.context, " tokens")),
      Figure("training", absl::StrFormat("%.4g MFLOP", summary.training_flops() * 1e-6), "a token"),
      Figure("weights", Megabytes(Bytes(trained.all())), "f32"),
      Figure("gradients", Megabytes(Bytes(trained.trained)), "in training"),
      Figure("optimizer state", Megabytes(kOptimizerValues * Bytes(trained.trained)), "in training, AdamW"));
  if (summary.cache_bytes > 0) {
    const auto bytes = static_cast<double>(summary.cache_bytes);
    absl::StrAppend(&text,
                    Figure("keys and values", absl::StrCat(Commas(summary.cache_bytes), " B"),
                           absl::StrCat("a token generated; ", Megabytes(bytes * static_cast<double>(summary.context)),
                                        " for ", summary.context, " tokens")));
  }
  if (step != nullptr) absl::StrAppend(&text, "\na training step by the cost model: ", PrintSpeedup(*step));
  return text;
}

std::string PrintSummaryJson(const ModelSummary& summary, const TrainedParameters& trained, const Graph* step) {
  nlohmann::ordered_json sizes = nlohmann::ordered_json::object(), groups = nlohmann::ordered_json::array();
  for (const SizeName& size : summary.sizes) sizes[size.name] = size.value;
  for (const SummaryGroup& group : summary.groups) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const SummaryPart& part : group.parts) {
      parts.push_back({{"scope", part.scope}, {"shapes", part.shapes}, {"parameters", part.parameters}});
    }
    groups.push_back({{"first", group.first}, {"last", group.last}, {"copies", group.copies}, {"parts", parts}});
  }
  nlohmann::ordered_json json = {{"model", summary.kind},
                                 {"sizes", sizes},
                                 {"groups", groups},
                                 {"parameters", trained.all()},
                                 {"trained", trained.trained},
                                 {"frozen", trained.frozen},
                                 {"statistics", trained.statistics},
                                 {"context", summary.context},
                                 {"forward_flops_per_token", summary.forward_flops},
                                 {"training_flops_per_token", summary.training_flops()},
                                 {"weight_bytes", Bytes(trained.all())},
                                 {"gradient_bytes", Bytes(trained.trained)},
                                 {"optimizer_bytes", kOptimizerValues * Bytes(trained.trained)},
                                 {"cache_bytes_per_token", summary.cache_bytes}};
  if (step != nullptr) {
    const GraphSpeedup speedup = SpeedupOf(*step);
    json["step"] = {{"work_seconds", speedup.work}, {"path_seconds", speedup.path}, {"speedup", speedup.ratio()}};
  }
  return JsonLine(json) + "\n";
}

}  // namespace weft
