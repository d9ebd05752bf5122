// The encoder runs on whole texts; the head runs on one masked token at a time.
#include "weft/inference/mask_filling.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/probabilities.h"
#include "weft/models/layers.h"

namespace weft {

absl::StatusOr<std::unique_ptr<MaskFiller>> MaskFiller::Open(const std::string& path,
                                                             const MaskFillerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
  auto filler = std::unique_ptr<MaskFiller>(new MaskFiller(options, *bert.tokenizer->special_tokens().mask));
  const BertConfig& config = bert.model.config;
  filler->hidden_ = filler->tape_.Input("hidden", {kF32, {1, config.width}});
  EmbeddingTable("embeddings.word_embeddings", &filler->tape_, config.vocabulary, config.width);
  filler->logits_ = Bert(config).MaskedTokens(filler->hidden_);  // [1, V]
  const auto hidden = [](const Bert& model, Var tokens, Var lengths) {
    return model.Encode(tokens, {.lengths = lengths});  // [B, T, C]
  };
  WEFT_ASSIGN_OR_RETURN(
      filler->encoder_,
      BertEncoder::Create(std::move(bert),
                          {.truncate = options.truncate, .batch = options.batch, .threads = options.threads}, hidden));
  WEFT_ASSIGN_OR_RETURN(filler->runner_, EvalRunner(filler->tape_, {.fetch = {filler->logits_}},
                                                    filler->encoder_->parameters(), options.threads));
  return filler;
}

absl::StatusOr<std::vector<int32_t>> MaskFiller::Encode(absl::string_view text) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> all, encoder_->tokenizer().EncodeWithSpecial(text));
  WEFT_ASSIGN_OR_RETURN(const std::string mask, encoder_->tokenizer().DecodeWithSpecial({mask_}));
  if (absl::c_count(all, mask_) == 0) return absl::InvalidArgumentError(absl::StrCat("there is no ", mask, " in it"));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, encoder_->Tokens(text, /*special=*/true));
  if (absl::c_count(ids, mask_) == absl::c_count(all, mask_)) return ids;
  return absl::InvalidArgumentError(absl::StrCat("it has ", encoder_->tokenizer().Wrap(all).ids.size(),
                                                 " tokens, and truncate would cut away a ", mask,
                                                 ": the model's context is ", encoder_->config().context));
}

absl::Status MaskFiller::Fill(absl::Span<const std::vector<int32_t>> texts, Take take) {
  std::vector<std::vector<float>> at_masks(texts.size());
  WEFT_RETURN_IF_ERROR(encoder_->Run(
      texts, [&](size_t i, absl::Span<const float> hidden) { at_masks[i] = HiddenAtMasks(texts[i], hidden); }));
  for (size_t i = 0; i < texts.size(); ++i) WEFT_RETURN_IF_ERROR(FillText(texts[i], at_masks[i], take));
  return absl::OkStatus();
}

// Returns the rows of a text's hidden states [T, C] at its masks. All rows of a batch would take far more memory.
std::vector<float> MaskFiller::HiddenAtMasks(const std::vector<int32_t>& ids, absl::Span<const float> hidden) const {
  const auto width = static_cast<size_t>(encoder_->config().width);
  const std::vector<int32_t> wrapped = encoder_->tokenizer().Wrap(ids).ids;
  const size_t before = static_cast<size_t>(absl::c_search(wrapped, ids) - wrapped.begin());  // special tokens
  std::vector<float> at_masks;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask_) continue;
    const absl::Span<const float> row = hidden.subspan((before + i) * width, width);
    at_masks.insert(at_masks.end(), row.begin(), row.end());
  }
  return at_masks;
}

absl::Status MaskFiller::FillText(const std::vector<int32_t>& ids, absl::Span<const float> at_masks, Take take) {
  const Tokenizer& tokenizer = encoder_->tokenizer();
  const bool several = absl::c_count(ids, mask_) > 1;
  const auto width = static_cast<size_t>(encoder_->config().width);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask_) continue;
    WEFT_ASSIGN_OR_RETURN(const Outputs out, runner_->Run({{hidden_, at_masks.subspan(0, width)}}));
    at_masks.remove_prefix(width);
    const std::vector<double> scores = Probabilities(out[logits_].span<const float>());
    std::vector<MaskCandidate> candidates;
    for (const int32_t token : MostLikely(scores)) {
      std::vector<int32_t> filled = ids;
      filled[i] = token;
      WEFT_ASSIGN_OR_RETURN(std::string text, tokenizer.DecodeWithSpecial({token}));
      WEFT_ASSIGN_OR_RETURN(std::string sequence,
                            several ? tokenizer.DecodeWithSpecial(filled) : tokenizer.Decode(filled));
      candidates.push_back({scores[static_cast<size_t>(token)], token, std::move(text), std::move(sequence)});
    }
    take(candidates);
  }
  return absl::OkStatus();
}

// Ranks only tokens that the tokenizer has; the model's table may have more rows, as padding.
std::vector<int32_t> MaskFiller::MostLikely(absl::Span<const double> scores) const {
  std::vector<int32_t> tokens(static_cast<size_t>(encoder_->tokenizer().vocabulary_size()));
  std::iota(tokens.begin(), tokens.end(), 0);
  const size_t count = std::min(static_cast<size_t>(options_.top_k), tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<int64_t>(count), tokens.end(),
                    [&](int32_t a, int32_t b) {
                      const double left = scores[static_cast<size_t>(a)], right = scores[static_cast<size_t>(b)];
                      return left != right ? left > right : a < b;
                    });
  tokens.resize(count);
  return tokens;
}

}  // namespace weft
