#include "weft/text/learn_bpe.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/text/gpt2_words.h"
#include "weft/text/learn/learn_vocabulary.h"
#include "weft/text/utf8.h"

namespace weft {

std::vector<TokenPair> LearnMerges(const std::vector<CountedWord>& words, const LearnLimits& limits) {
  Vocabulary vocabulary;
  SymbolWords symbols;
  std::vector<int32_t> ids;
  for (const CountedWord& word : words) {
    ids.clear();
    for (const std::string& symbol : word.symbols) {
      ids.push_back(vocabulary.Find(symbol).value_or(vocabulary.size()));
      if (ids.back() == vocabulary.size()) WEFT_CHECK(vocabulary.Add(symbol).ok());
    }
    symbols.Add(ids, word.count);
  }
  std::vector<TokenPair> merges;
  for (const LearntMerge& merge : LearnVocabulary(std::move(symbols),
                                                  {.vocabulary = limits.symbols,
                                                  .merges = limits.merges,
                                                  .min_count = limits.min_count,
                                                  .ties = TieRule::kLastTexts},
                                                  &vocabulary)) {
    merges.emplace_back(vocabulary.token(merge.left), vocabulary.token(merge.right));
  }
  return merges;
}

absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const LearnByteLevelOptions& options) {
  const int64_t special = static_cast<int64_t>(options.special.size());
  if (options.vocabulary < 256 + special) {
    return InvalidArgument("a vocabulary of ", options.vocabulary, " has no room for 256 bytes and ", special,
                           " special tokens");
  }
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  absl::flat_hash_map<absl::string_view, int64_t> counts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = Gpt2WordEnd(text, begin);
    ++counts[text.substr(begin, end - begin)];
    begin = end;
  }
  BpeModel model;
  std::vector<CountedWord> words(1);  // the first word has all 256 bytes and count 0: bytes get ids 0 to 255
  for (int byte = 0; byte < 256; ++byte) {
    const std::string symbol(1, static_cast<char>(byte));
    words[0].symbols.push_back(symbol);
    WEFT_RETURN_IF_ERROR(model.vocabulary.Add(symbol));
  }
  for (const auto& [word, count] : counts) {
    words.push_back({.count = count});
    for (const char byte : word) words.back().symbols.emplace_back(1, byte);
  }
  model.merges = LearnMerges(words, {.symbols = options.vocabulary - special});
  for (const auto& [left, right] : model.merges) {
    // Different merges can give the same token.
    if (!model.vocabulary.Find(left + right)) WEFT_RETURN_IF_ERROR(model.vocabulary.Add(left + right));
  }
  for (const std::string& token : options.special) {
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(token), absl::StrCat("special token ", model.special.size())));
    model.special.push_back({token, model.vocabulary.size()});
    WEFT_RETURN_IF_ERROR(model.vocabulary.Add(token));
  }
  return model;
}

}  // namespace weft
