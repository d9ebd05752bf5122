// Prints a model's summary as text and as JSON.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/json.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/compile/speedup.h"
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

std::string Megabytes(double bytes) { return absl::StrFormat("%.1f MB", bytes * 1e-6); }
std::string Megaflops(double flops) { return absl::StrFormat("%.4g MFLOP", flops * 1e-6); }

double Bytes(int64_t values) { return kBytes * static_cast<double>(values); }

// A figure of the summary: its key and value in JSON, and its line in the text, which has none if `name` is empty.
struct Figure {
  const char* key;
  nlohmann::ordered_json value;
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
  text += "\n";
  for (const Figure& each : Figures(summary, trained)) {
    if (!each.name.empty()) absl::StrAppendFormat(&text, "%-20s %14s  %s\n", each.name, each.text, each.note);
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
  nlohmann::ordered_json json = {{"model", summary.kind}, {"sizes", sizes}, {"groups", groups}};
  for (const Figure& each : Figures(summary, trained)) json[each.key] = each.value;
  if (step != nullptr) {
    const GraphSpeedup speedup = SpeedupOf(*step);
    json["step"] = {{"work_seconds", speedup.work}, {"path_seconds", speedup.path}, {"speedup", speedup.ratio()}};
  }
  return JsonLine(json) + "\n";
}

}  // namespace weft
