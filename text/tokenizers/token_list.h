// TokenList encodes texts with a bare list of tokens, which CTranslate2 keeps beside its models. The list doesn't say
// how to split a text into these tokens, so TokenList handles two simple cases: characters, and texts split already.
#ifndef WEFT_TEXT_TOKENIZERS_TOKEN_LIST_H_
#define WEFT_TEXT_TOKENIZERS_TOKEN_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// If all tokens except <blank>, <s>, </s> and the unknown token are single characters, each character of a text is a
// token, and white space is skipped. Otherwise a text must consist of tokens already, separated by white space. A token
// that the list lacks, or that is one of these four, becomes the unknown token. If the list lacks the unknown token,
// Create appends it.
class TokenList final : public Tokenizer {
 public:
  // `file`: one token a line, where lines end in "\n" or "\r\n", or a list of texts in JSON. Returns InvalidArgument if
  // `file` is not UTF-8, or if a token occurs twice.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(absl::string_view file,
                                                           const std::string& unknown = "<unk>");

  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override;
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  Vocabulary vocabulary_;
  bool characters_ = true;  // whether all ordinary tokens are single characters
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKEN_LIST_H_
