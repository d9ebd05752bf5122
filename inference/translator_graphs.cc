#include "weft/inference/translator_graphs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/ops/ops.h"

namespace weft {

AttentionCache TranslatorCaches::Memory(Var positions, Var slot_pages) const {
  const int64_t count = memories * pages;
  return {absl::StrCat("translate.memory.", count), positions, slot_pages, count, kMemoryPage};
}

AttentionCache TranslatorCaches::Search(Var positions, Var own_pages) const {
  const int64_t count = searches * hypotheses * capacity;
  return {absl::StrCat("translate.cache.", count), positions, own_pages, count, /*page_size=*/1};
}

absl::Status TranslatorEncoder::Compile(const TransformerConfig& config, const EncoderSize& size,
                                        const TranslatorCaches& caches, const RuntimeOptions& runtime,
                                        Parameters* parameters) {
  const auto [rows, length] = size;
  source = tape.Input("source", {kI32, {rows, length}}, {.below = config.source_vocabulary});
  lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
  position = tape.Input("position", {kI32, {rows, length}}, {.below = length, .ignored = -1});
  pages = tape.Input("pages", {kI32, {rows, caches.pages}}, {.below = caches.memories * caches.pages});
  const Transformer model(config);
  const VarList stored = model.StoreMemory(model.Encode(source, lengths), caches.Memory(position, pages));
  return EvalGraph::Compile({.update = stored, .few_rows = kMaxTranslatorRows}, runtime, parameters);
}

absl::Status TranslatorDecoder::Compile(const TransformerConfig& config, const DecoderSize& size,
                                        const TranslatorCaches& caches, const RuntimeOptions& runtime,
                                        Parameters* parameters) {
  const int64_t rows = size.rows, vocabulary = config.target_vocabulary;
  const auto input = [&](const char* name, int64_t cols, InputBounds bounds) {
    return tape.Input(name, {kI32, {rows, cols}}, bounds);
  };
  token = input("token", 1, {.below = vocabulary});
  position = input("position", 1, {.below = caches.capacity, .ignored = -1});
  pages = input("pages", caches.capacity, {.below = caches.searches * caches.hypotheses * caches.capacity});
  memory_last = input("memory_last", 1, {.below = caches.pages * kMemoryPage, .ignored = -1});
  memory_pages = input("memory_pages", caches.pages, {.below = caches.memories * caches.pages});
  const bool shortlists = size.candidates > 0;
  if (shortlists) {
    candidates = tape.Input("candidates", {kI32, {size.candidates}}, {.below = vocabulary});
    choices = input("choices", size.choices, {.below = rows * size.candidates, .ignored = -1});
  }
  Var logits = Cast(Transformer(config).DecodeNext(token, caches.Search(position, pages),
                                                   caches.Memory(memory_last, memory_pages), candidates),
                    kF32);
  if (shortlists) {
    const Var chosen = Reshape(Embedding(Reshape(logits, {rows * size.candidates, 1}), choices), choices.shape());
    logits = Reshape(MaskFill(chosen, Less(choices, Number(choices, 0)), -std::numeric_limits<double>::infinity()),
                     {rows, 1, size.choices});
  }
  const VarList best = TopK(LogSoftmax(logits), std::min(caches.candidates, logits.dim(-1)));
  log_probability = best[0];
  next = best[1];
  return EvalGraph::Compile({.fetch = best, .few_rows = kMaxTranslatorRows}, runtime, parameters);
}

}  // namespace weft
