// `weft attention` shows the attention weights of a model for one text, translation or picture.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/inference/measure/attention_weights.h"
#include "weft/lab/reports/attention_report.h"

namespace weft {
namespace {

struct AttentionFlags {
  std::string model, out, pair, translation;
  bool json = false, overwrite = false, without_special = false;
  std::optional<int64_t> layer, head;
  AttentionQuery query;
  std::vector<std::string> words;
  GivenFlags given;
};

Hyperparameters Table(AttentionFlags* flags) {
  AttentionQuery& query = flags->query;
  return {
      ModelRow("a training run, or a published model: a GPT, a BERT, an encoder-decoder or a ViT", &flags->model),
      {"pair",
       "BERT: the second text of a pair",
       &flags->pair,
       {.needs = "no translation", .group = "Data", .type = "TEXT"}},
      {"translation",
       "encoder-decoder: the translation to read; default: the model's own, by greedy search",
       &flags->translation,
       {.group = "Data", .type = "TEXT"}},
      {"ids", "the texts are token ids, separated by spaces or commas", &query.ids, {.group = "Data"}},
      {"picture", "ViT: the index of the picture in its file, from 0", &query.picture, {.low = 0, .group = "Data"}},
      {"truncate",
       "cut a text that is longer than the model's context, instead of failing",
       &query.truncate,
       {.group = "Data"}},
      {"out",
       "where to write a page for a browser; -: standard output. Default: text for the terminal",
       &flags->out,
       {.group = "Output", .type = "FILE"}},
      {"overwrite", "replace the file of --out", &flags->overwrite, {.needs = "out", .group = "Output"}},
      {"json",
       "print one JSON object: tokens, and weights as [layer][head][target][source]",
       &flags->json,
       {.needs = "no out", .group = "Output"}},
      {"layer",
       "the layer whose map the terminal shows, from 1; default: the last",
       &flags->layer,
       {.low = 1, .needs = "no out, no json", .group = "Output"}},
      {"head",
       "the head whose map the terminal shows, from 1; default: the mean of all",
       &flags->head,
       {.low = 1, .needs = "no out, no json", .group = "Output"}},
      {"without-special-tokens",
       "set the weights for special tokens, such as [CLS], to 0, and divide the others of a target by their sum; "
       "[MASK] and the unknown token stay, since they stand for words",
       &flags->without_special,
       {.needs = "no ids", .group = "Output"}},
      SpecialTokensRow(&query.special_tokens, "Data"),
      ThreadsRow(&query.threads),
  };
}

absl::Status Attention(AttentionFlags flags) {
  const bool pair = flags.given.contains("pair"), translation = flags.given.contains("translation");
  if (!flags.out.empty()) WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  AttentionQuery& query = flags.query;
  query.text = absl::StrJoin(flags.words, " ");
  if (flags.words.empty() && !std::getline(std::cin, query.text)) {
    return InvalidArgument("there is no text: give it after the flags, or as a line of standard input");
  }
  if (pair) query.second = flags.pair;
  if (translation) query.second = flags.translation;
  WEFT_ASSIGN_OR_RETURN(AttentionWeights weights, UsageError(ReadAttention(flags.model, query)));
  if (translation && weights.family != "transformer") {
    return InvalidArgument("--translation is for an encoder-decoder; a BERT's second text is --pair");
  }
  if (pair && weights.family == "transformer") {
    return InvalidArgument("--pair is for a BERT; the second text of an encoder-decoder is --translation");
  }
  for (AttentionMaps& maps : weights.maps) {
    if (flags.without_special) LeaveOutSpecialTokens(&maps);
  }
  if (flags.json) {
    std::printf("%s\n", AttentionJson(weights).c_str());
  } else if (!flags.out.empty()) {
    // The text of a Vision Transformer is the path of a picture.
    const std::string title =
        weights.family == "vit" ? std::filesystem::path(query.text).filename().string() : query.text;
    WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, AttentionPage(weights, title)));
    if (flags.out != "-") std::printf("the page is %s\n", Printable(flags.out).c_str());
  } else {
    WEFT_ASSIGN_OR_RETURN(const std::string text, UsageError(AttentionText(weights, flags.layer, flags.head)));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace

Command AttentionCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<AttentionFlags>();
  Command command = MakeCommand(
      weft, name,
      {"Shows which tokens each token attends to, in every head of every layer: as text, as a page for a browser, "
       "or as JSON.",
       "shows which tokens attend to which, in each head",
       {{"Prints the measures of each head and a map of the last layer.",
         "weft attention --model=runs/gpt-1 In the beginning"},
        {"Writes a page with all heads.", "weft attention --model=minilm --out=attention.html the cat sat on the mat"},
        {"Prints the weights with which a translation is made.",
         "weft attention --model=runs/translate-1 --json ein Haus"}}},
      flags, Table, Attention);
  AddWords(command.app, "text", "the text; for a ViT, the file of pictures. Without it, a line of standard input",
           &flags->words);
  return command;
}

}  // namespace weft
