// The tokenizer's files are read whole, so that the run's folder gets an exact copy.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/train/jobs/job.h"

namespace weft {

Hyperparameters TrainingTokenizer::Table() {
  const bool only_bpe = kinds_.size() == 1, learns = kinds_.front() == kBpe;
  return {
      {"tokenizer",
       only_bpe ? "file or folder of a tokenizer; without it, byte-level BPE is learnt from the data"
       : learns ? "characters, with which each character of the data is a token; or the file or folder of a tokenizer. "
                  "Without it, byte-level BPE is learnt from the data"
                : "characters; bytes; bpe, which is byte-level BPE learnt from the data; or the file or folder of a "
                  "tokenizer. Without it, the tokenizer of --init, or else characters",
       &path_,
       {.may_change = true, .is_path = true, .words = kinds_, .group = "Data", .type = "FILE_OR_FOLDER"}},
      {"vocabulary",
       learns ? "maximum number of tokens of a learnt tokenizer" : "maximum number of tokens of --tokenizer=bpe",
       &vocabulary_,
       {.low = 300,
        .high = 1e6,
        .needs = learns ? "tokenizer=bpe or no tokenizer, tokenizer=bpe or no init" : "tokenizer=bpe",
        .group = "Data"}},
      {"special-tokens",
       "read texts of special tokens in the data, such as <|endoftext|>, as these tokens; false: as ordinary text. "
       "Token files keep what weft tokenize read. Default: true, unless tokenizer_config.json has split_special_tokens",
       &special_tokens_,
       {.group = "Data"}},
  };
}

absl::Status TrainingTokenizer::Read(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(tokenizer_, LoadTokenizer(path));
  tokenizer_->ReadSpecial(special_tokens_);
  WEFT_ASSIGN_OR_RETURN(files_, ReadTokenizerFiles(path));
  return absl::OkStatus();
}

absl::Status TrainingTokenizer::Prepare(absl::string_view text, absl::string_view learnt_from) {
  // A run that was killed at its beginning may have no tokenizer yet.
  if (!run_.empty() && !absl::IsNotFound(TokenizerFiles(run_).status())) return Read(owner_ = run_);
  if (!path_.empty() && !absl::c_linear_search(kinds_, path_)) {
    const absl::Status read = Read(path_);
    if (!absl::IsNotFound(read)) return read;
    const std::string word = std::filesystem::path(path_).filename();
    return InvalidArgument("tokenizer: '", word, "' is neither ", absl::StrJoin(kinds_, " nor "),
                           " nor a tokenizer: ", read.message(), DidYouMean(word, kinds_));
  }
  if (default_.empty()) return Learn(text, learnt_from);
  if (!path_.empty()) {
    WEFT_RETURN_IF_ERROR(Learn(text, learnt_from));
    return CheckLearnt();
  }
  const absl::Status read = Read(owner_ = default_);
  if (!absl::IsNotFound(read)) return read;
  return InvalidArgument("tokenizer: none is given, and ", read.message(), "; give ", absl::StrJoin(kinds_, ", "),
                         " or the file of a tokenizer");
}

absl::Status TrainingTokenizer::Learn(absl::string_view text, absl::string_view learnt_from) {
  const std::string& kind = path_.empty() ? kinds_.front() : path_;
  if (kind == kBytes) {
    files_ = {{"tokenizer.json", ByteTokenizer::ToJson()}};
    tokenizer_ = std::make_unique<ByteTokenizer>();
    return absl::OkStatus();
  }
  if (kind == kCharacters) {
    WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromText(text));
    files_ = {{"tokenizer.json", tokenizer.ToJson()}};
    tokenizer_ = std::make_unique<CharacterTokenizer>(std::move(tokenizer));
    if (kinds_.front() == kCharacters) return absl::OkStatus();
    // Sentences need their special tokens, and those held out from the data may have other characters.
    std::vector<std::string> special = special_;
    special.push_back("<unk>");
    files_[0].contents = *PublishedCharacters(files_[0].contents, special);
    WEFT_ASSIGN_OR_RETURN(tokenizer_, ReadTokenizerJson(ParseJson(files_[0].contents)));
    tokenizer_->ReadSpecial(special_tokens_);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(BpeModel model,
                        LearnByteLevelBpe(learnt_from, {.vocabulary = vocabulary_, .special_tokens = special_}));
  if (set_format_ != nullptr) set_format_(&model);
  files_ = {{"tokenizer.json", WriteTokenizerJson(model)}};
  WEFT_ASSIGN_OR_RETURN(tokenizer_, Bpe::Create(std::move(model)));
  tokenizer_->ReadSpecial(special_tokens_);
  return absl::OkStatus();
}

// The embeddings of the model belong to the ids of its own tokenizer.
absl::Status TrainingTokenizer::CheckLearnt() const {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> own = LoadTokenizer(default_);
  if (!own.ok()) return absl::IsNotFound(own.status()) ? absl::OkStatus() : own.status();
  bool same = (*own)->vocabulary_size() == tokenizer_->vocabulary_size();
  for (int32_t id = 0; same && id < tokenizer_->vocabulary_size(); ++id) {
    same = (*own)->TokenText(id) == tokenizer_->TokenText(id);
  }
  if (same) return absl::OkStatus();
  return InvalidArgument("tokenizer: ", path_, " learns new ids, but ", default_,
                         " has ids of its own; leave --tokenizer out");
}

absl::Status TrainingTokenizer::Write(RunDirectory* run) const {
  for (const auto& [name, contents] : files_) WEFT_RETURN_IF_ERROR(run->WriteKept(name, contents));
  return absl::OkStatus();
}

TrainingTokenizer BertTokenizer() {
  return TrainingTokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, [](BpeModel* model) {
    const int32_t classification = *model->vocabulary.Find("[CLS]"), separator = *model->vocabulary.Find("[SEP]");
    model->single = BertSingle(classification, separator);
    model->pair = BertPair(classification, separator);
    // A word of byte-level BPE includes the space before it. [MASK] stands for a word, so [MASK] also takes the
    // space before it.
    for (AddedToken& token : model->special) token.strip_before = token.text == "[MASK]";
  });
}

TrainingTokenizer GptTokenizer() { return TrainingTokenizer({"<|endoftext|>"}, nullptr, {kCharacters, kBytes, kBpe}); }

absl::StatusOr<int32_t> NeededToken(const std::optional<int32_t>& id, absl::string_view name) {
  if (id) return *id;
  return InvalidArgument("the tokenizer has no ", name, " token");
}

}  // namespace weft
