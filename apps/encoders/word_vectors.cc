// `weft word-vectors`: what a BERT makes of one word in several sentences, beside the word's row in its table.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/inference/bert_encoder.h"

namespace weft {
namespace {

using Vector = std::vector<float>;
using Ids = absl::Span<const int32_t>;

struct WordVectorsFlags {
  std::string model, word;
  int64_t layer = 0;
  bool vectors = false, truncate = false;
  int64_t threads = 0;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(WordVectorsFlags* flags) {
  return {
      {"model",
       "a folder with the config.json, model.safetensors and WordPiece tokenizer of a BERT, or a run with such a "
       "tokenizer",
       &flags->model},
      {"word", "the word, which every line must have as a whole word", &flags->word},
      {"layer", "the layer whose hidden states are taken, from 1; 0: the last", &flags->layer, {.low = 0}},
      {"vectors", "print the vectors, a JSON object for each place of the word, not their cosines", &flags->vectors},
      {"truncate", "cut lines that are longer than the model's context, which are errors else", &flags->truncate},
      {"threads", "workers; 0: one for each core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

// The word at one place of a text.
struct Occurrence {
  std::string name;      // "3": the one place in line 3; "3.2": the second of several there
  std::string sentence;  // the line
  Vector contextual;
};

// The mean of so many rows of a matrix that has rows as long as `mean`.
Vector Mean(const std::vector<absl::Span<const float>>& rows) {
  std::vector<double> sum(rows.front().size());
  for (const absl::Span<const float> row : rows) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  Vector mean;
  for (const double x : sum) mean.push_back(static_cast<float>(x / static_cast<double>(rows.size())));
  return mean;
}

double Cosine(const Vector& a, const Vector& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

class WordVectors {
 public:
  // Errors are usage errors.
  static absl::StatusOr<WordVectors> Create(const WordVectorsFlags& flags) {
    WordVectors vectors(flags.word);
    absl::StatusOr<OpenedBert> bert = OpenBert(flags.model);
    if (!bert.ok()) return UsageError(bert.status());
    const auto hidden = [](const Bert& bert, Var tokens, Var lengths) {
      return bert.Encode(tokens, {.lengths = lengths});  // [1, T, C]
    };
    WEFT_ASSIGN_OR_RETURN(
        vectors.encoder_,
        BertEncoder::Create(*std::move(bert),
                            {.layers = flags.layer, .truncate = flags.truncate, .threads = flags.threads}, hidden));
    const BertEncoder& encoder = *vectors.encoder_;
    absl::StatusOr<std::vector<int32_t>> pieces = encoder.tokenizer().Encode(flags.word);
    if (!pieces.ok()) return Annotate(pieces.status(), "--word");
    const std::optional<int32_t> unknown = encoder.tokenizer().special_tokens().unknown;
    if (pieces->empty() || (unknown.has_value() && absl::c_linear_search(*pieces, *unknown))) {
      return absl::InvalidArgumentError(
          absl::StrCat("--word: ", flags.model, "'s vocabulary has no pieces for '", flags.word, "'"));
    }
    vectors.pieces_ = *std::move(pieces);
    const absl::StatusOr<std::vector<int32_t>> twice =
        encoder.tokenizer().Encode(absl::StrCat(flags.word, " ", flags.word));
    if (!twice.ok() || vectors.Places(*twice).size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(flags.model,
                       ": its tokenizer gives a word other pieces after a space, or does not mark the pieces within "
                       "words, so that words can't be told apart; wanted one of WordPiece"));
    }
    std::vector<absl::Span<const float>> rows;
    for (const int32_t piece : vectors.pieces_) rows.push_back(encoder.TokenEmbedding(piece));
    vectors.static_ = Mean(rows);
    return vectors;
  }

  // One vector for each place where the line has the word; an error if there is none.
  absl::StatusOr<std::vector<Occurrence>> Of(absl::string_view line) {
    ++lines_;
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder_->Tokens(line));
    const std::vector<size_t> places = Places(ids);
    if (places.empty()) {
      const std::vector<int32_t> all = *encoder_->tokenizer().Encode(line);
      return absl::InvalidArgumentError(
          absl::StrCat("it does not have the word '", word_, "'", Places(all).empty() ? "" : " before the cut"));
    }
    const std::vector<int32_t> wrapped = encoder_->tokenizer().Wrap(ids).ids;
    const size_t before = absl::c_search(wrapped, ids) - wrapped.begin();  // special tokens
    const absl::StatusOr<std::vector<Vector>> results = encoder_->Run({ids});
    if (!results.ok()) return Failure(results.status());
    const absl::Span<const float> hidden = (*results)[0];  // [T, C]
    std::vector<Occurrence> occurrences;
    for (const size_t place : places) {
      const size_t width = static_cast<size_t>(encoder_->config().width);
      std::vector<absl::Span<const float>> rows;
      for (size_t i = 0; i < pieces_.size(); ++i) rows.push_back(hidden.subspan((before + place + i) * width, width));
      const std::string number = places.size() == 1 ? "" : absl::StrCat(".", occurrences.size() + 1);
      occurrences.push_back({absl::StrCat(lines_, number), std::string(line), Mean(rows)});
    }
    return occurrences;
  }

  const Vector& fixed() const { return static_; }

 private:
  explicit WordVectors(std::string word) : word_(std::move(word)) {}

  // Where the word's pieces stand in ids as a whole word.
  std::vector<size_t> Places(Ids ids) const {
    std::vector<size_t> places;
    for (size_t i = 0; i + pieces_.size() <= ids.size();) {
      const size_t end = i + pieces_.size();
      const bool here = ids.subspan(i, pieces_.size()) == Ids(pieces_) && (end == ids.size() || Ends(ids[end]));
      if (here) places.push_back(i);
      i = here ? end : i + 1;
    }
    return places;
  }
  // Whether the word ends before the piece `next`: "bank" does before "of", not before "##ing".
  bool Ends(int32_t next) const {
    const auto text = [this](std::vector<int32_t> ids) { return *encoder_->tokenizer().DecodeWithSpecial(ids); };
    return text({pieces_.back(), next}) != absl::StrCat(text({pieces_.back()}), text({next}));
  }

  const std::string word_;
  std::unique_ptr<BertEncoder> encoder_;
  std::vector<int32_t> pieces_;
  Vector static_;
  int64_t lines_ = 0;
};

void PrintVectors(const std::string& word, const Vector& fixed, const Occurrence& o) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const std::string line = absl::StrCat("{\"sentence\":", quoted(o.sentence), ",\"word\":", quoted(word),
                                        ",\"static\":", JsonArray(fixed), ",\"contextual\":", JsonArray(o.contextual));
  std::printf("%s}\n", line.c_str());
}

void PrintCosines(const Vector& fixed, const std::vector<Occurrence>& all) {
  std::string text = absl::StrFormat("%5s%8s", "", "static");
  for (const Occurrence& o : all) absl::StrAppendFormat(&text, "%8s", o.name);
  for (const Occurrence& row : all) {
    absl::StrAppendFormat(&text, "\n%5s%8.3f", row.name, Cosine(row.contextual, fixed));
    for (const Occurrence& o : all) absl::StrAppendFormat(&text, "%8.3f", Cosine(row.contextual, o.contextual));
    absl::StrAppend(&text, "  ", row.sentence);
  }
  text += "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

absl::Status Run(WordVectorsFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=FOLDER is missing");
  if (flags.word.empty()) return absl::InvalidArgumentError("--word=WORD is missing");
  WEFT_ASSIGN_OR_RETURN(WordVectors vectors, WordVectors::Create(flags));
  std::vector<Occurrence> all;
  WEFT_RETURN_IF_ERROR(ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(std::vector<Occurrence> occurrences, vectors.Of(line));
    for (Occurrence& o : occurrences) {
      if (flags.vectors) {
        PrintVectors(flags.word, vectors.fixed(), o);
      } else {
        all.push_back(std::move(o));
      }
    }
    return absl::OkStatus();
  }));
  if (!all.empty()) PrintCosines(vectors.fixed(), all);
  return absl::OkStatus();
}

}  // namespace

Command WordVectorsCommand(CLI::App* weft) {
  auto flags = std::make_shared<WordVectorsFlags>();
  CLI::App* app = AddCommand(weft, "word-vectors",
                             "Prints how alike a word's vectors are in the sentences it stands in, each a "
                             "line of text, and how alike the word's row in the table of embeddings.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft word-vectors", app, [flags] { return Run(*flags); }};
}

}  // namespace weft
