// The code of docs/using_weft.md about texts and published weights. Prints tokens, a translation's score, and an error.
#include <cstdio>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/base/status.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/measures/translation_measures.h"
#include "weft/text/tokenizers/bpe.h"

absl::Status Tokenize() {
  WEFT_ASSIGN_OR_RETURN(weft::BpeModel model,
                        weft::LearnByteLevelBpe("low lower lowest\nnew newer newest\n", {.vocabulary = 262}));
  WEFT_ASSIGN_OR_RETURN(const auto tokenizer, weft::Bpe::Create(model));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode("lowest new"));
  for (int32_t id : ids) {
    WEFT_ASSIGN_OR_RETURN(const std::string token, tokenizer->Decode({id}));
    std::printf("[%s]", token.c_str());
  }
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Score() {
  const std::vector<std::string> translations = {"The cat sat on the mat.", "It was happy there."};
  const std::vector<std::string> references = {"The cat sat on the mat.", "It was content there."};
  WEFT_ASSIGN_OR_RETURN(const weft::BleuScore bleu, weft::CorpusBleu(translations, references));
  std::printf("%s\n", bleu.ToString().c_str());
  return absl::OkStatus();
}

absl::Status RunGpt(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(weft::PublishedGpt gpt, weft::ReadModelOf<weft::PublishedGpt>(folder));
  weft::Tape tape;
  weft::Var tokens = tape.Input("tokens", {weft::kI32, {1, 3}}, {.below = gpt.config.vocabulary});
  weft::Var logits = weft::Gpt(gpt.config).Logits(tokens);  // [1, 3, V]
  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {logits}, .mode = weft::kEval}));
  weft::Parameters parameters({.draw = false});
  weft::Runner runner(graph, &parameters);
  WEFT_RETURN_IF_ERROR(parameters.Set(folder, gpt.weights.tensors()));
  return runner.Run({{tokens, std::vector<int32_t>{0, 1, 2}}}).status();
}

int main() {
  absl::Status status = Tokenize();
  if (status.ok()) status = Score();
  std::printf("%s\n", RunGpt("nowhere").ToString().c_str());
  return ExitCode(status);
}
