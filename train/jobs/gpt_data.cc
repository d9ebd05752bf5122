// All texts become one row of tokens. If the tokenizer has a special token with which texts begin, each text begins
// with it, as in generation and evaluation.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/random.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/data/lines.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/utf8.h"
#include "weft/train/jobs/gpt_job.h"

namespace weft {
namespace {

// Returns the texts that `list` names; "" stands for the King James Bible.
absl::StatusOr<std::vector<TextFile>> ReadData(const std::string& list) {
  if (!list.empty()) return ReadTexts(list);
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadKingJamesBible());
  return std::vector<TextFile>{{"the King James Bible", std::move(text)}};
}

std::string Join(const std::vector<TextFile>& texts) {
  std::string all;
  for (const TextFile& each : texts) all += each.text;
  return all;
}

// Returns the tokens of all texts, each after the special tokens with which a text begins.
absl::StatusOr<std::vector<int32_t>> Encode(const std::vector<TextFile>& texts, const Tokenizer& tokenizer) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> beginning, BeginningOfText(tokenizer));
  if (!absl::c_all_of(beginning, [&](int32_t id) { return tokenizer.IsSpecial(id); })) beginning.clear();
  std::vector<int32_t> tokens;
  for (const TextFile& each : texts) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Annotate(tokenizer.Encode(each.text), each.path));
    tokens.insert(tokens.end(), beginning.begin(), beginning.end());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  return tokens;
}

// Returns the part of `text` from which BPE is learnt: the last tenth is for validation.
absl::string_view FirstNineTenths(absl::string_view text) {
  size_t size = text.size() - text.size() / 10;
  while (size < text.size() && IsContinuation(text[size])) ++size;  // within a character
  return text.substr(0, size);
}

// Returns InvalidArgument unless all paths of `list` are token files, or none is.
absl::Status CheckOneKind(const std::string& list) {
  const std::vector<std::string> paths = TokenSources::Folders(list);
  for (const std::string& path : paths) {
    if (TokenFiles::IsAt(path) == TokenFiles::IsAt(paths.front())) continue;
    return InvalidArgument("of ", path, " and ", paths.front(), ", one is a folder of token files and one is a text");
  }
  return absl::OkStatus();
}

}  // namespace

Hyperparameters GptData::Table() {
  return {
      {"data",
       "UTF-8 texts and folders of texts, as PATH,PATH; or folders of token files (weft tokenize --out) as DIR,DIR or "
       "DIR:WEIGHT,DIR:WEIGHT. gzip may have compressed a text. Without it, the King James Bible",
       &data_,
       {.may_change = true, .is_path_list = true}},
      {"validation",
       "texts or token files for validation, as in --data; without it, the last tenth of the data",
       &validation_,
       {.may_change = true, .is_path_list = true}},
  };
}

absl::Status GptData::Open(int64_t context, MissingShards missing) {
  missing_ = missing;
  WEFT_RETURN_IF_ERROR(Annotate(CheckOneKind(data_), "data"));
  WEFT_RETURN_IF_ERROR(Annotate(CheckOneKind(validation_), "validation"));
  WEFT_RETURN_IF_ERROR(is_token_files() ? OpenTokenFiles(context) : OpenTexts(context));
  token_bytes_ = TokenBytes(*tokenizer_);
  return absl::OkStatus();
}

