// Readers of files check each entry on its own, so that an error names the token or the line that is malformed.
#include "weft/text/tokenizers/byte_level_bpe.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/byte_alphabet.h"
#include "weft/text/tokenizers/pre_tokenizers.h"

namespace weft {

ByteLevelBpe::ByteLevelBpe(BpeModel model) : PipelineTokenizer(model.pipeline), model_(std::move(model)) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = model_.vocabulary.Find(std::string(1, static_cast<char>(byte))).value_or(-1);
  }
  pipeline_.pre_tokenizers.emplace_back();
  SetPrefixSpace(model_.prefix_space);
  if (!pipeline_.decoders.has_value()) pipeline_.decoders.emplace();
  SetFormats(model_.special, model_.single, model_.pair);
  for (const AddedToken& token : model_.special) {
    absl::StatusOr<std::string> bytes = FromByteAlphabet(Spelling(token.id, model_.vocabulary));
    if (bytes.ok()) Respell(token.id, *std::move(bytes));  // as the decoder of `tokenizers` does
  }
}

bool ByteLevelBpe::SetPrefixSpace(bool space) {
  pipeline_.pre_tokenizers.back() =
      SplitByteLevel({.prefix_space = space, .gpt2_words = model_.gpt2_words, .alphabet = false});
  return true;
}

absl::StatusOr<std::unique_ptr<ByteLevelBpe>> ByteLevelBpe::Create(BpeModel model) {
  auto tokenizer = std::unique_ptr<ByteLevelBpe>(new ByteLevelBpe(std::move(model)));
  WEFT_ASSIGN_OR_RETURN(tokenizer->merges_, MergesOf(tokenizer->vocabulary(), tokenizer->model_.merges));
  return tokenizer;
}

absl::Status ByteLevelBpe::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  if (model_.whole_words) {
    if (const std::optional<int32_t> id = model_.vocabulary.Find(word)) {
      ids->push_back(*id);
      return absl::OkStatus();
    }
  }
  std::vector<int32_t> pieces;
  bool after_unknown = false;
  for (const char byte : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    const bool fused = model_.fuse_unknown && after_unknown;
    after_unknown = id < 0;
    if (id >= 0 || (model_.unknown.has_value() && !fused)) pieces.push_back(id >= 0 ? id : *model_.unknown);
    if (id < 0 && !model_.unknown.has_value()) {
      return InvalidArgument(absl::StrFormat("the word %s has the byte 0x%02X, which is not in the vocabulary",
                                             Quoted(word), static_cast<uint8_t>(byte)));
    }
  }
  merges_.Apply(&pieces);
  ids->insert(ids->end(), pieces.begin(), pieces.end());
  return absl::OkStatus();
}

absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object) {
  if (!object.is_object()) return InvalidArgument("not an object of tokens and their ids");
  VocabularyEntries tokens;
  for (const auto& [token, id] : object.items()) {
    const std::optional<int64_t> number = WholeNumber(id);
    if (!number)
      return InvalidArgument("the id of ", Quoted(token), " is ", id.dump(), ", not a whole number below 2^63");
    tokens.emplace_back(token, *number);
  }
  if (tokens.empty()) return InvalidArgument("it has no tokens");
  return tokens;
}

absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, Annotate(ParseLargeJsonObject(file), path));
  WEFT_ASSIGN_OR_RETURN(VocabularyEntries tokens, Annotate(ReadVocabularyEntries(json), path));
  for (size_t i = 0; as_bytes && i < tokens.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(tokens[i].first, Annotate(ReadToken(tokens[i].first), path));
  }
  return Annotate(Vocabulary::FromIds(std::move(tokens)), path);
}

absl::StatusOr<std::string> ReadToken(absl::string_view token) {
  absl::StatusOr<std::string> bytes = FromByteAlphabet(token);
  if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("token ", Quoted(token)));
  return bytes;
}

absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right, bool as_bytes) {
  TokenPair merge;
  for (auto& [text, bytes] : {std::pair(left, &merge.first), std::pair(right, &merge.second)}) {
    if (text.empty()) return InvalidArgument("a token of the merge is empty");
    WEFT_ASSIGN_OR_RETURN(*bytes, as_bytes ? FromByteAlphabet(text) : std::string(text));
  }
  return merge;
}

absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right, bool as_bytes) {
  const std::vector<absl::string_view> tokens = absl::StrSplit(left_space_right, ' ');
  if (tokens.size() != 2) {
    return InvalidArgument(Quoted(left_space_right), " is not two tokens with a space between them");
  }
  return ReadMerge(tokens[0], tokens[1], as_bytes);
}

}  // namespace weft
