// An encoder graph fills the caches of a batch. Then each execution of a decoder graph adds a token to all beams, until
// all searches are done.
#include "weft/inference/translate.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/core/tape.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/input_tokens.h"

namespace weft {
namespace {

constexpr int64_t kMaxLonger = 50;     // by default, a translation has at most 50 tokens more than its source
constexpr int64_t kCapacityStep = 32;  // capacities of caches are multiples of this

// Rounds `n` up to 1, 2, 3, 4, 6, 8, 12, ... times `step`. There are so few sizes that the graphs and caches of all
// sizes are kept. Together, these take only a few times the memory of the largest.
int64_t RoundUp(int64_t n, int64_t step) {
  int64_t size = step;
  while (size < n) size *= 2;
  const int64_t smaller = size / 4 * 3;
  return smaller >= n && smaller % step == 0 ? smaller : size;
}

// Returns the maximum number of sentences in one execution, B: B * beam^2 * capacity is at most kMaxBeamPositions.
int64_t MaxRows(int64_t capacity, int64_t beam) { return kMaxBeamPositions / capacity / beam / beam; }

std::string MemoryPrefix(int64_t rows, int64_t length) { return absl::StrCat("translate.memory.", rows, "x", length); }

}  // namespace

// This graph computes, from sources [B, S], the keys and values to which the decoder attends, and caches them.
struct Translator::Encoder {
  Tape tape;
  Var source, lengths;  // i32 [B, S], [B]
  std::unique_ptr<Runner> runner;
};

// This graph computes the most likely next tokens for each of the K beams of each of B sentences.
struct Translator::Decoder {
  Tape tape;
  Var token, position;        // i32 [B, K]
  Var row, hidden;            // with beams: i32 [B, K], bool [B, 1, K, capacity · K]
  Var lengths;                // i32 [B]
  Var log_probability, next;  // f32 and i32 [B, K, candidates]
  std::unique_ptr<Runner> runner;
};

Translator::Translator(const TransformerConfig& config, Parameters* parameters, const TranslatorOptions& options)
    : config_(config), parameters_(parameters), options_(options) {}

Translator::~Translator() = default;

absl::StatusOr<std::unique_ptr<Translator>> Translator::Create(const TransformerConfig& config, Parameters* parameters,
                                                               const TranslatorOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  if (options.batch < 1 || options.length_step < 1) {
    return InvalidArgument("translate: batch ", options.batch, " and length_step ", options.length_step,
                           " must be at least 1");
  }
  auto translator = std::unique_ptr<Translator>(new Translator(config, parameters, options));
  const int64_t shortest = std::min(options.length_step, config.context);
  WEFT_RETURN_IF_ERROR(translator->EncoderOf(1, shortest).status());
  WEFT_RETURN_IF_ERROR(translator->DecoderOf(1, shortest, std::min(kCapacityStep, config.context), {}).status());
  return translator;
}

absl::StatusOr<Translator::Encoder*> Translator::EncoderOf(int64_t rows, int64_t length) {
  std::unique_ptr<Encoder>& encoder = encoders_[{rows, length}];
  if (encoder != nullptr) return encoder.get();
  auto made = std::make_unique<Encoder>();
  made->source = made->tape.Input("source", {kI32, {rows, length}}, {.below = config_.source_vocabulary});
  made->lengths = made->tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
  const Transformer model(config_);
  const VarList stored = model.StoreMemory(model.Encode(made->source, made->lengths), MemoryPrefix(rows, length));
  WEFT_ASSIGN_OR_RETURN(made->runner, EvalRunner(made->tape, {.update = stored, .weights = options_.weights},
                                                 parameters_, options_.threads));
  encoder = std::move(made);
  return encoder.get();
}

absl::StatusOr<Translator::Decoder*> Translator::DecoderOf(int64_t rows, int64_t length, int64_t capacity,
                                                           const BeamSearchOptions& options) {
  const int64_t beam = options.beam;
  std::unique_ptr<Decoder>& decoder = decoders_[{rows, length, capacity, beam}];
  if (decoder != nullptr) return decoder.get();
  auto made = std::make_unique<Decoder>();
  Tape& tape = made->tape;
  made->token = tape.Input("token", {kI32, {rows, beam}}, {.below = config_.target_vocabulary});
  made->position = tape.Input("position", {kI32, {rows, beam}}, {.below = capacity, .ignored = -1});
  made->lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
  if (beam > 1) {
    made->row = tape.Input("row", {kI32, {rows, beam}}, {.below = capacity * beam, .ignored = -1});
    made->hidden = tape.Input("hidden", {kBool, {rows, 1, beam, capacity * beam}});
  }
  const AttentionCache cache = {.prefix = absl::StrCat("translate.cache.", rows, "x", beam, "x", capacity),
                                .capacity = capacity,
                                .positions = made->position,
                                .beams = beam,
                                .rows = made->row,
                                .hidden = made->hidden};
  const Var logits = Transformer(config_).DecodeNext(
      made->token, cache, {.prefix = MemoryPrefix(rows, length), .length = length, .lengths = made->lengths});
  const VarList best =
      TopK(LogSoftmax(Cast(logits, kF32)), std::min(BeamSearch::Candidates(options), config_.target_vocabulary));
  made->log_probability = best[0];
  made->next = best[1];
  WEFT_ASSIGN_OR_RETURN(made->runner,
                        EvalRunner(tape, {.fetch = best, .weights = options_.weights}, parameters_, options_.threads));
  decoder = std::move(made);
  return decoder.get();
}

absl::Status Translator::Check(absl::Span<const Tokens> sources, const TranslateOptions& options) const {
  const BeamSearchOptions& search = options.search;
  const auto invalid = [](auto... text) { return InvalidArgument("translate: ", text...); };
  if (search.beam < 1 || search.n_best < 1 || search.n_best > search.beam) {
    return invalid("beam ", search.beam, " and n_best ", search.n_best, "; wanted 1 <= n_best <= beam");
  }
  if (options.max_length < 0 || options.max_length > config_.context) {
    return invalid("max_length is ", options.max_length, ", but the model's context is ", config_.context);
  }
  int64_t capacity = Capacity(1, options);
  for (const Tokens& source : sources) {
    capacity = std::max(capacity, Capacity(SourceLength(source), options));
  }
  if (MaxRows(capacity, search.beam) < 1) {
    return invalid("beam ", search.beam, " with caches of ", capacity, " tokens: beam * beam * tokens may be at most ",
                   kMaxBeamPositions);
  }
  if (search.min_length < 0 || (options.max_length > 0 && search.min_length > options.max_length)) {
    return invalid("min_length is ", search.min_length, ", wanted 0 .. max_length");
  }
  WEFT_RETURN_IF_ERROR(
      CheckTokens("translate: the format", {search.begin, search.end}, /*context=*/2, config_.target_vocabulary));
  for (size_t i = 0; i < sources.size(); ++i) {
    WEFT_RETURN_IF_ERROR(
        CheckTokens(absl::StrCat("translate: source ", i), sources[i], config_.context, config_.source_vocabulary));
  }
  return absl::OkStatus();
}

int64_t Translator::SourceLength(const Tokens& source) const {
  return std::min(RoundUp(static_cast<int64_t>(source.size()), options_.length_step), config_.context);
}

int64_t Translator::MaxLength(int64_t source_length, const TranslateOptions& options) const {
  return options.max_length > 0 ? options.max_length : std::min(source_length + kMaxLonger, config_.context);
}

int64_t Translator::Capacity(int64_t source_length, const TranslateOptions& options) const {
  return std::min(RoundUp(MaxLength(source_length, options), kCapacityStep), config_.context);
}

absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translator::Translate(absl::Span<const Tokens> sources,
                                                                           const TranslateOptions& options) {
  WEFT_RETURN_IF_ERROR(Check(sources, options));
  std::map<int64_t, std::vector<size_t>> by_length;  // rounded up
  for (size_t i = 0; i < sources.size(); ++i) {
    by_length[SourceLength(sources[i])].push_back(i);
  }
  std::vector<std::vector<Hypothesis>> translations(sources.size());
  for (const auto& [length, members] : by_length) {
    const int64_t max_rows = std::min(options_.batch, MaxRows(Capacity(length, options), options.search.beam));
    for (size_t begin = 0; begin < members.size(); begin += static_cast<size_t>(max_rows)) {
      const auto batch = absl::MakeConstSpan(members).subspan(begin, static_cast<size_t>(max_rows));
      std::vector<const Tokens*> own;
      std::vector<BeamSearch> searches;
      for (size_t i : batch) {
        own.push_back(&sources[i]);
        searches.emplace_back(options.search, MaxLength(static_cast<int64_t>(sources[i].size()), options));
      }
      WEFT_RETURN_IF_ERROR(TranslateBatch(own, length, max_rows, options, absl::MakeSpan(searches)));
      for (size_t i = 0; i < batch.size(); ++i) {
        translations[batch[i]] = searches[i].Best();
        if (!translations[batch[i]].empty()) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("translate: source ", batch[i], ": the model's probabilities are not numbers"));
      }
    }
  }
  return translations;
}

