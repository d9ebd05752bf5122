// Files that are a vocabulary, or its merges. Byte-level BPE is published in two files, the merges and the vocabulary.
// GPT-2 and Hugging Face give these files other names. vocab.txt has the vocabulary of BERT's WordPiece.
//
// Readers check each entry on its own, so that an error names the token or the line that is malformed.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/tokenizer_json.h"
#include "weft/text/tokenizers/word_piece.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

// Reads the contents of vocab.bpe (GPT-2) or merges.txt (Hugging Face): one merge a line, such as "Ġ t". The first line
// may be "#version: 0.2".
absl::StatusOr<std::vector<TokenPair>> ReadBpeMerges(absl::string_view text) {
  std::vector<TokenPair> merges;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty() || (number == 1 && absl::StartsWith(line, "#version"))) continue;
    const absl::StatusOr<TokenPair> merge = ReadMerge(line);
    if (!merge.ok()) return Annotate(merge.status(), absl::StrCat("line ", number));
    merges.push_back(*merge);
  }
  return merges;
}

// Returns a model of `vocabulary` and `merges`. A token is special if UsualSpecialTokens (tokenizer.h) returns it and
// no merge produces it.
BpeModel Gpt2Model(Vocabulary vocabulary, std::vector<TokenPair> merges) {
  absl::flat_hash_set<std::string> merged;
  for (const auto& [left, right] : merges) merged.insert(left + right);
  std::vector<AddedToken> special = UsualSpecialTokens(vocabulary);
  std::erase_if(special, [&](const AddedToken& token) { return merged.contains(token.text); });
  return {.vocabulary = std::move(vocabulary), .merges = std::move(merges), .special = std::move(special)};
}

// The two files say neither how texts become words nor which tokens surround them. Follows the class of transformers
// that `config` names. Without a name, a vocabulary with RoBERTa's special tokens is one of RoBERTa.
absl::Status FollowClass(const nlohmann::json& config, BpeModel* model) {
  constexpr absl::string_view kGpt2[] = {"GPT2Tokenizer", "CodeGenTokenizer", "PreTrainedTokenizer",
                                         "TokenizersBackend"};
  constexpr absl::string_view kRoberta[] = {"RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer",
                                            "MvpTokenizer"};
  const auto begin = model->vocabulary.Find("<s>"), end = model->vocabulary.Find("</s>");
  const bool roberta = begin && end && model->vocabulary.Find("<mask>");
  WEFT_ASSIGN_OR_RETURN(const std::string given,
                        Get<std::string>(config, "tokenizer_class", std::string(roberta ? kRoberta[0] : kGpt2[0])));
  const absl::string_view type = absl::StripSuffix(given, "Fast");
  if (absl::c_linear_search(kGpt2, type)) return absl::OkStatus();
  if (!absl::c_linear_search(kRoberta, type)) {
    return InvalidArgument("tokenizer_class is ", given, ", which needs its tokenizer.json");
  }
  if (!roberta) return InvalidArgument("tokenizer_class is ", given, ", but the vocabulary lacks <s>, </s> or <mask>");
  model->single = BertSingle(*begin, *end);
  model->pair = RobertaPair(*begin, *end);
  for (AddedToken& token : model->special) token.strip_before = token.text == "<mask>";
  return absl::OkStatus();
}

Loaded LoadMerges(const std::string& merges_path, const std::string& vocabulary_path, const nlohmann::json& config) {
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabularyFile(vocabulary_path, /*as_bytes=*/true));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, Annotate(ReadBpeMerges(merges_file), merges_path));
  BpeModel model = Gpt2Model(std::move(vocabulary), std::move(merges));
  WEFT_RETURN_IF_ERROR(Annotate(FollowClass(config, &model), ConfigBeside(merges_path)));
  return Annotate(Bpe::Create(std::move(model)), merges_path);
}

// Texts are lowercased and lose their accents, unless tokenizer_config.json in the same folder says otherwise.
absl::StatusOr<WordPieceModel> ReadBertModel(Vocabulary vocabulary, const nlohmann::json& json) {
  WEFT_ASSIGN_OR_RETURN(const TokenizerSettings settings, ReadTokenizerSettings(json, {}));
  WordPieceModel model = BertModel(std::move(vocabulary), settings.roles);
  BertNormalizer& normalizer = model.normalizer;
  WEFT_ASSIGN_OR_RETURN(normalizer.lowercase, Get(json, "do_lower_case", true));
  WEFT_ASSIGN_OR_RETURN(normalizer.strip_accents, Get(json, "strip_accents", normalizer.lowercase));
  WEFT_ASSIGN_OR_RETURN(normalizer.separate_cjk, Get(json, "tokenize_chinese_chars", true));
  return model;
}

Loaded LoadVocabularyText(const std::string& path, const std::string& /*companion*/, const nlohmann::json& settings) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  std::string note;
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Annotate(ReadVocabularyText(file, &note), path));
  WEFT_ASSIGN_OR_RETURN(WordPieceModel model,
                        Annotate(ReadBertModel(std::move(vocabulary), settings), ConfigBeside(path)));
  WEFT_ASSIGN_OR_RETURN(auto tokenizer, Annotate(WordPiece::Create(std::move(model)), path));
  if (!note.empty()) tokenizer->set_note(absl::StrCat(path, ": ", note));
  return tokenizer;
}

}  // namespace

constexpr TokenizerKind kGpt2Files = {
    .file = "vocab.bpe",
    .companion = "encoder.json",
    .load = LoadMerges,
};

constexpr TokenizerKind kByteLevelBpeFiles = {
    .file = "merges.txt",
    .companion = "vocab.json",
    .load = LoadMerges,
};

constexpr TokenizerKind kBertVocabulary = {
    .file = "vocab.txt",
    .extension = ".txt",
    .load = LoadVocabularyText,
};

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

absl::StatusOr<Vocabulary> ReadVocabularyText(absl::string_view text, std::string* note) {
  Vocabulary vocabulary;
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.empty()) return InvalidArgument("it has no tokens");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view token = absl::StripTrailingAsciiWhitespace(line);
    const std::string location = absl::StrCat("line ", vocabulary.size() + 1);
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(token), location));
    const bool blank = token.empty();
    if (note != nullptr && note->empty() && (blank || vocabulary.Find(token).has_value())) {
      *note = blank ? absl::StrCat(location, " is blank, so id ", vocabulary.size(), " has no token")
                    : absl::StrCat(location, " repeats the token ", Quoted(token), ", whose id is now ",
                                   vocabulary.size(), " and not ", *vocabulary.Find(token));
    }
    vocabulary.AddOrMove(std::string(token));
  }
  return vocabulary;
}

}  // namespace weft
