// A tokenizer of which nothing is known but its vocabulary, a token a line, as CTranslate2 has it beside its models.
#ifndef WEFT_TEXT_TOKEN_LIST_H_
#define WEFT_TEXT_TOKEN_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft {

// Where all tokens but the special ones (<blank>, <s>, </s>, <unk>) are single characters, each character of a text is
// one, and white space lies between words and is no token. Else the texts are in tokens already, with spaces between
// them. What the vocabulary doesn't have is <unk>, which comes last if the list doesn't have it.
class TokenList final : public Tokenizer {
 public:
  // The contents of a file, whose lines end in "\n" or "\r\n". InvalidArgument if it is not UTF-8, or has a token
  // twice.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(absl::string_view file);

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const override;
  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  Vocabulary vocabulary_;
  bool characters_ = true;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKEN_LIST_H_
