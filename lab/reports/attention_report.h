// These functions show the attention weights of inference/measure/attention_weights.h: as a page for a browser, as
// JSON, and as text for a terminal.
//
//   WEFT_ASSIGN_OR_RETURN(const AttentionWeights weights, ReadAttention("runs/gpt-1", {.text = "In the beginning"}));
//   std::fputs(AttentionPage(weights, "In the beginning").c_str(), page);
#ifndef WEFT_LAB_REPORTS_ATTENTION_REPORT_H_
#define WEFT_LAB_REPORTS_ATTENTION_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
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

// Returns a JSON object on one line. `tokens` has the texts of the tokens, and `attention` the weights, nested as
// [layer][head][target][source]. For an encoder-decoder, `encoder`, `decoder` and `cross` take the place of
// `attention`, and `tokens` is an object with `encoder` and `decoder`. After LeaveOutSpecialTokens,
// `without_special_tokens` is true.
std::string AttentionJson(const AttentionWeights& weights);

// Returns lines of text: for each kind of attention, the measures of each head, and a map of one head with a line for
// each target. `layer` and `head` are counted from 1; unset: the last layer, and the mean of its heads. Returns
// InvalidArgument if the model has no such layer or head.
absl::StatusOr<std::string> AttentionText(const AttentionWeights& weights, std::optional<int64_t> layer,
                                          std::optional<int64_t> head);

// A RunAttention reads the attention weights of one text with each kept checkpoint of a training run, for the page of a
// RunReport: it shows how attention changes in training.
//
//   RunAttention attention("runs/gpt-1", "In the beginning", /*runs=*/1);
//   attention.Update();   // again while the training goes on: reads new checkpoints only
//   page["attention"] = attention.ToJson();
class RunAttention {
 public:
  // `text`: as in AttentionQuery. Text beyond the model's context is cut. `runs`: the number of runs that share the
  // page; the more there are, the fewer tokens and checkpoints of each the page has.
  RunAttention(std::string run, std::string text, size_t runs);

  // Reads the checkpoints that are new. Returns whether there was any, or another problem than before. A checkpoint
  // that the training removes later stays in the page.
  bool Update();

  // Returns {"text", "problem", "of", "checkpoints": [{"step", and the keys of each of a page's maps}]}. "problem" says
  // why no weights could be read, or is empty. If there are too many checkpoints, some are left out evenly, and "of" is
  // their number before that.
  nlohmann::ordered_json ToJson() const;

 private:
  std::string run_, text_, problem_;
  size_t max_bytes_;  // of the weights of all checkpoints
  std::map<int64_t, nlohmann::ordered_json> by_step_;
};

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_ATTENTION_REPORT_H_
