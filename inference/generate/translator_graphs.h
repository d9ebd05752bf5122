// The graphs of a Translator, and the sizes of the caches that they share. This header belongs to translate.cc.
#ifndef WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_
#define WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/core/parameters.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/attention.h"
#include "weft/models/transformer.h"
#include "weft/ops/ops.h"

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
  AttentionCache At(Var positions, Var slot_pages) const {
    return {absl::StrCat("translate.memory.", page_count()), positions, slot_pages, page_count(), kMemoryPage};
  }
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
                      Parameters* parameters) {
    const auto& [rows, length, memory] = size;
    source = tape.Input("source", {kI32, {rows, length}}, {.below = config.source_vocabulary});
    lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
    position = tape.Input("position", {kI32, {rows, length}}, {.below = length, .ignored = -1});
    pages = tape.Input("pages", {kI32, {rows, memory.pages}}, {.below = memory.page_count()});
    const Transformer model(config);
    const VarList stored = model.StoreMemory(model.Encode(source, lengths), memory.At(position, pages));
    return Compile({.update = stored, .few_rows = kMaxTranslatorRows}, runtime, parameters);
  }
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
                      Parameters* parameters) {
    const TranslatorCaches& caches = size.caches;
    const int64_t rows = size.rows, vocabulary = config.target_vocabulary;
    const auto input = [&](const char* name, int64_t cols, InputBounds bounds) {
      return tape.Input(name, {kI32, {rows, cols}}, bounds);
    };
    token = input("token", 1, {.below = vocabulary});
    position = input("position", 1, {.below = caches.capacity, .ignored = -1});
    pages = input("pages", caches.capacity, {.below = caches.search_pages()});
    memory_last = input("memory_last", 1, {.below = caches.memory.pages * kMemoryPage, .ignored = -1});
    memory_pages = input("memory_pages", caches.memory.pages, {.below = caches.memory.page_count()});
    const bool shortlists = size.candidates > 0;
    if (shortlists) {
      candidates = tape.Input("candidates", {kI32, {size.candidates}}, {.below = vocabulary});
      choices = input("choices", size.choices, {.below = rows * size.candidates, .ignored = -1});
    }
    const AttentionCache search = {absl::StrCat("translate.cache.", caches.search_pages()), position, pages,
                                   caches.search_pages(),
                                   /*page_size=*/1};
    Var logits = Cast(
        Transformer(config).DecodeNext(token, search, caches.memory.At(memory_last, memory_pages), candidates), kF32);
    if (shortlists) {
      const Var chosen = Reshape(Embedding(Reshape(logits, {rows * size.candidates, 1}), choices), choices.shape());
      logits = Reshape(MaskFill(chosen, Less(choices, Number(choices, 0)), -std::numeric_limits<double>::infinity()),
                       {rows, 1, size.choices});
    }
    const VarList best = TopK(LogSoftmax(logits), std::min(caches.candidates, logits.dim(-1)));
    log_probability = best[0];
    next = best[1];
    return Compile({.fetch = best, .few_rows = kMaxTranslatorRows}, runtime, parameters);
  }
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_TRANSLATOR_GRAPHS_H_
