// A RunAttention reads the attention weights of one text with each kept checkpoint of a training run, for the page of a
// RunReport: it shows how attention changes in training.
//
//   RunAttention attention("runs/gpt-1", "In the beginning", /*runs=*/1);
//   attention.Update();   // again while the training goes on: reads new checkpoints only
//   page["attention"] = attention.ToJson();
#ifndef WEFT_LAB_REPORTS_RUN_ATTENTION_H_
#define WEFT_LAB_REPORTS_RUN_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace weft {

class RunAttention {
 public:
  // `text`: as in AttentionQuery. Text beyond the model's context is cut. `runs`: the number of runs that share the
  // page; the more there are, the fewer tokens and checkpoints of each the page has.
  RunAttention(std::string run, std::string text, size_t runs);

  // Reads the checkpoints that are new. Returns whether there was any, or another problem than before. A checkpoint
  // that the training removes later stays in the page.
  bool Update();

  // Returns {"text", "problem", "of", "checkpoints": [{"step", and the keys of AttentionMapsForPage}]}. "problem" says
  // why no weights could be read, or is empty. If there are too many checkpoints, some are left out evenly, and "of" is
  // their number before that.
  nlohmann::ordered_json ToJson() const;

 private:
  std::string run_, text_, problem_;
  size_t max_bytes_;  // of the weights of all checkpoints
  std::map<int64_t, nlohmann::ordered_json> by_step_;
};

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_RUN_ATTENTION_H_
