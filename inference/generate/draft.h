// A Drafter guesses the next tokens of texts, so that a Generator can check several of them in one execution (Leviathan
// et al., "Fast inference from Transformers via speculative decoding", 2023). Guesses change no token: the generator
// draws each token from its own model's logits, and keeps a guess only if it is the token that was drawn.
//
//   WEFT_ASSIGN_OR_RETURN(auto small, ModelDraft::Create(config, &parameters, {.batch = 8}));
//   generator->Generate(prompts, {.draft = 4, .drafter = small.get()});
#ifndef WEFT_INFERENCE_GENERATE_DRAFT_H_
#define WEFT_INFERENCE_GENERATE_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/generate/cached_gpt.h"
#include "weft/inference/runtime/page_pool.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/gpt.h"

namespace weft {

struct DraftRequest {
  size_t text = 0;                        // a number that tells texts apart
  absl::Span<const int32_t> tokens = {};  // all tokens in the generator's context, at least one
  size_t count = 0;                       // maximum number of guesses
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Returns guesses of the tokens that follow each text.
  virtual absl::StatusOr<std::vector<std::vector<int32_t>>> Guess(absl::Span<const DraftRequest> requests) = 0;
};

// Returns up to `count` tokens that followed the latest earlier occurrence of the last three tokens of `text`. If these
// did not occur, looks up the last two. Returns no tokens if these did not occur either. Such guesses, prompt look-up
// decoding (Saxena, 2023), pay off for texts that repeat names and phrases.
std::vector<int32_t> DraftByLookup(absl::Span<const int32_t> text, size_t count);

// Guesses the tokens that a smaller GPT with the same tokenizer finds most likely. The smaller GPT has a cache of its
// own, so it reads each token once. There are three exceptions: a token after a wrong guess, a text that has outgrown
// the smaller GPT's context, and a text that was dropped from the cache to make room for another.
class ModelDraft : public Drafter {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the drafter. `options.batch`: maximum number of
  // texts whose tokens are cached, and of requests in one call.
  static absl::StatusOr<std::unique_ptr<ModelDraft>> Create(const GptConfig& config, Parameters* parameters,
                                                            const RuntimeOptions& options);

  // Guesses of a text that is longer than the GPT's context depend on at least half a context. A text with a token
  // outside the GPT's vocabulary gets no guesses.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Guess(absl::Span<const DraftRequest> requests) override;

 private:
  // Its tokens are the end of the text that fits the context, and guesses.
  struct Text : CachedText {
    size_t wanted = 0;  // number of tokens that `tokens` should have
  };

  ModelDraft(const GptConfig& config, const RuntimeOptions& options, int64_t pages);
  Text* TextOf(const DraftRequest& request, absl::Span<const DraftRequest> requests);
  absl::Status Read(const std::vector<Text*>& texts);

  const GptConfig config_;
  const RuntimeOptions options_;
  std::unique_ptr<CachedGpt> gpt_;
  PagePool pool_;
  std::map<size_t, Text> texts_;  // by DraftRequest::text
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_DRAFT_H_
