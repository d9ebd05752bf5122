// Byte-level BPE is published in two files, the merges and the vocabulary. GPT-2 and Hugging Face give these files
// other names.
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/byte_level_bpe.h"

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

Loaded Load(const std::string& merges_path, const std::string& vocabulary_path, const nlohmann::json& /*config*/) {
  WEFT_ASSIGN_OR_RETURN(const std::string merges_file, ReadFile(merges_path));
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabularyFile(vocabulary_path, /*as_bytes=*/true));
  WEFT_ASSIGN_OR_RETURN(std::vector<TokenPair> merges, Annotate(ReadBpeMerges(merges_file), merges_path));
  return Annotate(ByteLevelBpe::Create(Gpt2Model(std::move(vocabulary), std::move(merges))), merges_path);
}

}  // namespace

constexpr TokenizerKind kGpt2Files = {
    .file = "vocab.bpe",
    .companion = "encoder.json",
    .load = Load,
};

constexpr TokenizerKind kByteLevelBpeFiles = {
    .file = "merges.txt",
    .companion = "vocab.json",
    .load = Load,
};

}  // namespace weft
