// The page has each weight w as the byte 255·√w, so that small weights keep their differences.
#include "weft/lab/reports/attention_report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/run_folder.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/lab/page.h"
#include "weft/lab/reports/attention_page.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr size_t kMaxTokenBytes = 60;  // of a token on a page or in a terminal
constexpr size_t kMaxTitleBytes = 300;
constexpr int64_t kMaxTerminalColumns = 64;  // sources in a terminal's map

// Limits of the page of a run.
constexpr size_t kMaxWeights = 160'000;      // of a checkpoint: 12 · 12 heads of 33 tokens
constexpr size_t kMaxPageBytes = 1'600'000;  // of the weights of all runs, in base64
constexpr size_t kFewestCheckpoints = 2;     // tokens are left out before fewer checkpoints are shown
constexpr size_t kMaxCheckpoints = 40;

Json FirstTokens(const Texts& texts, int64_t count) {
  Json tokens = Json::array();
  for (int64_t i = 0; i < count; ++i) tokens.push_back(Shortened(texts[static_cast<size_t>(i)], kMaxTokenBytes));
  return tokens;
}

// Returns maps for the script of a page: "kind", "layers", "heads", the texts of "targets" and "sources", "allTargets"
// and "allSources", the "measures" [entropy, distance, least sum, greatest sum] of each head, and "weights", the bytes
// 255·√weight in base64. There are at most `max_weights` weights, of the first tokens; the numbers of all tokens are
// "allTargets" and "allSources".
Json PageMaps(const AttentionMaps& maps, int64_t max_weights) {
  const auto all_targets = static_cast<int64_t>(maps.targets.size());
  const auto all_sources = static_cast<int64_t>(maps.sources.size());
  const int64_t each = std::max<int64_t>(1, max_weights / (maps.layers * maps.heads));  // of one head
  int64_t targets = all_targets, sources = all_sources;
  if (targets * sources > each) {
    const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(each)));
    targets = std::min(all_targets, std::max(side, each / all_sources));
    sources = std::min(all_sources, each / targets);
  }
  Json measures = Json::array(), strongest = Json::array();
  std::string bytes;
  for (int64_t layer = 0; layer < maps.layers; ++layer) {
    for (int64_t head = 0; head < maps.heads; ++head) {
      const HeadMeasures m = Measure(maps, layer, head);
      Json row = Json::array();
      for (const double v : {m.entropy, m.distance, m.min_sum, m.max_sum}) row.push_back(std::round(v * 1e4) / 1e4);
      measures.push_back(row);
      for (int64_t target = 0; target < targets; ++target) {
        const absl::Span<const float> weights = maps.row(layer, head, target);
        for (int64_t s = 0; s < sources; ++s) {
          const float weight = std::clamp(weights[static_cast<size_t>(s)], 0.0f, 1.0f);
          bytes.push_back(static_cast<char>(static_cast<uint8_t>(std::lround(255 * std::sqrt(weight)))));
        }
      }
    }
    strongest.push_back(StrongestSources(maps, layer));
    strongest.back().erase(strongest.back().begin() + targets, strongest.back().end());
  }
  return {{"kind", maps.kind},
          {"layers", maps.layers},
          {"heads", maps.heads},
          {"withoutSpecial", maps.without_special},
          {"targets", FirstTokens(maps.targets, targets)},
          {"sources", FirstTokens(maps.sources, sources)},
          {"allTargets", all_targets},
          {"allSources", all_sources},
          {"measures", std::move(measures)},
          {"strongest", std::move(strongest)},
          {"weights", absl::Base64Escape(bytes)}};
}

Json PagePicture(const AttendedPicture& picture) {
  const auto [low, high] = std::minmax_element(picture.pixels.begin(), picture.pixels.end());
  const float range = std::max(*high - *low, 1e-9f);
  std::string bytes;
  for (const float pixel : picture.pixels) {
    bytes.push_back(static_cast<char>(static_cast<uint8_t>(std::lround(255 * (pixel - *low) / range))));
  }
  return {{"height", picture.height},
          {"width", picture.width},
          {"patch", picture.patch_size},
          {"pixels", absl::Base64Escape(bytes)}};
}

