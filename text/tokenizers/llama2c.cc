// tokenizer.bin is the tokenizer of llama2.c: pieces with scores. ScoredBpe merges the characters of a text into
// pieces, highest score first. Create turns scores into merges: each way to cut a piece into two other pieces is a
// merge, and the pieces with the highest score have rank 0.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/bpe_merges.h"
#include "weft/text/tokenizers/vocabulary.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

struct ScoredPiece {
  std::string text;  // " the"; "<0x0A>" stands for a byte; "<s>", "</s>" and "<unk>" are special
  float score;
};

// Returns the rank of each piece: the number of pieces with a higher score.
std::vector<int32_t> Ranks(const std::vector<ScoredPiece>& pieces) {
  std::vector<float> scores;
  for (const ScoredPiece& piece : pieces) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  std::vector<int32_t> ranks;
  for (const ScoredPiece& piece : pieces) {
    const auto rank = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    ranks.push_back(static_cast<int32_t>(rank - scores.begin()));
  }
  return ranks;
}

class ScoredBpe final : public Tokenizer {
 public:
  // Returns InvalidArgument if a piece occurs twice or a score is NaN.
  static Loaded Create(const std::vector<ScoredPiece>& pieces);

  int64_t vocabulary_size() const override { return vocabulary_.size(); }

 protected:
  // Puts a space before a nonempty text. A character that is no piece becomes the tokens of its bytes. If a byte has no
  // token, the character becomes the unknown token, or the result is InvalidArgument if there is no unknown token.
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override;
  // Drops the space at the beginning of the first piece, and of a piece after the begin token.
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit ScoredBpe(Vocabulary vocabulary);
  absl::Status AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const;

  static constexpr int16_t kOrdinary = -1, kSpecial = -2;

  Vocabulary vocabulary_;
  std::vector<int16_t> kinds_;  // by id: the value of a byte's token, else kOrdinary or kSpecial
  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
};

ScoredBpe::ScoredBpe(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), kinds_(static_cast<size_t>(vocabulary_.size()), kOrdinary) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = vocabulary_.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
    if (byte_ids_[byte] >= 0) kinds_[static_cast<size_t>(byte_ids_[byte])] = static_cast<int16_t>(byte);
  }
  const std::vector<AddedToken> special = UsualSpecialTokens(vocabulary_);
  for (const AddedToken& token : special) kinds_[static_cast<size_t>(token.id)] = kSpecial;
  SetAdded(special);
  KeepUnknown();
  if (special_tokens().begin.has_value()) SetFormat(BeginText(*special_tokens().begin), {});
}

Loaded ScoredBpe::Create(const std::vector<ScoredPiece>& pieces) {
  Vocabulary vocabulary;
  for (const ScoredPiece& piece : pieces) {
    if (std::isnan(piece.score)) {
      return InvalidArgument("the score of ", Quoted(piece.text), " is not a number");
    }
    WEFT_RETURN_IF_ERROR(vocabulary.Add(piece.text));
  }
  auto tokenizer = std::unique_ptr<ScoredBpe>(new ScoredBpe(std::move(vocabulary)));
  const std::vector<int32_t> ranks = Ranks(pieces);
  for (int32_t id = 0; id < tokenizer->vocabulary_.size(); ++id) {
    if (tokenizer->kinds_[static_cast<size_t>(id)] != kOrdinary) continue;  // text never spells "<s>" or "<0x0A>"
    const absl::string_view text = tokenizer->vocabulary_.token(id);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::optional<int32_t> left = tokenizer->vocabulary_.Find(text.substr(0, cut)),
                                   right = tokenizer->vocabulary_.Find(text.substr(cut));
      if (!left.has_value() || !right.has_value()) continue;
      tokenizer->merges_.Add(*left, *right, {.rank = ranks[static_cast<size_t>(id)], .id = id});
    }
  }
  return tokenizer;
}

