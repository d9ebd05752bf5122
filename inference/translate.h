// Translation by an encoder-decoder Transformer: greedy, or by beam search, many sentences at once.
//
//   WEFT_ASSIGN_OR_RETURN(auto translator, Translator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(auto translations, translator->Translate(sources, {{.beam = 5}}));
//   translations[i][0].tokens   // of sources[i] the best
//
// The encoder runs once for each sentence, and its keys and values are kept; the decoder takes one token at a time.
// Sentences are put together by length, so that one graph serves all whose lengths round up to the same.
#ifndef WEFT_INFERENCE_TRANSLATE_H_
#define WEFT_INFERENCE_TRANSLATE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/beam_search.h"
#include "weft/models/transformer.h"

namespace weft {

struct TranslatorOptions {
  int64_t batch = 32;       // the most sentences of one run
  int64_t length_step = 8;  // lengths of sources are rounded up to 1, 2, 3, 4, 6, 8, 12, ... times this
  int threads = 0;
};

struct TranslateOptions {
  BeamSearchOptions search;
  // The most tokens of a translation; 0: 50 more than its source has (Vaswani et al., 2017, 6.1), within the context.
  int64_t max_length = 0;
};

// batch * beam^2 * the places of a cache (the most tokens of a translation, rounded up): what the beams of a step look
// at, of which a head's scores take 4 bytes each. With more, fewer sentences are in a run than TranslatorOptions'
// batch.
inline constexpr int64_t kMaxPlaces = int64_t{1} << 26;

class Translator {
 public:
  // `parameters` gets the weights it doesn't have yet, and the caches; it outlives the translator.
  static absl::StatusOr<std::unique_ptr<Translator>> Create(const TransformerConfig& config, Parameters* parameters,
                                                            const TranslatorOptions& options = {});
  ~Translator();

  // Of each source the n_best translations, best first: fewer only if there are no more. A sentence has the same
  // translations in any company. InvalidArgument, with its number from 0, for a source that has no tokens, more than
  // the context, or one outside the vocabulary, and for beams of which one sentence's take more than kMaxPlaces;
  // FailedPrecondition if the model's probabilities are not numbers, so that no text has one.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(absl::Span<const std::vector<int32_t>> sources,
                                                                 const TranslateOptions& options = {});

 private:
  struct Encoder;
  struct Decoder;
  using Tokens = std::vector<int32_t>;

  Translator(const TransformerConfig& config, Parameters* parameters, const TranslatorOptions& options);
  absl::Status Check(absl::Span<const Tokens> sources, const TranslateOptions& options) const;
  int64_t SourceLength(const Tokens& source) const;  // rounded up
  int64_t MaxLength(int64_t source_length, const TranslateOptions& options) const;
  int64_t Capacity(int64_t source_length, const TranslateOptions& options) const;  // of caches
  absl::StatusOr<Encoder*> EncoderOf(int64_t rows, int64_t length);
  absl::StatusOr<Decoder*> DecoderOf(int64_t rows, int64_t length, int64_t capacity, const BeamSearchOptions& options);
  absl::Status TranslateBatch(absl::Span<const Tokens* const> sources, int64_t length, int64_t most_rows,
                              const TranslateOptions& options, absl::Span<BeamSearch> searches);

  const TransformerConfig config_;
  Parameters* const parameters_;
  const TranslatorOptions options_;
  std::map<std::array<int64_t, 2>, std::unique_ptr<Encoder>> encoders_;
  std::map<std::array<int64_t, 4>, std::unique_ptr<Decoder>> decoders_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_TRANSLATE_H_
