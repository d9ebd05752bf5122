// A RunAttention reads the attention weights of one text with each kept checkpoint of a training run, for the page of a
// RunReport: it shows how attention changes in training.
//
//   RunAttention attention("runs/gpt-1", "In the beginning");
//   attention.Update();   // again while the training goes on: reads new checkpoints only
//   page["attention"] = attention.ToJson(/*runs=*/1);
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
  // `text`: as in AttentionQuery. Text beyond the model's context is cut.
  RunAttention(std::string run, std::string text);

  // Reads the checkpoints that are new. Returns whether there was any, or another problem than before. A checkpoint
  // that the training removes later stays in the page.
  bool Update();

  // Returns {"text", "problem", "of", "checkpoints": [{"step", and the keys of AttentionMapsForPage}]}. "problem" says
  // why no weights could be read, or is empty. `runs`: the number of runs that share the page. If there are too many
  // checkpoints, some are left out evenly, and "of" is their number before that.
  nlohmann::ordered_json ToJson(size_t runs) const;

 private:
  std::string run_, text_, problem_;
  std::map<int64_t, nlohmann::ordered_json> by_step_;
};

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_RUN_ATTENTION_H_
