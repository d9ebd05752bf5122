// The text of tokens that come one after the other, given out as soon as it is certain.
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
  // `prompt` is what the tokens continue, as a token's text may depend on the one before it. Where `stop` is not empty,
  // the text ends before it. The tokenizer outlives the stream.
  TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, std::string stop = "");

  // What is certain after one more token: whole characters that don't begin the stop. Bytes that are no UTF-8 become
  // U+FFFD.
  absl::StatusOr<std::string> Add(int32_t token);
  // What was held back until the end.
  std::string Finish();
  bool stopped() const { return stopped_; }  // the stop has come: nothing follows

 private:
  std::string Release(bool all);

  const Tokenizer& tokenizer_;
  const std::string stop_;
  std::vector<int32_t> ids_;  // the last ones whose text is known, and those whose text is not
  size_t known_;              // of ids_
  std::string bytes_, text_;  // held back: bytes that may begin a character; characters that may begin the stop
  bool stopped_ = false;
};

}  // namespace weft

#endif  // WEFT_TEXT_TEXT_STREAM_H_