std::string JsonMaps(const AttentionMaps& maps) {
  const auto list = [](int64_t count, const auto& item) {
    std::vector<std::string> items;
    for (int64_t i = 0; i < count; ++i) items.push_back(item(i));
    return absl::StrCat("[", absl::StrJoin(items, ","), "]");
  };
  return list(maps.layers, [&](int64_t layer) {
    return list(maps.heads, [&](int64_t head) {
      return list(static_cast<int64_t>(maps.targets.size()),
                  [&](int64_t target) { return JsonArray(maps.row(layer, head, target)); });
    });
  });
}

// Returns a character for a weight: the darker, the greater.
const char* Shade(double weight) {
  constexpr const char* kShades[] = {" ", "·", "░", "▒", "▓", "█"};
  constexpr double kLimits[] = {0.02, 0.1, 0.25, 0.5, 0.75};
  size_t i = 0;
  while (i < std::size(kLimits) && weight >= kLimits[i]) ++i;
  return kShades[i];
}

// Returns `text` as a terminal shows it on one line. Control characters are written as <0x0A>, and spaces as ␣.
std::string Visible(const std::string& text) {
  std::string visible;
  for (const char c : Shortened(text, kMaxTokenBytes)) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&visible, "<0x%02X>", static_cast<uint8_t>(c));
    } else if (c == ' ') {
      absl::StrAppend(&visible, "␣");
    } else {
      visible.push_back(c);
    }
  }
  return visible;
}

// Returns the weights [S] of `target` in one head or, if there is none, their mean over the heads of the layer.
std::vector<double> RowOf(const AttentionMaps& maps, int64_t layer, std::optional<int64_t> head, int64_t target) {
  std::vector<double> row(maps.sources.size());
  const int64_t first = head.value_or(0), last = head ? first + 1 : maps.heads;
  for (int64_t h = first; h < last; ++h) {
    const absl::Span<const float> weights = maps.row(layer, h, target);
    for (size_t s = 0; s < row.size(); ++s)
      row[s] += static_cast<double>(weights[s]) / static_cast<double>(last - first);
  }
  return row;
}

// Returns one line for a target: its map, its three strongest sources, and its token.
std::string TargetLine(const AttentionMaps& maps, const std::vector<double>& row, const std::string& token) {
  std::string line = "  ";
  for (size_t s = 0; s < std::min<size_t>(row.size(), kMaxTerminalColumns); ++s) absl::StrAppend(&line, Shade(row[s]));
  absl::StrAppend(&line, " │ ", Visible(token), " ←");
  for (const int32_t s : Largest<double>(row, 3)) {
    if (row[s] > 0) absl::StrAppendFormat(&line, "  %s %.2f", Visible(maps.sources[s]), row[s]);
  }
  return line + "\n";
}

absl::StatusOr<std::string> MapsText(const AttentionMaps& maps, std::optional<int64_t> layer,
                                     std::optional<int64_t> head) {
  const int64_t chosen = layer.value_or(maps.layers);
  if (chosen < 1 || chosen > maps.layers) {
    return InvalidArgument("layer ", chosen, ": the model's layers are 1 to ", maps.layers);
  }
  if (head && (*head < 1 || *head > maps.heads)) {
    return InvalidArgument("head ", *head, ": the model's heads are 1 to ", maps.heads);
  }
  std::string text =
      absl::StrFormat("%s: %d layers, %d heads, %d targets, %d sources%s\n", maps.kind, maps.layers, maps.heads,
                      maps.targets.size(), maps.sources.size(), maps.without_special ? ", without special tokens" : "");
  absl::StrAppend(&text, "  layer  head  entropy (bits)  mean distance  sum of a row\n");
  for (int64_t l = 0; l < maps.layers; ++l) {
    for (int64_t h = 0; h < maps.heads; ++h) {
      const HeadMeasures m = Measure(maps, l, h);
      absl::StrAppendFormat(&text, "  %5d %5d %15.3f %14.3f  %.4f to %.4f\n", l + 1, h + 1, m.entropy, m.distance,
                            m.min_sum, m.max_sum);
    }
  }
  absl::StrAppend(&text, "layer ", chosen, ", ", head ? absl::StrCat("head ", *head) : "mean of the heads",
                  ": a line for each target, a column for each source");
  if (static_cast<int64_t>(maps.sources.size()) > kMaxTerminalColumns) {
    absl::StrAppend(&text, "; columns show the first ", kMaxTerminalColumns, " of ", maps.sources.size(), " sources");
  }
  text += "\n";
  for (size_t t = 0; t < maps.targets.size(); ++t) {
    const std::optional<int64_t> index = head ? std::optional(*head - 1) : std::nullopt;
    text += TargetLine(maps, RowOf(maps, chosen - 1, index, static_cast<int64_t>(t)), maps.targets[t]);
  }
  return text;
}

}  // namespace

