// The tokenizer's files are read whole, so that the run's folder gets an exact copy.
#include "weft/train/jobs/training_tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/text/learn_bpe.h"
#include "weft/text/tokenizer_json.h"

namespace weft {

Hyperparameters TrainingTokenizer::Table() {
  return {
      {"tokenizer",
       "file or folder of a tokenizer; without it, byte-level BPE is learnt from the data",
       &path_,
       {.may_change = true, .is_path = true, .group = "Data", .type = "FILE_OR_FOLDER"}},
      {"vocabulary",
       "maximum number of tokens of a learnt tokenizer",
       &vocabulary_,
       {.low = 300, .high = 1e6, .group = "Data"}},
  };
}

absl::Status TrainingTokenizer::Read(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(tokenizer_, LoadTokenizer(path));
  WEFT_ASSIGN_OR_RETURN(files_, ReadTokenizerFiles(path));
  return absl::OkStatus();
}

absl::Status TrainingTokenizer::Prepare(absl::string_view text) {
  // A run that was killed at its beginning may have no tokenizer yet.
  if (!run_.empty() && !absl::IsNotFound(TokenizerFiles(run_).status())) return Read(run_);
  if (const std::string& path = path_.empty() ? default_ : path_; !path.empty()) return Read(path);
  WEFT_ASSIGN_OR_RETURN(BpeModel model, LearnByteLevelBpe(text, {.vocabulary = vocabulary_, .special = special_}));
  if (set_format_ != nullptr) set_format_(&model);
  files_ = {{"tokenizer.json", WriteTokenizerJson(model)}};
  WEFT_ASSIGN_OR_RETURN(tokenizer_, ByteLevelBpe::Create(std::move(model)));
  return absl::OkStatus();
}

absl::Status TrainingTokenizer::Write(const RunDirectory& run) const {
  for (const auto& [name, contents] : files_) WEFT_RETURN_IF_ERROR(WriteFile(run.File(name), {contents}));
  return absl::OkStatus();
}

TrainingTokenizer BertTokenizer(int64_t vocabulary) {
  return {vocabulary, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, [](BpeModel* model) {
            const int32_t classification = *model->vocabulary.Find("[CLS]"),
                          separator = *model->vocabulary.Find("[SEP]");
            model->single = BertSingle(classification, separator);
            model->pair = BertPair(classification, separator);
            // A word of byte-level BPE includes the space before it. [MASK] stands for a word, so [MASK] also takes the
            // space before it.
            for (SpecialToken& token : model->special) token.strip_before = token.text == "[MASK]";
          }};
}

absl::StatusOr<int32_t> NeededToken(const std::optional<int32_t>& id, absl::string_view name) {
  if (id) return *id;
  return InvalidArgument("the tokenizer has no ", name, " token");
}

}  // namespace weft
