// Validation tokens are the end of the token array.
#include "weft/text/data/corpus.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/utf8.h"

namespace weft {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadMaybeGzip(path));
  if (text.empty()) return InvalidArgument(path, ": the file is empty");
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), path));
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return lines;
}

absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(absl::StripSuffix(line, "\r"));
    if (!ids.ok()) return Annotate(ids.status(), absl::StrCat(path, ", line ", number));
    tokens.insert(tokens.end(), ids->begin(), ids->end());
  }
  return tokens;
}

absl::StatusOr<std::string> ReadKingJamesBible() {
  std::string text;
  std::FILE* pipe = popen("bible -f gen1:1-rev22:21 2>/dev/null", "r");
  if (pipe == nullptr) return absl::InternalError("can't start a process to read the King James Bible");
  char buffer[1 << 16];
  for (size_t size; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, size);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty()) {
    return absl::NotFoundError(
        "the default text, the King James Bible, is not installed: run tools/setup (Debian package bible-kjv), or name "
        "a file as data");
  }
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), "the output of bible"));
  return text;
}

absl::StatusOr<TokenCorpus> TokenCorpus::Create(std::vector<int32_t> tokens, int64_t context) {
  const size_t cut = tokens.size() - (tokens.size() + 9) / 10;
  const int64_t shorter = static_cast<int64_t>(tokens.size() - cut);
  if (shorter <= context || static_cast<int64_t>(cut) <= context) {
    return InvalidArgument("the text is too short for a context of ", context, ": it has ", tokens.size(),
                           " tokens, of which the last ", shorter, " are for validation, which needs more than ",
                           context, "; take a longer text or a smaller context");
  }
  return TokenCorpus(std::move(tokens), context, cut);
}

absl::StatusOr<TokenCorpus> TokenCorpus::Create(std::vector<int32_t> train, absl::Span<const int32_t> validation,
                                                int64_t context) {
  const size_t cut = train.size();
  for (const auto& [what, size] : {std::pair{"text", cut}, std::pair{"validation text", validation.size()}}) {
    if (static_cast<int64_t>(size) > context) continue;
    return InvalidArgument("the ", what, " is too short: it has ", size, " tokens, but a context of ", context,
                           " needs more than that");
  }
  train.insert(train.end(), validation.begin(), validation.end());
  return TokenCorpus(std::move(train), context, cut);
}

absl::Span<const int32_t> TokenCorpus::tokens(DataSplit split) const {
  const absl::Span<const int32_t> all = tokens_;
  return split == DataSplit::kTrain ? all.subspan(0, cut_) : all.subspan(cut_);
}

absl::Status TokenCorpus::Read(DataSplit split, int64_t begin, absl::Span<int32_t> out) const {
  std::copy_n(tokens(split).begin() + begin, out.size(), out.begin());
  return absl::OkStatus();
}

absl::Status TokenCorpus::Documents(DataSplit /*split*/, int64_t /*begin*/, absl::Span<int32_t> out) const {
  std::fill(out.begin(), out.end(), 0);
  return absl::OkStatus();
}

void TokenCorpus::Sample(const WindowOptions& options, TokenBatch* out) const {
  const WeightedTokens all[] = {{this}};
  WEFT_CHECK(SampleWindows(all, options, out).ok());  // memory can be read
}

}  // namespace weft
