// CountWords counts the words of texts of any size on several threads.
//
//   const auto split = [](absl::string_view text, EmitWord emit) {
//     for (const absl::string_view word : BertWords(text)) emit(word);
//   };
//   WEFT_ASSIGN_OR_RETURN(const WordCounts counts, CountWords({"a.txt", "b.txt.gz"}, split, /*threads=*/2));
//   counts.words                                // {"a", 7}, {"b", 1}, ..., in byte order
#ifndef WEFT_TEXT_LEARN_COUNT_WORDS_H_
#define WEFT_TEXT_LEARN_COUNT_WORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct WordCounts {
  std::vector<std::pair<std::string, int64_t>> words;  // distinct words in byte order, each with its count
  int64_t bytes = 0;                                   // of all texts
};

using EmitWord = absl::FunctionRef<void(absl::string_view word)>;
// Calls `emit` for each word of `text`, which is UTF-8. Threads call a SplitWords at the same time.
using SplitWords = absl::FunctionRef<void(absl::string_view text, EmitWord emit)>;

// Counts the words of the files `paths`, which gzip may have compressed; an empty path is standard input. `split` sees
// a text in chunks. A chunk ends after a line end, or before one of " \t\n\r" that follows no white space. So the words
// must not cross such a place. The result is the same for any number of threads. Returns InvalidArgument, with the file
// and the line, for a text that is not UTF-8.
absl::StatusOr<WordCounts> CountWords(const std::vector<std::string>& paths, SplitWords split, int threads);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_COUNT_WORDS_H_
