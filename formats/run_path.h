// A run may be named together with the weights that are wanted of it, such as "runs/gpt-1@best".
//
//   const RunPath run = ParseRunPath("runs/gpt-1@best");   // {"runs/gpt-1", "best"}
#ifndef WEFT_FORMATS_RUN_PATH_H_
#define WEFT_FORMATS_RUN_PATH_H_

#include <string>

namespace weft {

// How the weights of a run are named after '@', for help and errors.
inline constexpr char kRunWeightsHelp[] =
    "@last (the default), @best, @ema (moving averages), @STEP (a checkpoint), @mean or @mean:K (the mean of all or of "
    "the newest K checkpoints)";

struct RunPath {
  std::string folder;
  std::string weights;  // the text after '@'; empty without it
};
// Divides "FOLDER@WEIGHTS" at the last '@'. If `path` exists, FOLDER has no config.json, or WEIGHTS is empty, the whole
// path is the folder.
RunPath ParseRunPath(const std::string& path);

}  // namespace weft

#endif  // WEFT_FORMATS_RUN_PATH_H_
