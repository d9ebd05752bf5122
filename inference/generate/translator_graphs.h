// The graphs of a Translator, and the sizes of the caches that they share. This header belongs to translate.cc.
#ifndef WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_
#define WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_

#include <compare>
#include <cstdint>

#include "absl/status/status.h"
#include "weft/core/parameters.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/attention.h"
#include "weft/models/transformer.h"

namespace weft {

// Maximum number of rows of a graph, unless one sentence needs more. Up to this number, products read the weights as
// they are stored, and the bits of a row do not depend on other rows. It is enough for 32 sentences with 5 hypotheses
// each; more rows would hardly be faster.
inline constexpr int64_t kMaxTranslatorRows = 160;
// Positions of a page of a memory. With pages below kCachePage, attention works row by row for any number of rows.
inline constexpr int64_t kMemoryPage = 32;

// The cache of memories. A sentence has a slot in it from its encoding on.
struct MemoryCache {
  int64_t slots = 0, pages = 0;  // `pages`: of each slot

  auto operator<=>(const MemoryCache&) const = default;
  int64_t page_count() const { return slots * pages; }
  // `positions` and `slot_pages` have a row for each row of a graph.
  AttentionCache At(Var positions, Var slot_pages) const;
};

// The sizes of the caches that sentences of similar lengths share. A sentence has a slot in the cache of hypotheses
// while its search runs.
struct TranslatorCaches {
  MemoryCache memory;
  int64_t searches = 0, hypotheses = 0;  // slots for searches, and the maximum number of live hypotheses of each
  int64_t capacity = 0;                  // maximum number of positions of a hypothesis
  int64_t candidates = 0;                // number of likely next tokens of a hypothesis (BeamSearch::Candidates)

  auto operator<=>(const TranslatorCaches&) const = default;
  int64_t search_pages() const { return searches * hypotheses * capacity; }  // of one token each
};

struct EncoderSize {
  int64_t rows = 0, length = 0;
  MemoryCache memory = {};
  auto operator<=>(const EncoderSize&) const = default;
};

// This graph computes, from sources [B, S], the keys and values to which the decoder attends, and caches them.
struct TranslatorEncoder : EvalGraph {
  Var source, lengths;  // i32 [B, S], [B]
  Var position, pages;  // i32 [B, S], [B, P]

  absl::Status Record(const EncoderSize& size, const TransformerConfig& config, const RuntimeOptions& runtime,
                      Parameters* parameters);
};

struct DecoderSize {
  TranslatorCaches caches;
  int64_t rows = 0;  // R
  // With shortlists: the number U of tokens that any row may choose, and the maximum number K that one row may choose.
  int64_t candidates = 0, choices = 0;
  auto operator<=>(const DecoderSize&) const = default;
};

// This graph computes the most likely next tokens of R hypotheses. With shortlists, each row chooses from its own list.
// Its logarithms of probabilities are then those among the tokens of the list.
struct TranslatorDecoder : EvalGraph {
  Var token, position, pages;     // i32 [R, 1], [R, 1], [R, capacity]
  Var memory_last, memory_pages;  // i32 [R, 1]: the last position of the memory; i32 [R, P]
  Var candidates;                 // i32 [U]: tokens
  Var choices;                    // i32 [R, K]: row · U + an index in `candidates`, or -1: no token
  Var log_probability, next;      // f32 and i32 [R, 1, k]; next: tokens, or with shortlists indices in the row's list

  absl::Status Record(const DecoderSize& size, const TransformerConfig& config, const RuntimeOptions& runtime,
                      Parameters* parameters);
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_