absl::StatusOr<std::vector<int32_t>> ScoredBpe::EncodeOrdinary(absl::string_view text) const {
  std::vector<int32_t> ids;
  if (text.empty()) return ids;
  WEFT_RETURN_IF_ERROR(AppendCharacter(" ", &ids));
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes == 0) return CheckUtf8(text);
    WEFT_RETURN_IF_ERROR(Annotate(AppendCharacter(text.substr(i, c.bytes), &ids), absl::StrCat("at byte ", i)));
    i += c.bytes;
  }
  merges_.Apply(&ids);
  return ids;
}

absl::Status ScoredBpe::AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const {
  const std::optional<int32_t> id = vocabulary_.Find(character);
  if (id.has_value()) {
    ids->push_back(*id);
    return absl::OkStatus();
  }
  const size_t before = ids->size();
  for (const char byte : character) ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  if (std::all_of(ids->begin() + static_cast<std::ptrdiff_t>(before), ids->end(), [](int32_t id) { return id >= 0; })) {
    return absl::OkStatus();
  }
  if (!special_tokens().unknown.has_value()) {
    return InvalidArgument("the vocabulary has neither ", Quoted(character), " nor its bytes nor an unknown token");
  }
  ids->resize(before);
  ids->push_back(*special_tokens().unknown);
  return absl::OkStatus();
}

std::string ScoredBpe::Join(absl::Span<const int32_t> ids) const {
  std::string text;
  bool begins = true;
  for (const int32_t id : ids) {
    const int16_t kind = kinds_[static_cast<size_t>(id)];
    absl::string_view piece = vocabulary_.token(id);
    if (kind >= 0) {
      text += static_cast<char>(kind);
    } else {
      if (begins && kind == kOrdinary) absl::ConsumePrefix(&piece, " ");
      absl::StrAppend(&text, piece);
    }
    begins = id == special_tokens().begin;
  }
  return text;
}

// Reads the contents of a tokenizer.bin: the length of the longest piece in bytes (i32), then for each piece its score
// (f32), its length in bytes (i32) and its text. Returns InvalidArgument, with the piece, if the file is truncated or
// malformed. It is not inlined, because GCC 12 then warns of bytes of `file` that it takes for uninitialized.
[[gnu::noinline]] absl::StatusOr<std::vector<ScoredPiece>> ReadPieces(absl::string_view file) {
  std::vector<ScoredPiece> pieces;
  absl::string_view rest = file;
  const auto read = [&rest](auto* value) {
    if (rest.size() < sizeof *value) return false;
    std::memcpy(value, rest.data(), sizeof *value);
    rest.remove_prefix(sizeof *value);
    return true;
  };
  int32_t longest = 0;
  if (!read(&longest)) return InvalidArgument("the file has only ", file.size(), " bytes");
  while (!rest.empty()) {
    const std::string context = absl::StrCat("piece ", pieces.size(), ", at byte ", file.size() - rest.size(), ": ");
    float score = 0;
    int32_t bytes = 0;
    if (!read(&score) || !read(&bytes)) return InvalidArgument(context, "the file ends there");
    if (bytes < 1 || bytes > longest) {
      return InvalidArgument(context, "it has ", bytes, " bytes, but the file says that a piece has 1 to ", longest);
    }
    if (rest.size() < static_cast<size_t>(bytes)) {
      return InvalidArgument(context, "the file ends within its ", bytes, " bytes");
    }
    absl::string_view text = rest.substr(0, static_cast<size_t>(bytes));
    for (const absl::string_view special : {"<s>", "</s>"}) {  // the file puts line breaks around these two
      if (text == absl::StrCat("\n", special, "\n")) text = special;
    }
    pieces.push_back({std::string(text), score});
    rest.remove_prefix(static_cast<size_t>(bytes));
  }
  if (pieces.empty()) return InvalidArgument("the file has no pieces");
  return pieces;
}

Loaded Create(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<ScoredPiece> pieces, ReadPieces(contents));
  return ScoredBpe::Create(pieces);
}

}  // namespace

constexpr TokenizerKind kLlama2cTokenizer = {
    .file = "tokenizer.bin",
    .extension = ".bin",
    .of_transformers = false,
    .load = FromOneFile<Create>,
};

}  // namespace weft
