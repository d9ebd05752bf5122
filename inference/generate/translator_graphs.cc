#include "weft/inference/generate/translator_graphs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/ops/ops.h"

namespace weft {

AttentionCache MemoryCache::At(Var positions, Var slot_pages) const {
  return {absl::StrCat("translate.memory.", page_count()), positions, slot_pages, page_count(), kMemoryPage};
}

absl::Status TranslatorEncoder::Record(const EncoderSize& size, const TransformerConfig& config,
                                       const RuntimeOptions& runtime, Parameters* parameters) {
  const auto& [rows, length, memory] = size;
  source = tape.Input("source", {kI32, {rows, length}}, {.below = config.source_vocabulary});
  lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
  position = tape.Input("position", {kI32, {rows, length}}, {.below = length, .ignored = -1});
  pages = tape.Input("pages", {kI32, {rows, memory.pages}}, {.below = memory.page_count()});
  const Transformer model(config);
  const VarList stored = model.StoreMemory(model.Encode(source, lengths), memory.At(position, pages));
  return Compile({.update = stored, .few_rows = kMaxTranslatorRows}, runtime, parameters);
}

absl::Status TranslatorDecoder::Record(const DecoderSize& size, const TransformerConfig& config,
                                       const RuntimeOptions& runtime, Parameters* parameters) {
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

}  // namespace weft
