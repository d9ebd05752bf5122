// `weft fill-mask`: what a BERT puts in the place of masked tokens.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/inference/bert_encoder.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/probabilities.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

struct FillMaskFlags {
  std::string model;
  int64_t top_k = 5, batch = 32, threads = 0;
  bool truncate = false;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(FillMaskFlags* flags) {
  return {
      {"model", "a run of weft train bert, or a Hugging Face folder of a BERT that guesses masked tokens",
       &flags->model},
      {"top-k", "tokens to print for each mask", &flags->top_k, {.low = 1}},
      {"truncate", "cut lines that are longer than the model's context, which are errors else; no mask is cut away",
       &flags->truncate},
      {"batch", "the most lines that are computed at once", &flags->batch, {.low = 1, .high = 4096}},
      {"threads", "threads to compute with; 0: one a core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

class MaskFiller {
 public:
  static absl::StatusOr<std::unique_ptr<MaskFiller>> Create(const FillMaskFlags& flags) {
    WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(flags.model));
    WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
    auto filler = std::unique_ptr<MaskFiller>(new MaskFiller(flags, *bert.tokenizer->special_tokens().mask));
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
                            {.truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads}, hidden));
    WEFT_ASSIGN_OR_RETURN(filler->runner_, EvalRunner(filler->tape_, {.fetch = {filler->logits_}},
                                                      filler->encoder_->parameters(), static_cast<int>(flags.threads)));
    return filler;
  }

  // Prints the tokens for the lines before the first that can't be used, and then returns what is wrong with that.
  absl::Status Lines(absl::Span<const Line> lines) {
    return AnswerLines(
        lines, [this](absl::string_view line) { return Encode(line); },
        [this](absl::Span<const TokenIds> texts) -> absl::Status {
          std::vector<std::vector<float>> at_masks(texts.size());
          WEFT_RETURN_IF_ERROR(encoder_->Run(
              texts, [&](size_t i, absl::Span<const float> hidden) { at_masks[i] = AtMasks(texts[i], hidden); }));
          for (size_t i = 0; i < texts.size(); ++i) WEFT_RETURN_IF_ERROR(Print(texts[i], at_masks[i]));
          return absl::OkStatus();
        });
  }

 private:
  MaskFiller(const FillMaskFlags& flags, int32_t mask) : top_k_(static_cast<size_t>(flags.top_k)), mask_(mask) {}

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view line) const {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> all, encoder_->tokenizer().EncodeWithSpecial(line));
    WEFT_ASSIGN_OR_RETURN(const std::string mask, encoder_->tokenizer().DecodeWithSpecial({mask_}));
    if (absl::c_count(all, mask_) == 0) return absl::InvalidArgumentError(absl::StrCat("there is no ", mask, " in it"));
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, encoder_->Tokens(line, /*special=*/true));
    if (absl::c_count(ids, mask_) == absl::c_count(all, mask_)) return ids;
    return absl::InvalidArgumentError(absl::StrCat("it has ", encoder_->tokenizer().Wrap(all).ids.size(),
                                                   " tokens, and --truncate would cut away a ", mask,
                                                   ": the model's context is ", encoder_->config().context));
  }

  // Of a text's hidden states [T, C] those of its masks, one after the other. A batch's lines have many more.
  std::vector<float> AtMasks(const std::vector<int32_t>& ids, absl::Span<const float> hidden) const {
    const auto width = static_cast<size_t>(encoder_->config().width);
    const std::vector<int32_t> wrapped = encoder_->tokenizer().Wrap(ids).ids;
    const size_t before = static_cast<size_t>(absl::c_search(wrapped, ids) - wrapped.begin());  // special tokens
    std::vector<float> at_masks;
    for (size_t place = 0; place < ids.size(); ++place) {
      if (ids[place] != mask_) continue;
      const absl::Span<const float> row = hidden.subspan((before + place) * width, width);
      at_masks.insert(at_masks.end(), row.begin(), row.end());
    }
    return at_masks;
  }

  // For each mask of a text a line: the likeliest tokens as a JSON array.
  absl::Status Print(const std::vector<int32_t>& ids, absl::Span<const float> at_masks) {
    const bool several = absl::c_count(ids, mask_) > 1;
    for (size_t place = 0; place < ids.size(); ++place) {
      if (ids[place] != mask_) continue;
      const auto width = static_cast<size_t>(encoder_->config().width);
      WEFT_ASSIGN_OR_RETURN(const Outputs out, runner_->Run({{hidden_, at_masks.subspan(0, width)}}));
      at_masks.remove_prefix(width);
      const std::vector<double> scores = Probabilities(out[logits_].span<const float>());
      std::vector<std::string> candidates;
      for (const int32_t token : Likeliest(scores)) {
        std::vector<int32_t> filled = ids;
        filled[place] = token;
        const Tokenizer& tokenizer = encoder_->tokenizer();
        WEFT_ASSIGN_OR_RETURN(const std::string text, tokenizer.DecodeWithSpecial({token}));
        WEFT_ASSIGN_OR_RETURN(const std::string sequence,
                              several ? tokenizer.DecodeWithSpecial(filled) : tokenizer.Decode(filled));
        const nlohmann::ordered_json json = {{"score", scores[static_cast<size_t>(token)]},
                                             {"token", token},
                                             {"token_str", text},
                                             {"sequence", sequence}};
        // A token may be a part of a character.
        candidates.push_back(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
      }
      std::printf("[%s]\n", absl::StrJoin(candidates, ",").c_str());
    }
    return absl::OkStatus();
  }

  // A table may have rows beyond the tokenizer's tokens.
  std::vector<int32_t> Likeliest(absl::Span<const double> scores) const {
    std::vector<int32_t> tokens(static_cast<size_t>(encoder_->tokenizer().vocabulary_size()));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
    const size_t count = std::min(top_k_, tokens.size());
    std::partial_sort(tokens.begin(), tokens.begin() + static_cast<int64_t>(count), tokens.end(),
                      [&](int32_t a, int32_t b) {
                        const double left = scores[static_cast<size_t>(a)], right = scores[static_cast<size_t>(b)];
                        return left != right ? left > right : a < b;
                      });
    tokens.resize(count);
    return tokens;
  }

  const size_t top_k_;
  const int32_t mask_;
  std::unique_ptr<BertEncoder> encoder_;
  Tape tape_;  // the head's, of one token at a time, as a table of all tokens is large
  Var hidden_, logits_;
  std::unique_ptr<Runner> runner_;
};

absl::Status FillMask(FillMaskFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=DIR is missing");
  const absl::StatusOr<std::unique_ptr<MaskFiller>> filler = MaskFiller::Create(flags);
  if (!filler.ok()) return UsageError(filler.status());
  return ForEachBatch(flags.files, kBatchesAtOnce * static_cast<size_t>(flags.batch),
                      [&](absl::Span<const Line> lines) { return (*filler)->Lines(lines); });
}

}  // namespace

Command FillMaskCommand(CLI::App* weft) {
  auto flags = std::make_shared<FillMaskFlags>();
  CLI::App* app = AddCommand(
      weft, "fill-mask",
      "Prints for each mask in each line of text, written as the model's mask token ([MASK]), the likeliest tokens: a "
      "JSON array of objects with score (the probability), token (its id), token_str and sequence (the line with the "
      "token in the mask's place).");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft fill-mask", app, [flags] { return FillMask(*flags); }};
}

}  // namespace weft
