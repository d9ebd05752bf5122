// What docs/using_weft.md says of texts. Prints tokens, and a translation's score.
#include <cstdio>
#include <string>
#include <vector>

#include "core/status.h"
#include "weft/core/status.h"
#include "weft/text/bleu.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/learn_bpe.h"

absl::Status Tokenize() {
  WEFT_ASSIGN_OR_RETURN(weft::BpeModel model,
                        weft::LearnByteLevelBpe("low lower lowest\nnew newer newest\n", {.vocabulary = 262}));
  WEFT_ASSIGN_OR_RETURN(const auto tokenizer, weft::ByteLevelBpe::Create(model));
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

int main() {
  absl::Status status = Tokenize();
  if (status.ok()) status = Score();
  return ExitCode(status);
}
