// These functions show the attention weights of inference/measure/attention_weights.h: as a page for a browser, as
// JSON, and as text for a terminal.
//
//   WEFT_ASSIGN_OR_RETURN(const AttentionWeights weights, ReadAttention("runs/gpt-1", {.text = "In the beginning"}));
//   std::fputs(AttentionPage(weights, "In the beginning").c_str(), page);
#ifndef WEFT_LAB_REPORTS_ATTENTION_REPORT_H_
#define WEFT_LAB_REPORTS_ATTENTION_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/inference/measure/attention_weights.h"

namespace weft {

// The maximum number of weights of one kind of attention on a page, which has a byte for each. If there are more, the
// page shows the first tokens only and says so.
inline constexpr int64_t kMaxPageWeights = int64_t{1} << 21;

// Returns a self-contained page: a grid of the heads of all layers, the chosen head as a heat map or as lines between
// tokens, the measures of each head, the alignment of a translation, and the weights over a picture. `title`: the text
// that was read, or the file of the picture.
std::string AttentionPage(const AttentionWeights& weights, absl::string_view title);

// Returns maps for the script of a page: "kind", "layers", "heads", the texts of "targets" and "sources", "allTargets"
// and "allSources", the "measures" [entropy, distance, least sum, greatest sum] of each head, and "weights", the bytes
// 255·√weight in base64. There are at most `max_weights` weights, of the first tokens; the numbers of all tokens are
// "allTargets" and "allSources".
nlohmann::ordered_json AttentionMapsForPage(const AttentionMaps& maps, int64_t max_weights);

// Returns a JSON object on one line. `tokens` has the texts of the tokens, and `attention` the weights, nested as
// [layer][head][target][source]. For an encoder-decoder, `encoder`, `decoder` and `cross` take the place of
// `attention`, and `tokens` is an object with `encoder` and `decoder`.
std::string AttentionJson(const AttentionWeights& weights);

// Returns lines of text: for each kind of attention, the measures of each head, and a map of one head with a line for
// each target. `layer` and `head` are counted from 1; unset: the last layer, and the mean of its heads. Returns
// InvalidArgument if the model has no such layer or head.
absl::StatusOr<std::string> AttentionText(const AttentionWeights& weights, std::optional<int64_t> layer,
                                          std::optional<int64_t> head);

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_ATTENTION_REPORT_H_
