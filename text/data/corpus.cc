// Each window is a pure function of the random stream and of the window's number. Only windows from several sources
// need the stream that chooses the source, and only sources of more than 2^32 tokens need a second random word.
#include "weft/text/data/corpus.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// Returns the source of window `index`.
const TokenSource& Choose(absl::Span<const WeightedTokens> sources, RandomStream random, uint64_t index) {
  if (sources.size() == 1) return *sources[0].source;
  double total = 0;
  for (const WeightedTokens& each : sources) total += each.weight;
  random.stream = kSourceStream;
  double left = total * (static_cast<double>(random.Word(index)) * 0x1p-32);
  for (const WeightedTokens& each : sources) {
    if (left < each.weight) return *each.source;
    left -= each.weight;
  }
  // Rounding of the sum can lead here. A source of weight 0 is not chosen.
  return *std::find_if(sources.rbegin(), sources.rend(), [](const auto& each) { return each.weight > 0; })->source;
}

// Returns an integer from 0 .. n - 1. For n up to 2^32 it is random.Below(n, index).
uint64_t Position(RandomStream random, uint64_t n, uint64_t index) {
  if (n <= uint64_t{1} << 32) return random.Below(n, index);
  RandomStream low = random;
  low.stream = kLowPositionStream;
  const uint64_t word = uint64_t{random.Word(index)} << 32 | low.Word(index);
  return absl::Uint128High64(absl::uint128(word) * n);
}

// Divides 0 .. n - 1 into `rows` parts, and returns an integer from part `row`. The first n mod `rows` parts are longer
// by one than the others.
uint64_t PositionInPart(RandomStream random, uint64_t n, uint64_t index, uint64_t row, uint64_t rows) {
  const auto begin = [&](uint64_t i) { return i * (n / rows) + std::min(i, n % rows); };
  const uint64_t low = begin(row), size = begin(row + 1) - low;
  return size == 0 ? n - 1 : low + Position(random, size, index);  // parts are empty if n < `rows`
}

// Returns the number of rows that `options` ask for.
size_t RowCount(const WindowOptions& options) {
  return static_cast<size_t>((options.end < 0 ? options.rows : options.end) - options.begin);
}

// Calls visit(row, source, begin) for each row, counted from 0, with the source and the first token of its window.
// Returns the first error of `visit`.
template <class Visit>
absl::Status ForEachWindow(absl::Span<const WeightedTokens> sources, const WindowOptions& options, const Visit& visit) {
  RandomStream random = options.random;
  random.stream = options.split == DataSplit::kTrain ? kTrainWindowStream : kValidationWindowStream;
  for (size_t row = 0; row < RowCount(options); ++row) {
    const auto rows = static_cast<uint64_t>(options.rows), in_batch = static_cast<uint64_t>(options.begin) + row;
    const uint64_t index = static_cast<uint64_t>(options.batch) * rows + in_batch;
    const TokenSource& source = Choose(sources, random, index);
    const auto starts = static_cast<uint64_t>(source.size(options.split) - options.context);
    const uint64_t begin =
        options.by_row ? PositionInPart(random, starts, index, in_batch, rows) : Position(random, starts, index);
    WEFT_RETURN_IF_ERROR(visit(row, source, static_cast<int64_t>(begin)));
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const char* what, size_t tokens, int64_t context) {
  if (static_cast<int64_t>(tokens) > context) return absl::OkStatus();
  return InvalidArgument("the ", what, " is too short: it has ", tokens, " tokens, but a context of ", context,
                         " needs more than that");
}

}  // namespace

absl::Status SampleWindows(absl::Span<const WeightedTokens> sources, const WindowOptions& options, TokenBatch* out) {
  const auto context = static_cast<size_t>(options.context), rows = RowCount(options);
  out->tokens.resize(rows * context);
  out->targets.resize(rows * context);
  out->documents.resize(options.documents ? rows * context : 0);
  std::vector<int32_t> window(context + 1);
  return ForEachWindow(sources, options, [&](size_t row, const TokenSource& source, int64_t begin) -> absl::Status {
    WEFT_RETURN_IF_ERROR(source.Read(options.split, begin, absl::MakeSpan(window)));
    std::copy_n(window.begin(), context, out->tokens.begin() + row * context);
    std::copy_n(window.begin() + 1, context, out->targets.begin() + row * context);
    if (!options.documents) return absl::OkStatus();
    const absl::Span<int32_t> documents = absl::MakeSpan(out->documents).subspan(row * context, context);
    return source.Documents(options.split, begin, documents);
  });
}

absl::Status CheckWindows(absl::Span<const WeightedTokens> sources, const WindowOptions& options) {
  return ForEachWindow(sources, options, [&](size_t /*row*/, const TokenSource& source, int64_t begin) {
    return source.CheckPresent(options.split, begin, options.context + 1);
  });
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
  WEFT_RETURN_IF_ERROR(CheckLength("text", cut, context));
  WEFT_RETURN_IF_ERROR(CheckLength("validation text", validation.size(), context));
  train.insert(train.end(), validation.begin(), validation.end());
  return TokenCorpus(std::move(train), context, cut);
}

absl::StatusOr<TokenCorpus> TokenCorpus::Whole(std::vector<int32_t> tokens, int64_t context) {
  WEFT_RETURN_IF_ERROR(CheckLength("text", tokens.size(), context));
  return TokenCorpus(std::move(tokens), context, /*cut=*/0);
}

absl::Span<const int32_t> TokenCorpus::tokens(DataSplit split) const {
  const absl::Span<const int32_t> all = tokens_;
  return split == DataSplit::kTrain && cut_ > 0 ? all.subspan(0, cut_) : all.subspan(cut_);
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
