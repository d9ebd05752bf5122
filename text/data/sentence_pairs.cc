// Lines are encoded one at a time, so that an error names the file and the line.
#include "weft/text/data/sentence_pairs.h"

#include <algorithm>
#include <memory>

#include "weft/base/status.h"
#include "weft/core/program.h"

namespace weft {

absl::StatusOr<ParallelText> ReadParallelText(const std::string& source, const std::string& target) {
  ParallelText text = {{.path = source}, {.path = target}};
  WEFT_ASSIGN_OR_RETURN(text.source.lines, ReadLines(source));
  WEFT_ASSIGN_OR_RETURN(text.target.lines, ReadLinesLike(text.source, target));
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadLinesLike(const TextLines& source, const std::string& target) {
  WEFT_ASSIGN_OR_RETURN(std::vector<std::string> lines, ReadLines(target));
  if (lines.size() == source.lines.size()) return lines;
  return InvalidArgument(source.path, " has ", source.lines.size(), " lines, but ", target, " has ", lines.size(),
                         ": each line needs its translation");
}

int64_t SentencePair::length() const { return static_cast<int64_t>(std::max(source.size(), target.size() + 1)); }

absl::StatusOr<size_t> TokensThatFit(size_t count, size_t reserved, const EncodeLimits& limits) {
  const int64_t room = limits.context - static_cast<int64_t>(reserved);
  if (room < 1) {
    return InvalidArgument("a context of ", limits.context, " has no room for text beside ", reserved,
                           " special tokens");
  }
  if (count == 0) return InvalidArgument("there is no text");
  if (static_cast<int64_t>(count) <= room) return count;
  if (limits.truncate) return static_cast<size_t>(room);
  return InvalidArgument(count, " tokens, but the context of ", limits.context, " has room for ", room,
                         "; truncate such lines, or choose a larger context");
}

absl::StatusOr<std::vector<int32_t>> EncodeLine(const TextLines& text, size_t index, const Tokenizer& tokenizer,
                                                const EncodeLimits& limits, size_t reserved) {
  WEFT_RETURN_IF_ERROR(TokensThatFit(1, reserved, limits).status());  // a context without room is no error of the line
  const std::string location = text.Location(index);
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, Annotate(tokenizer.Encode(text.lines[index]), location));
  if (ids.empty()) return InvalidArgument(location, ": the line is empty");
  WEFT_ASSIGN_OR_RETURN(const size_t kept, Annotate(TokensThatFit(ids.size(), reserved, limits), location));
  ids.resize(kept);
  return ids;
}

absl::StatusOr<std::vector<SentencePair>> EncodePairs(const ParallelText& text, const Tokenizer& tokenizer,
                                                      const EncodeLimits& limits, const PairFormat& format) {
  const std::unique_ptr<Tokenizer> own = tokenizer.ForTargets();
  const Tokenizer& targets = own != nullptr ? *own : tokenizer;
  const auto &before = format.before_source, &after = format.after_source, &first = format.before_target;
  std::vector<SentencePair> pairs(text.source.lines.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto& [source, target] = pairs[i];
    WEFT_ASSIGN_OR_RETURN(source, EncodeLine(text.source, i, tokenizer, limits, before.size() + after.size()));
    source.insert(source.begin(), before.begin(), before.end());
    source.insert(source.end(), after.begin(), after.end());
    WEFT_ASSIGN_OR_RETURN(target, EncodeLine(text.target, i, targets, limits, first.size() + 1));
    target.insert(target.begin(), first.begin(), first.end());
  }
  return pairs;
}

std::vector<int64_t> Lengths(absl::Span<const SentencePair> pairs) {
  std::vector<int64_t> lengths;
  for (const SentencePair& pair : pairs) lengths.push_back(pair.length());
  return lengths;
}

void PairRows::Fill(absl::Span<const SentencePair> pairs, absl::Span<const int32_t> examples, int64_t rows,
                    int64_t length, const PairTokens& tokens) {
  const auto size = static_cast<size_t>(rows * length);
  source.assign(size, tokens.padding);
  input.assign(size, tokens.padding);
  target.assign(size, kIgnoredTarget);
  is_text.assign(size, false);
  source_lengths.assign(static_cast<size_t>(rows), 0);
  sources = targets = 0;
  size_t at = 0;  // the index of the row's first element
  for (size_t row = 0; row < examples.size(); ++row, at += static_cast<size_t>(length)) {
    const SentencePair& pair = pairs[static_cast<size_t>(examples[row])];
    std::copy(pair.source.begin(), pair.source.end(), &source[at]);
    source_lengths[row] = static_cast<int32_t>(pair.source.size());
    input[at] = tokens.begin;
    std::copy(pair.target.begin(), pair.target.end(), &input[at] + 1);
    std::fill_n(is_text.begin() + static_cast<std::ptrdiff_t>(at) + 1, pair.target.size(), true);
    std::copy(pair.target.begin(), pair.target.end(), &target[at]);
    target[at + pair.target.size()] = tokens.end;
    sources += static_cast<int64_t>(pair.source.size());
    targets += static_cast<int64_t>(pair.target.size()) + 1;
  }
}

void PairRows::Replace(absl::Span<const int32_t> predicted, double probability, RandomStream random) {
  random.stream = kScheduledSamplingStream;
  for (size_t i = 1; i < input.size(); ++i) {
    if (is_text[i] && static_cast<double>(random.Uniform(i)) < probability) input[i] = predicted[i - 1];
  }
}

}  // namespace weft
