// tokenizer.model and spiece.model are models of SentencePiece, unigram or BPE. Google's own library encodes with them.
// The special tokens are the model's control tokens and its unknown token. Join decodes the runs of tokens between
// control tokens.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/sentencepiece_model.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

std::optional<int32_t> Optional(int32_t id) { return id < 0 ? std::nullopt : std::optional<int32_t>(id); }

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // The file doesn't state an input format, so Wrap prepends the begin token, as Llama does. If the model has no begin
  // token, Wrap appends the end token, as T5 does.
  explicit SentencePieceTokenizer(SentencePieceModel model) : model_(std::move(model)) {
    std::vector<AddedToken> special;
    for (int32_t id = 0; id < model_.size(); ++id) {
      if (model_.is_special(id)) special.push_back({model_.piece(id), id});
    }
    SetAdded(std::move(special));
    KeepUnknown();
    SetRoles({.begin = Optional(model_.begin()),
              .end = Optional(model_.end()),
              .padding = Optional(model_.padding()),
              .unknown = Optional(model_.unknown())});
    const auto [begin, end] = std::pair(special_tokens().begin, special_tokens().end);
    SetFormat(Surrounded(begin, {WrapItem::kFirst}, begin ? std::nullopt : end), {});
  }

  int64_t vocabulary_size() const override { return model_.size(); }
  bool SetPrefixSpace(bool space) override { return space; }  // the model itself says so

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text, bool /*begins*/) const override {
    WEFT_RETURN_IF_ERROR(CheckUtf8(text));
    return model_.Encode({text.data(), text.size()});
  }
  std::string Piece(int32_t id) const override { return model_.piece(id); }
  std::string Join(absl::Span<const int32_t> ids) const override {
    std::string text;
    std::vector<int32_t> ordinary;
    for (size_t i = 0; i <= ids.size(); ++i) {
      const bool special = i < ids.size() && ids[i] != special_tokens().unknown && model_.is_special(ids[i]);
      if (i < ids.size() && !special) {
        ordinary.push_back(ids[i]);
        continue;
      }
      text += model_.Decode(ordinary);
      ordinary.clear();
      if (special) text += model_.piece(ids[i]);
    }
    return text;
  }

 private:
  SentencePieceModel model_;
};

Loaded Create(absl::string_view contents) {
  SentencePieceModel model;
  const std::string problem = model.Load({contents.data(), contents.size()});
  if (!problem.empty()) return InvalidArgument(problem);
  return std::make_unique<SentencePieceTokenizer>(std::move(model));
}

// The tokenizers of other classes have other ids than the file, or other steps before it.
Loaded Load(const std::string& file, const std::string& companion, const nlohmann::json& config) {
  constexpr absl::string_view kClasses[] = {"LlamaTokenizer", "CodeLlamaTokenizer",  "T5Tokenizer",      "MT5Tokenizer",
                                            "GemmaTokenizer", "PreTrainedTokenizer", "TokenizersBackend"};
  WEFT_ASSIGN_OR_RETURN(
      const std::string given,
      Annotate(Get<std::string>(config, "tokenizer_class", std::string(kClasses[0])), ConfigBeside(file)));
  if (absl::c_linear_search(kClasses, absl::StripSuffix(given, "Fast"))) {
    return FromOneFile<Create>(file, companion, config);
  }
  return InvalidArgument(ConfigBeside(file), ": tokenizer_class is ", given, ", which needs its tokenizer.json");
}

}  // namespace

constexpr TokenizerKind kSentencePieceModel = {
    .file = "tokenizer.model",
    .other_name = "spiece.model",
    .extension = ".model",
    .load = Load,
};

}  // namespace weft
