// TextStream decodes tokens that arrive one by one, and returns text as soon as later tokens cannot change it.
//
//   TextStream stream(tokenizer, prompt_ids, /*stops=*/{"\n\n"});
//   for (const int32_t token : new_ids) Write(*stream.Add(token));
//   Write(stream.Finish());
#ifndef WEFT_TEXT_TOKENIZERS_TEXT_STREAM_H_
#define WEFT_TEXT_TOKENIZERS_TEXT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

class TextStream {
 public:
  // `prompt`: the tokens before the first added token, whose text may depend on the last of them. `stops`: the text
  // ends where the first of these strings begins. Empty strings are ignored. A stop string may have the texts of
  // special tokens, which the stream itself does not return. `tokenizer` must outlive the stream.
  TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, std::vector<std::string> stops = {});

  // Adds a token. Returns the new characters that later tokens cannot change, except characters that may begin a stop
  // string. Bytes that are not UTF-8 are replaced as by ReplaceInvalidUtf8. Returns InvalidArgument if `token` is not
  // in the vocabulary.
  absl::StatusOr<std::string> Add(int32_t token);
  // Returns the withheld text.
  std::string Finish();
  bool stopped() const { return stopped_; }  // true once a stop string has occurred; no text follows
  size_t withheld() const;                   // number of complete characters that no call has returned yet

 private:
  void AddBytes(absl::string_view before, absl::string_view after);
  absl::StatusOr<std::string> AddHidden(int32_t token);
  void Append(absl::string_view text, char hidden);
  std::string Release(bool all);
  std::string Shown(size_t length) const;  // the first `length` bytes of `text_` without those of hidden tokens

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int32_t> ids_;  // the latest tokens that are shown: `known_` decoded ones, then those not yet decoded
  size_t known_;
  // Withheld: text that CleanUpSpaces may change; bytes of an incomplete character; the possible start of a stop
  // string.
  std::string uncleaned_, bytes_, text_;
  std::string hidden_;  // for each byte of `text_`, '1' if it is of a hidden token
  bool stopped_ = false;
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TEXT_STREAM_H_
