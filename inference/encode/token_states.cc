// The encoder of a MaskFiller runs on whole texts, and its head on one masked token at a time.
#include "weft/inference/encode/token_states.h"

#include <cmath>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

// Returns the mean of `rows`, which have equal length.
std::vector<float> Mean(const std::vector<absl::Span<const float>>& rows) {
  std::vector<double> sum(rows.front().size());
  for (const absl::Span<const float> row : rows) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  std::vector<float> mean;
  for (const double x : sum) mean.push_back(static_cast<float>(x / static_cast<double>(rows.size())));
  return mean;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MaskFiller>> MaskFiller::Open(const std::string& path, int64_t top_k,
                                                             const BertEncoderOptions& options) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
  const RuntimeOptions runtime = options.runtime;
  auto filler = std::unique_ptr<MaskFiller>(new MaskFiller(top_k, *bert.tokenizer->special_tokens().mask));
  const BertConfig& config = bert.model.config;
  filler->hidden_ = filler->head_.tape.Input("hidden", {kF32, {1, config.width}});
  EmbeddingTable("embeddings.word_embeddings", &filler->head_.tape, config.vocabulary,
                 config.embedding_width != 0 ? config.embedding_width : config.width);
  filler->logits_ = Bert(config).MaskedTokens(filler->hidden_);  // [1, V]
  bert.tokenizer->ReadSpecial(true);                             // the masks of a text
  WEFT_ASSIGN_OR_RETURN(filler->encoder_, BertEncoder::Create(std::move(bert), options, &Bert::Encode));
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
  std::vector<ModelInput> inputs;
  for (const std::vector<int32_t>& text : texts) inputs.push_back(encoder_->tokenizer().Wrap(text));
  WEFT_RETURN_IF_ERROR(encoder_->Run(inputs, [&](size_t text, absl::Span<const float> hidden) {
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

absl::StatusOr<WordVectors> WordVectors::Open(const std::string& path, const std::string& word,
                                              const BertEncoderOptions& options) {
  WordVectors vectors(word);
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  if (const int64_t width = bert.model.config.embedding_width; width != 0) {
    return InvalidArgument(path, ": its token embeddings have the width ", width, " and its hidden states ",
                           bert.model.config.width, ", so that they can't be compared");
  }
  WEFT_ASSIGN_OR_RETURN(vectors.encoder_, BertEncoder::Create(std::move(bert), options, &Bert::Encode));
  const BertEncoder& encoder = *vectors.encoder_;
  absl::StatusOr<std::vector<int32_t>> pieces = encoder.tokenizer().Encode(word);
  if (!pieces.ok()) return Annotate(pieces.status(), "word");
  const std::optional<int32_t> unknown = encoder.tokenizer().special_tokens().unknown;
  if (pieces->empty() || (unknown.has_value() && absl::c_linear_search(*pieces, *unknown))) {
    return InvalidArgument("word: ", path, "'s vocabulary has no pieces for '", word, "'");
  }
  vectors.pieces_ = *std::move(pieces);
  const absl::StatusOr<std::vector<int32_t>> twice = encoder.tokenizer().Encode(absl::StrCat(word, " ", word));
  if (!twice.ok() || twice->size() != 2 * vectors.pieces_.size() || vectors.Positions(*twice).size() != 2) {
    return InvalidArgument(
        path,
        ": its tokenizer gives a word other pieces after a space, or does not mark the pieces within "
        "words, so that words can't be told apart; wanted one of WordPiece");
  }
  // A graph decides in which dtype the table is held.
  WEFT_RETURN_IF_ERROR(vectors.encoder_->Run(vectors.pieces_).status());
  std::vector<std::vector<float>> rows;
  for (const int32_t piece : vectors.pieces_) rows.push_back(encoder.TokenEmbedding(piece));
  vectors.token_embedding_ = Mean(std::vector<absl::Span<const float>>(rows.begin(), rows.end()));
  return vectors;
}

absl::StatusOr<WordVectors::Sentence> WordVectors::Find(absl::string_view sentence) const {
  Sentence found;
  WEFT_ASSIGN_OR_RETURN(found.ids, encoder_->Tokens(sentence));
  found.positions = Positions(found.ids);
  if (!found.positions.empty()) return found;
  const std::vector<int32_t> all = *encoder_->tokenizer().Encode(sentence);
  return InvalidArgument("it does not have the word '", word_, "'", Positions(all).empty() ? "" : " before the cut");
}

absl::StatusOr<std::vector<std::vector<float>>> WordVectors::Contextual(const Sentence& sentence) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> hidden, encoder_->Run(sentence.ids));  // [T, C]
  std::vector<std::vector<float>> vectors;
  for (const size_t position : sentence.positions) {
    std::vector<absl::Span<const float>> rows;
    for (size_t i = 0; i < pieces_.size(); ++i) rows.push_back(encoder_->HiddenState(hidden, position + i));
    vectors.push_back(Mean(rows));
  }
  return vectors;
}

// Returns the indices in `ids` at which an occurrence of the word as a whole word begins.
std::vector<size_t> WordVectors::Positions(absl::Span<const int32_t> ids) const {
  std::vector<size_t> positions;
  for (size_t i = 0; i + pieces_.size() <= ids.size();) {
    const size_t end = i + pieces_.size();
    const bool same = ids.subspan(i, pieces_.size()) == absl::MakeConstSpan(pieces_);
    const bool here = same && (end == ids.size() || WordEndsBefore(ids[end]));
    if (here) positions.push_back(i);
    i = here ? end : i + 1;
  }
  return positions;
}

// Reports whether the word ends before the piece `next`: "bank" ends before "of" and ".", but not before "##ing". Only
// a piece within a word loses its mark behind another piece.
bool WordVectors::WordEndsBefore(int32_t next) const {
  const auto text = [this](std::vector<int32_t> ids) { return *encoder_->tokenizer().DecodeWithSpecial(ids); };
  const std::string both = text({pieces_.back(), next}), last = text({pieces_.back()}), alone = text({next});
  return both == absl::StrCat(last, " ", alone) || both == absl::StrCat(last, alone);
}

double Cosine(absl::Span<const float> a, absl::Span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace weft
