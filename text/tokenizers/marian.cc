// source.spm and vocab.json are the tokenizer of OPUS-MT's models (MarianTokenizer of transformers). SentencePiece cuts
// a text into pieces, and vocab.json has the id of each piece of both languages. target.spm cuts targets in training;
// it may be missing. A text may begin with the code of the target language, ">>fra<<", which is one token. The
// normalization of punctuation that transformers adds if the package sacremoses is there is not done.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/sentencepiece_model.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr std::pair<const char*, const char*> kSpecial[] = {
    {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};

class MarianTokenizer final : public Tokenizer {
 public:
  using Model = std::shared_ptr<const SentencePieceModel>;

  MarianTokenizer(Model model, Model target_model, Vocabulary vocabulary)
      : model_(std::move(model)), target_model_(std::move(target_model)), vocabulary_(std::move(vocabulary)) {}

  static Loaded Create(Model model, Model target_model, Vocabulary vocabulary) {
    std::vector<AddedToken> special;
    for (const auto& [key, text] : kSpecial) {
      const std::optional<int32_t> id = vocabulary.Find(text);
      if (!id.has_value()) return InvalidArgument("the vocabulary has no '", text, "'");
      special.push_back({text, *id});
    }
    const int32_t end = special.front().id;
    auto tokenizer =
        std::make_unique<MarianTokenizer>(std::move(model), std::move(target_model), std::move(vocabulary));
    tokenizer->SetAdded(std::move(special));
    tokenizer->AllowCleanUp();
    tokenizer->SetFormat(Surrounded({}, {WrapItem::kFirst}, end), {});
    return tokenizer;
  }

  int64_t vocabulary_size() const override { return vocabulary_.size(); }
  std::unique_ptr<Tokenizer> ForTargets() const override {
    auto tokenizer = std::make_unique<MarianTokenizer>(*this);
    tokenizer->model_ = target_model_;
    return tokenizer;
  }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool /*begins*/) const override {
    WEFT_RETURN_IF_ERROR(CheckUtf8(text));
    std::vector<int32_t> ids;
    const auto add = [&](absl::string_view piece) {
      ids.push_back(vocabulary_.Find(piece).value_or(*special_tokens().unknown));
    };
    if (const size_t code = text.find("<<"); absl::StartsWith(text, ">>") && code != text.npos) {
      add(text.substr(0, code + 2));
      text.remove_prefix(code + 2);
    }
    for (const std::string& piece : model_->EncodeAsPieces({text.data(), text.size()})) add(piece);
    return ids;
  }
  std::string Join(absl::Span<const int32_t> ids) const override {
    std::string text;
    std::vector<std::string> pieces;
    const auto flush = [&] {
      absl::StrAppend(&text, model_->DecodePieces(pieces));
      pieces.clear();
    };
    for (const int32_t id : ids) {
      if (!IsSpecial(id)) {
        pieces.push_back(vocabulary_.token(id));
        continue;
      }
      flush();
      absl::StrAppend(&text, vocabulary_.token(id), " ");
    }
    flush();
    return std::string(absl::StripAsciiWhitespace(absl::StrReplaceAll(text, {{"▁", " "}})));
  }

 private:
  Model model_, target_model_;
  Vocabulary vocabulary_;
};

// Refuses settings of tokenizer_config.json that make another tokenizer.
absl::Status CheckSettings(const nlohmann::json& json) {
  if (json.is_null()) return absl::OkStatus();
  if (json.value("separate_vocabs", nlohmann::json()) == true) {
    return InvalidArgument("separate_vocabs is true, wanted one vocabulary for both languages");
  }
  for (const auto& [key, text] : kSpecial) {
    nlohmann::json token = json.value(key, nlohmann::json());
    if (token.is_object()) token = token.value("content", nlohmann::json());
    if (json.contains(key) && token != text) return InvalidArgument(key, " is ", token.dump(), ", wanted ", text);
  }
  return absl::OkStatus();
}

absl::StatusOr<MarianTokenizer::Model> ReadModel(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  auto model = std::make_shared<SentencePieceModel>();
  if (const std::string problem = model->Load(file); !problem.empty()) return InvalidArgument(path, ": ", problem);
  return model;
}

Loaded Load(const std::string& model_path, const std::string& vocabulary_path, const nlohmann::json& config) {
  const size_t folder = model_path.rfind('/') + 1;  // 0 without a '/'
  WEFT_RETURN_IF_ERROR(Annotate(CheckSettings(config), model_path.substr(0, folder) + "tokenizer_config.json"));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabularyFile(vocabulary_path, /*as_bytes=*/false));
  WEFT_ASSIGN_OR_RETURN(const MarianTokenizer::Model model, ReadModel(model_path));
  const std::string target_path = absl::StrCat(model_path.substr(0, folder), kMarianTargets);
  MarianTokenizer::Model target = model;
  if (Exists(target_path)) {
    WEFT_ASSIGN_OR_RETURN(target, ReadModel(target_path));
  }
  return Annotate(MarianTokenizer::Create(model, target, std::move(vocabulary)), vocabulary_path);
}

}  // namespace

constexpr TokenizerKind kMarianFiles = {
    .file = "source.spm",
    .companion = "vocab.json",
    .load = Load,
};

}  // namespace weft