std::string AttentionPage(const AttentionWeights& weights, absl::string_view title) {
  Json data = {{"title", Shortened(title, kMaxTitleBytes)}, {"family", weights.family}, {"maps", Json::array()}};
  for (const AttentionMaps& maps : weights.maps) data["maps"].push_back(PageMaps(maps, kMaxPageWeights));
  if (!weights.produced.empty()) {
    data["produced"] = FirstTokens(weights.produced, static_cast<int64_t>(data["maps"].back()["targets"].size()));
  }
  if (weights.picture) data["picture"] = PagePicture(*weights.picture);
  return FillPage(kAttentionPage, JsonLine(data));
}

std::string AttentionJson(const AttentionWeights& weights) {
  const auto tokens = [](const Texts& texts) { return JsonLine(Json(texts)); };
  const char* const end = weights.maps[0].without_special ? ",\"without_special_tokens\":true}" : "}";
  if (weights.maps.size() == 1) {
    const AttentionMaps& maps = weights.maps[0];
    return absl::StrCat("{\"tokens\":", tokens(maps.targets), ",\"attention\":", JsonMaps(maps), end);
  }
  const AttentionMaps& cross = weights.maps.back();
  std::string json =
      absl::StrCat("{\"tokens\":{\"encoder\":", tokens(cross.sources), ",\"decoder\":", tokens(cross.targets), "}");
  for (const AttentionMaps& maps : weights.maps) absl::StrAppend(&json, ",\"", maps.kind, "\":", JsonMaps(maps));
  return json + end;
}

absl::StatusOr<std::string> AttentionText(const AttentionWeights& weights, std::optional<int64_t> layer,
                                          std::optional<int64_t> head) {
  std::string text;
  for (const AttentionMaps& maps : weights.maps) {
    WEFT_ASSIGN_OR_RETURN(const std::string more, MapsText(maps, layer, head));
    text += more;
  }
  return text;
}

RunAttention::RunAttention(std::string run, std::string text, size_t runs)
    : run_(std::move(run)), text_(std::move(text)), max_bytes_(kMaxPageBytes / std::max<size_t>(runs, 1)) {}

bool RunAttention::Update() {
  bool changed = false;
  const std::string before = std::exchange(problem_, "");
  // Base64 has four bytes for three weights.
  const size_t max_weights = std::min(kMaxWeights, max_bytes_ / kFewestCheckpoints * 3 / 4);
  for (const int64_t step : ListCheckpoints(run_ + "/checkpoints")) {
    if (by_step_.contains(step)) continue;
    const absl::StatusOr<AttentionWeights> weights =
        ReadAttention(absl::StrCat(run_, "@", step), {.text = text_, .truncate = true});
    if (absl::IsNotFound(weights.status())) continue;  // the training has removed it in the meantime
    if (!weights.ok()) {
      problem_ = std::string(weights.status().message());
      break;
    }
    // Of an encoder-decoder, the last kind is the attention to the source.
    Json maps = PageMaps(weights->maps.back(), static_cast<int64_t>(max_weights));
    maps["step"] = step;
    by_step_[step] = std::move(maps);
    changed = true;
  }
  return changed || problem_ != before;
}

Json RunAttention::ToJson() const {
  size_t bytes = 1;  // of the largest checkpoint
  std::vector<int64_t> steps;
  for (const auto& [step, maps] : by_step_) {
    steps.push_back(step);
    bytes = std::max(bytes, maps["weights"].get_ref<const std::string&>().size());
  }
  const size_t limit = std::clamp(max_bytes_ / bytes, kFewestCheckpoints, kMaxCheckpoints);
  Json checkpoints = Json::array();
  for (const int64_t step : TakeEvenly(steps, limit)) checkpoints.push_back(by_step_.at(step));
  return {{"text", text_}, {"problem", problem_}, {"of", steps.size()}, {"checkpoints", std::move(checkpoints)}};
}

}  // namespace weft
