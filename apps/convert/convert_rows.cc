// These rows and the note are shared by `weft import`, `weft export` and `weft quantize`.
#include "weft/apps/convert/convert_rows.h"

#include <cstdio>

#include "absl/strings/str_join.h"
#include "weft/core/status.h"

namespace weft {

Hyperparameters ConvertRows(ConvertOptions* options) {
  return {
      {"tokenizer",
       "the tokenizer's file or folder; without this flag, the files beside the model",
       &options->tokenizer,
       {.type = "FILE_OR_FOLDER"}},
      {"overwrite", "if the folder is not empty, replace the files of a model in it", &options->overwrite},
      {"max-shard-size",
       "divide the weights into files model-00001-of-00005.safetensors of at most this size; without this flag, one "
       "file",
       &options->max_shard_size,
       {.is_bytes = true}},
      {"ignore-extra-tensors", "leave out tensors that the model does not have, and name them on stderr",
       &options->read.ignore_extra_tensors},
  };
}

absl::Status WriteConverted(const ModelConversion& conversion) {
  WEFT_RETURN_IF_ERROR(conversion.Write());
  if (conversion.extra().empty()) return absl::OkStatus();
  std::fprintf(stderr, "note: left out, because the model does not have them: %s\n",
               absl::StrJoin(conversion.extra(), ", ").c_str());
  return absl::OkStatus();
}

}  // namespace weft
