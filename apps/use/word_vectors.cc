// `weft word-vectors` compares the vectors that a BERT computes for one word in several sentences.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/encode/token_states.h"

namespace weft {
namespace {

struct WordVectorsFlags : ModelFlags {
  std::string word;
  BertEncoderOptions encoder;
  bool vectors = false;
};

Hyperparameters Table(WordVectorsFlags* flags) {
  BertEncoderOptions& encoder = flags->encoder;
  return {
      ModelRow(
          "a folder with the config.json, model.safetensors and WordPiece tokenizer of a BERT, or a run with such a "
          "tokenizer",
          &flags->model),
      {"word",
       "the word, which every line must have as a whole word",
       &flags->word,
       {.group = "Data", .type = "WORD", .required = true}},
      {"layer",
       "the layer whose hidden states are taken, from 1; 0: the last",
       &encoder.layers,
       {.low = 0, .group = "Model"}},
      {"vectors",
       "print the vectors, a JSON object for each occurrence of the word, instead of their cosines",
       &flags->vectors,
       {.group = "Output"}},
      TruncateRow(&encoder.truncate),
      WeightsRow(&encoder.runtime.weights),
      ThreadsRow(&encoder.runtime.threads),
  };
}

// One occurrence of the word in a line.
struct Occurrence {
  std::string name;      // "3": the only one in line 3; "3.2": the second of several
  std::string sentence;  // the line
  std::vector<float> contextual;
};

void PrintVectors(const WordVectorsFlags& flags, const std::vector<float>& embedding, const Occurrence& o) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const std::string line =
      absl::StrCat("{\"sentence\":", quoted(o.sentence), ",\"word\":", quoted(flags.word),
                   ",\"static\":", JsonArray(embedding), ",\"contextual\":", JsonArray(o.contextual));
  std::printf("%s}\n", line.c_str());
}

void PrintCosines(const std::vector<float>& embedding, const std::vector<Occurrence>& all) {
  std::string text = absl::StrFormat("%5s%8s", "", "static");
  for (const Occurrence& o : all) absl::StrAppendFormat(&text, "%8s", o.name);
  for (const Occurrence& row : all) {
    absl::StrAppendFormat(&text, "\n%5s%8.3f", row.name, Cosine(row.contextual, embedding));
    for (const Occurrence& o : all) absl::StrAppendFormat(&text, "%8.3f", Cosine(row.contextual, o.contextual));
    absl::StrAppend(&text, "  ", row.sentence);
  }
  text += "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

absl::Status Run(WordVectorsFlags flags) {
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(WordVectors word, UsageError(WordVectors::Open(flags.model, flags.word, flags.encoder)));
  std::vector<Occurrence> all;
  int64_t lines = 0;
  WEFT_RETURN_IF_ERROR(ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    ++lines;
    WEFT_ASSIGN_OR_RETURN(const WordVectors::Sentence sentence, word.Find(line));
    WEFT_ASSIGN_OR_RETURN(std::vector<std::vector<float>> vectors, Failure(word.Contextual(sentence)));
    for (size_t i = 0; i < vectors.size(); ++i) {
      const std::string number = vectors.size() == 1 ? "" : absl::StrCat(".", i + 1);
      Occurrence o = {absl::StrCat(lines, number), std::string(line), std::move(vectors[i])};
      if (flags.vectors) {
        PrintVectors(flags, word.token_embedding(), o);
      } else {
        all.push_back(std::move(o));
      }
    }
    return absl::OkStatus();
  }));
  if (!all.empty()) PrintCosines(word.token_embedding(), all);
  return absl::OkStatus();
}

}  // namespace

Command WordVectorsCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Prints the cosines between the vectors that a word has in different sentences, one sentence a line. "
       "Also prints the cosines between these vectors and the word's row in the table of token embeddings.",
       "compares the vectors of one word in different sentences",
       {{"Compares the vectors of a word in the lines of a file.",
         "weft word-vectors --model=minilm --word=bank sentences.txt"},
        {"Prints the vectors after the first layer, a JSON object a line.",
         "weft word-vectors --model=minilm --word=bank --layer=1 --vectors sentences.txt"}}},
      std::make_shared<WordVectorsFlags>(), Table, Run, &WordVectorsFlags::files);
}

}  // namespace weft
