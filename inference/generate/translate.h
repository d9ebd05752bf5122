// A Translator translates sentences with an encoder-decoder Transformer, greedily or by beam search, many at once.
//
//   WEFT_ASSIGN_OR_RETURN(auto translator, Translator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(auto translations, translator->Translate(sources, {.beam = 5}));
//   translations[i][0].tokens   // the best translation of sources[i]
//
// The encoder runs once for each sentence, and the keys and values of its memory are cached. Each execution of the
// decoder adds one token to each hypothesis. A sentence whose search is done makes room for the next at once.
//
// The translations of a sentence do not depend on other sentences, nor on the batch or the threads.
#ifndef WEFT_INFERENCE_GENERATE_TRANSLATE_H_
#define WEFT_INFERENCE_GENERATE_TRANSLATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/runtime/beam_search.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/transformer.h"

namespace weft {

// Maximum of beam · capacity, the tokens that the cache keeps for one sentence; `capacity` is the maximum length of a
// translation, rounded up. The limit keeps page numbers small. In a model of 6 layers and the width 512 a token takes
// 24 KB, so memory usually ends first.
inline constexpr int64_t kMaxBeamPositions = int64_t{1} << 22;

struct TranslatorCaches;

class Translator {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the translator. `options.batch`: maximum number
  // of sentences at once; there are fewer if batch · beam exceeds 160.
  static absl::StatusOr<std::unique_ptr<Translator>> Create(const TransformerConfig& config, Parameters* parameters,
                                                            const RuntimeOptions& options = {});
  ~Translator();

  // Returns the `n_best` translations of each source, best first, or fewer if fewer exist.
  //
  // `shortlists`: a list of target tokens for each source, or empty. The translations of a source then have only tokens
  // of its list and the end token. Probabilities are those among these tokens.
  //
  // Returns InvalidArgument, with the source's index, if a source has no tokens, more tokens than the context, or a
  // token outside the vocabulary, and if its shortlist is empty or has such a token. Also returns InvalidArgument if
  // one sentence alone exceeds kMaxBeamPositions. Returns FailedPrecondition if the model's probabilities are not
  // numbers.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(
      absl::Span<const std::vector<int32_t>> sources, const BeamSearchOptions& options = {},
      absl::Span<const std::vector<int32_t>> shortlists = {});

 private:
  struct Choices;
  struct Graphs;
  struct Sentence;
  using Tokens = std::vector<int32_t>;
  using Sentences = std::deque<std::unique_ptr<Sentence>>;

  Translator(const TransformerConfig& config, Parameters* parameters, const RuntimeOptions& options);
  absl::Status Check(absl::Span<const Tokens> sources, const BeamSearchOptions& options,
                     absl::Span<const Tokens> shortlists) const;
  int64_t MaxLength(int64_t source_length, const BeamSearchOptions& options) const;
  TranslatorCaches CachesOf(int64_t source_length, size_t sentences, const BeamSearchOptions& options) const;
  absl::Status Encode(absl::Span<const std::unique_ptr<Sentence>> sentences, const TranslatorCaches& caches);
  Choices ChoicesOf(const Sentences& live, int64_t rows) const;
  absl::Status Extend(const Sentences& live, const TranslatorCaches& caches, const BeamSearchOptions& options);
  absl::Status TranslateAll(std::vector<std::unique_ptr<Sentence>> sentences, const TranslatorCaches& caches,
                            const BeamSearchOptions& options, std::vector<std::vector<Hypothesis>>* translations);

  const TransformerConfig config_;
  Parameters* const parameters_;
  const RuntimeOptions options_;
  const std::unique_ptr<Graphs> graphs_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_TRANSLATE_H_
