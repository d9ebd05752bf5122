// The encoder runs on whole texts; the head runs on one masked token at a time.
#include "weft/inference/encode/mask_filling.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/models/layers.h"

namespace weft {

absl::StatusOr<std::unique_ptr<MaskFiller>> MaskFiller::Open(const std::string& path, int64_t top_k,
                                                             const BertEncoderOptions& options) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
  const RuntimeOptions runtime = options.runtime.For(bert.model.weights.dtype());
  auto filler = std::unique_ptr<MaskFiller>(new MaskFiller(top_k, *bert.tokenizer->special_tokens().mask));
  const BertConfig& config = bert.model.config;
  filler->hidden_ = filler->head_.tape.Input("hidden", {kF32, {1, config.width}});
  EmbeddingTable("embeddings.word_embeddings", &filler->head_.tape, config.vocabulary, config.width);
  filler->logits_ = Bert(config).MaskedTokens(filler->hidden_);  // [1, V]
  bert.tokenizer->ReadSpecial(true);                             // the masks of a text
  WEFT_ASSIGN_OR_RETURN(filler->encoder_, BertEncoder::Create(std::move(bert), options, HiddenStates));
  WEFT_RETURN_IF_ERROR(filler->head_.Compile({.fetch = {filler->logits_}}, runtime, filler->encoder_->parameters()));
  return filler;
}

absl::StatusOr<std::vector<int32_t>> MaskFiller::Encode(absl::string_view text) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> all, encoder_->tokenizer().Encode(text));
  const std::string mask = encoder_->tokenizer().TokenText(mask_);
  if (absl::c_count(all, mask_) == 0) return InvalidArgument("there is no ", mask, " in it");
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, encoder_->Tokens(text));
  if (absl::c_count(ids, mask_) == absl::c_count(all, mask_)) return ids;
  return InvalidArgument("it has ", encoder_->tokenizer().Wrap(all).ids.size(),
                         " tokens, and truncate would cut away a ", mask, ": the model's context is ",
                         encoder_->config().context);
}

absl::Status MaskFiller::Fill(absl::Span<const std::vector<int32_t>> texts, Take take) {
  struct Mask {
    size_t position;
    std::vector<float> hidden;
  };
  // Only the hidden states at masks are kept, because the hidden states of all tokens would take far more memory.
  std::vector<std::vector<Mask>> masks(texts.size());
  WEFT_RETURN_IF_ERROR(encoder_->Run(texts, [&](size_t text, absl::Span<const float> hidden) {
    for (size_t position = 0; position < texts[text].size(); ++position) {
      if (texts[text][position] != mask_) continue;
      const absl::Span<const float> state = encoder_->HiddenState(hidden, position);
      masks[text].push_back({position, {state.begin(), state.end()}});
    }
  }));
  for (size_t text = 0; text < texts.size(); ++text) {
    for (const auto& [position, hidden] : masks[text]) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<MaskCandidate> candidates, Candidates(texts[text], position, hidden));
      take(candidates);
    }
  }
  return absl::OkStatus();
}

// Returns the candidates for the mask at `position` of the text `ids`.
absl::StatusOr<std::vector<MaskCandidate>> MaskFiller::Candidates(std::vector<int32_t> ids, size_t position,
                                                                  absl::Span<const float> hidden) {
  const Tokenizer& tokenizer = encoder_->tokenizer();
  const bool several = absl::c_count(ids, mask_) > 1;  // the others stay, and are shown
  WEFT_ASSIGN_OR_RETURN(const Outputs out, head_.Run({{hidden_, hidden}}));
  const std::vector<double> scores = Probabilities(out[logits_].span<const float>());
  // The token table may have more rows than the tokenizer has tokens. Such a row has no text, so it is no candidate.
  const auto known = absl::MakeConstSpan(scores).subspan(0, static_cast<size_t>(tokenizer.vocabulary_size()));
  std::vector<MaskCandidate> candidates;
  for (const int32_t token : Largest(known, top_k_)) {
    ids[position] = token;
    WEFT_ASSIGN_OR_RETURN(std::string sequence, several ? tokenizer.DecodeWithSpecial(ids) : tokenizer.Decode(ids));
    candidates.push_back({known[static_cast<size_t>(token)], token, tokenizer.TokenText(token), std::move(sequence)});
  }
  return candidates;
}

}  // namespace weft
