// TextStream decodes tokens that arrive one by one, and returns text as soon as later tokens cannot change it.
//
//   TextStream stream(tokenizer, prompt_ids, {.stop = "\n\n"});
//   for (each new token) Write(*stream.Add(token));
//   Write(stream.Finish());
#ifndef WEFT_TEXT_TEXT_STREAM_H_
#define WEFT_TEXT_TEXT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/tokenizer.h"

namespace weft {

class TextStream {
 public:
  // `prompt`: the tokens before the first added one, because a token's text may depend on the token before it. `stop`:
  // the text ends where this string begins; empty: no stop. `tokenizer` must outlive the stream.
  TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, std::string stop = "");

  // Adds a token. Returns the characters that later tokens cannot change, except those that may begin the stop string.
  // Bytes that are not UTF-8 become U+FFFD.
  absl::StatusOr<std::string> Add(int32_t token);
  // Returns the withheld text.
  std::string Finish();
  bool stopped() const { return stopped_; }  // true once the stop string has occurred; no text follows

 private:
  std::string Release(bool all);

  const Tokenizer& tokenizer_;
  const std::string stop_;
  std::vector<int32_t> ids_;  // the latest tokens: `known_` decoded ones, then those not yet decoded
  size_t known_;
  std::string bytes_, text_;  // withheld: bytes of an incomplete character; the possible start of the stop string
  bool stopped_ = false;
};

}  // namespace weft

#endif  // WEFT_TEXT_TEXT_STREAM_H_