absl::Status Translator::TranslateBatch(absl::Span<const Tokens* const> sources, int64_t length, int64_t max_rows,
                                        const TranslateOptions& options, absl::Span<BeamSearch> searches) {
  const int64_t rows = std::min(static_cast<int64_t>(std::bit_ceil(sources.size())), max_rows);
  const int64_t beam = options.search.beam, capacity = Capacity(length, options);
  WEFT_ASSIGN_OR_RETURN(Encoder* const encoder, EncoderOf(rows, length));
  WEFT_ASSIGN_OR_RETURN(Decoder* const decoder, DecoderOf(rows, length, capacity, options.search));

  Tokens source(static_cast<size_t>(rows * length)), lengths(static_cast<size_t>(rows));
  for (size_t i = 0; i < sources.size(); ++i) {
    std::copy(sources[i]->begin(), sources[i]->end(), source.begin() + static_cast<int64_t>(i) * length);
    lengths[i] = static_cast<int32_t>(sources[i]->size());
  }
  WEFT_RETURN_IF_ERROR(encoder->runner->Run({{encoder->source, source}, {encoder->lengths, lengths}}).status());

  const size_t slots = static_cast<size_t>(capacity * beam), beam_rows = static_cast<size_t>(rows * beam);
  Tokens token(beam_rows), position(beam_rows), row(beam_rows);
  const auto hidden = std::make_unique<bool[]>(beam > 1 ? beam_rows * slots : 0);
  const auto living = [&] { return std::any_of(searches.begin(), searches.end(), [](auto& s) { return !s.done(); }); };
  while (living()) {
    std::fill(position.begin(), position.end(), -1);
    std::fill(row.begin(), row.end(), -1);
    if (beam > 1) std::fill_n(hidden.get(), beam_rows * slots, true);
    for (size_t i = 0; i < searches.size(); ++i) {
      const int32_t at = static_cast<int32_t>(searches[i].length()), width = static_cast<int32_t>(beam);
      for (size_t k = 0; k < searches[i].live().size(); ++k) {
        const BeamSearch::Beam& live = searches[i].live()[k];
        const size_t place = i * static_cast<size_t>(beam) + k;
        token[place] = live.tokens.empty() ? options.search.begin : live.tokens.back();
        position[place] = at;
        row[place] = at * width + static_cast<int32_t>(k);
        if (beam == 1) continue;
        bool* const seen = hidden.get() + place * slots;
        for (size_t t = 0; t < live.path.size(); ++t) seen[static_cast<int32_t>(t) * width + live.path[t]] = false;
        seen[row[place]] = false;
      }
    }
    std::vector<FeedPair> feeds = {{decoder->token, token}, {decoder->position, position}, {decoder->lengths, lengths}};
    if (beam > 1) {
      feeds.push_back({decoder->row, row});
      feeds.push_back({decoder->hidden, absl::Span<const bool>(hidden.get(), beam_rows * slots)});
    }
    WEFT_ASSIGN_OR_RETURN(const Outputs out, decoder->runner->Run(feeds));
    const absl::Span<const float> chances = out[decoder->log_probability].span<const float>();
    const absl::Span<const int32_t> next = out[decoder->next].span<const int32_t>();
    const size_t each = next.size() / beam_rows;
    for (size_t i = 0; i < searches.size(); ++i) {
      const size_t first = i * static_cast<size_t>(beam) * each, count = searches[i].live().size() * each;
      searches[i].Extend(chances.subspan(first, count), next.subspan(first, count));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