absl::Status GptData::OpenTexts(int64_t context) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> texts, ReadData(data_));
  const std::string text = Join(texts);
  const bool tenth = validation_.empty();
  std::string characters = text;  // of all splits
  if (!tenth && !TokenSources::Names(validation_)) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> more, Annotate(ReadTexts(validation_), "validation"));
    characters += Join(more);
  }
  WEFT_RETURN_IF_ERROR(tokenizer_.Prepare(characters, tenth ? FirstNineTenths(text) : text));
  absl::StatusOr<std::vector<int32_t>> encoded = Encode(texts, *tokenizer_);
  // With other data than the run had, the trainer's error names the data that changed.
  if (!encoded.ok() && tokenizer_.is_resumed()) {
    WEFT_RETURN_IF_ERROR(tokenizer_.Learn(characters, text));
    encoded = Encode(texts, *tokenizer_);
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Annotate(std::move(encoded), "data"));
  WEFT_ASSIGN_OR_RETURN(TokenCorpus corpus, tenth ? TokenCorpus::Create(std::move(tokens), context)
                                                  : TokenCorpus::Whole(std::move(tokens), context));
  sources_ = std::make_unique<TokenSources>(
      std::make_shared<TokenCorpus>(std::move(corpus)),
      absl::StrFormat("%016x", StableHash(tenth ? text : absl::StrCat(text, "\nwithout validation"))));
  return tenth ? absl::OkStatus() : OpenValidation(context);
}

absl::Status GptData::OpenTokenFiles(int64_t context) {
  if (!tokenizer_.path().empty()) {
    return InvalidArgument("tokenizer: the data is token files, which have a tokenizer of their own");
  }
  const auto splits = validation_.empty() ? TokenSources::kTenth : TokenSources::kWhole;
  WEFT_ASSIGN_OR_RETURN(TokenSources sources, Annotate(TokenSources::Open(data_, context, splits, missing_), "data"));
  sources_ = std::make_unique<TokenSources>(std::move(sources));
  WEFT_RETURN_IF_ERROR(tokenizer_.Read(sources_->tokenizer()));
  if (!validation_.empty()) WEFT_RETURN_IF_ERROR(OpenValidation(context));
  ahead_ = std::make_unique<ReadAhead>(sources_.get());
  return absl::OkStatus();
}

absl::Status GptData::OpenValidation(int64_t context) {
  if (TokenSources::Names(validation_)) {
    WEFT_ASSIGN_OR_RETURN(
        TokenSources files,
        Annotate(TokenSources::Open(validation_, context, TokenSources::kWhole, missing_), "validation"));
    WEFT_ASSIGN_OR_RETURN(const std::vector<NamedContents> own, ReadTokenizerFiles(files.tokenizer()));
    const auto same = [](const NamedContents& a, const NamedContents& b) { return a.contents == b.contents; };
    if (!absl::c_equal(own, tokenizer_.files(), same)) {
      return InvalidArgument("validation: ", files.tokenizer(), " has another tokenizer than the data");
    }
    sources_->SetValidation(std::move(files));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> texts, Annotate(ReadTexts(validation_), "validation"));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Annotate(Encode(texts, *tokenizer_), "validation"));
  WEFT_ASSIGN_OR_RETURN(TokenCorpus corpus, Annotate(TokenCorpus::Whole(std::move(tokens), context), "validation"));
  sources_->SetValidation(TokenSources(std::make_shared<TokenCorpus>(std::move(corpus)), ""));
  return absl::OkStatus();
}

std::string GptData::Counts() const {
  const auto is = [&](const char* text) { return absl::StrContains(tokenizer_.files().front().contents, text); };
  const char* const unit = is(R"("type":"character")") ? "characters" : is(R"("type":"byte")") ? "bytes" : "tokens";
  return absl::StrCat(size(DataSplit::kTrain), " ", unit, " (", tokenizer_->vocabulary_size(), " different)");
}

int64_t GptData::Bytes(absl::Span<const int32_t> tokens) const {
  int64_t sum = 0;
  for (const int32_t id : tokens) {
    const auto index = static_cast<size_t>(id);
    if (index >= token_bytes_.size() || token_bytes_[index] == kUnknownBytes) return 0;
    sum += token_bytes_[index];
  }
  return sum;
}

absl::Status GptData::Draw(const WindowOptions& now, const WindowOptions& next, TokenBatch* out) {
  return ahead_ != nullptr ? ahead_->Take(now, next, out) : sources_->Sample(now, out);
}

}  // namespace weft
