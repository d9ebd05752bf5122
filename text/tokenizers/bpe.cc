// A short word is scanned again after each merge. For a long word, a heap holds the possible merges, except with
// dropout.
#include "weft/text/tokenizers/bpe.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

// Up to this number of tokens, to scan a word again after each merge is faster than a heap.
constexpr size_t kMaxScannedLength = 16;

struct Candidate {  // a merge of the token at `position` and the token after it
  int32_t rank, position, left, right, id;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

absl::StatusOr<MergeTable> MergesOf(const BpeModel& model) {
  MergeTable table;
  int32_t rank = 0;
  for (const auto& [left, right] : model.merges) {
    const auto error = [&, &left = left, &right = right](const std::string& problem) {
      return InvalidArgument("merge ", rank, ", ", Quoted(left), " ", Quoted(right), ": ", problem);
    };
    int32_t ids[3];
    int count = 0;
    for (const std::string& token : {left, right, left + right.substr(std::min(model.prefix.size(), right.size()))}) {
      const std::optional<int32_t> id = model.vocabulary.Find(token);
      if (!id.has_value()) return error(Quoted(token) + " is not in the vocabulary");
      ids[count++] = *id;
    }
    if (!table.Add(ids[0], ids[1], {.rank = rank, .id = ids[2]})) return error("it occurs twice");
    ++rank;
  }
  return table;
}

MergeTable MergesByScore(const BpeModel& model) {
  std::vector<float> sorted = model.scores;
  absl::c_sort(sorted, std::greater<>());
  MergeTable table;
  for (int32_t id = 0; id < static_cast<int32_t>(model.scores.size()); ++id) {
    const absl::string_view text = model.vocabulary.token(id);
    // Text never spells "<s>" or "<0x0A>".
    if (ByteOf(text) >= 0 || absl::c_any_of(model.special, [id](const auto& token) { return token.id == id; }))
      continue;
    const auto rank = absl::c_lower_bound(sorted, model.scores[static_cast<size_t>(id)], std::greater<>());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::optional<int32_t> left = model.vocabulary.Find(text.substr(0, cut)),
                                   right = model.vocabulary.Find(text.substr(cut));
      if (left.has_value() && right.has_value()) {
        table.Add(*left, *right, {.rank = static_cast<int32_t>(rank - sorted.begin()), .id = id});
      }
    }
  }
  return table;
}

}  // namespace

void MergeTable::Apply(std::vector<int32_t>* ids) const {
  if (ids->size() > kMaxScannedLength) return ApplyToLong(ids);
  ApplyIf(ids, [] { return true; });
}

// Keeps the ids in a linked list and the possible merges in a heap. If one of the two ids of a merge has changed since
// the merge was pushed, the merge is skipped.
void MergeTable::ApplyToLong(std::vector<int32_t>* ids) const {
  constexpr int32_t kNone = -1;
  const int32_t size = static_cast<int32_t>(ids->size());
  std::vector<int32_t> next(ids->size()), previous(ids->size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](int32_t position) {
    if (position == kNone || next[position] == kNone) return;
    const int32_t left = (*ids)[position], right = (*ids)[next[position]];
    if (const Merge* merge = Find(left, right)) heap.push({merge->rank, position, left, right, merge->id});
  };
  for (int32_t i = 0; i < size; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1 < size ? i + 1 : kNone;
  }
  for (int32_t i = 0; i < size; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    const int32_t right = next[best.position];
    if (right == kNone || (*ids)[best.position] != best.left || (*ids)[right] != best.right) continue;
    (*ids)[best.position] = best.id;
    (*ids)[right] = kNone;
    next[best.position] = next[right];
    if (next[right] != kNone) previous[next[right]] = best.position;
    consider(previous[best.position]);
    consider(best.position);
  }
  std::erase(*ids, kNone);
}

std::array<int32_t, 256> ByteTokens(const Vocabulary& vocabulary) {
  std::array<int32_t, 256> tokens;
  for (size_t byte = 0; byte < tokens.size(); ++byte) {
    tokens[byte] = vocabulary.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  return tokens;
}

bool AppendBytes(const std::array<int32_t, 256>& tokens, absl::string_view text, std::vector<int32_t>* ids) {
  const size_t before = ids->size();
  for (const char byte : text) {
    ids->push_back(tokens[static_cast<uint8_t>(byte)]);
    if (ids->back() >= 0) continue;
    ids->resize(before);
    return false;
  }
  return true;
}

Bpe::Bpe(BpeModel model) : PipelineTokenizer(model.pipeline), model_(std::move(model)) {
  if (model_.keeps_unknown) KeepUnknown();
  if (model_.characters) {
    byte_ids_ = ByteTokens(model_.vocabulary);
    SetFormats(model_.special, model_.single, model_.pair);
    return;
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = model_.vocabulary.Find(std::string(1, static_cast<char>(byte))).value_or(-1);
  }
  pipeline_.pre_tokenizers.emplace_back();
  SetPrefixSpace(model_.prefix_space);
  if (!pipeline_.decoders.has_value()) pipeline_.decoders.emplace();
  SetFormats(model_.special, model_.single, model_.pair);
  for (const AddedToken& token : model_.special) {
    absl::StatusOr<std::string> bytes = FromByteAlphabet(Spelling(token.id, model_.vocabulary));
    if (bytes.ok()) Respell(token.id, *std::move(bytes));  // as the decoder of `tokenizers` does
  }
}

bool Bpe::SetPrefixSpace(bool space) {
  if (model_.characters) return true;
  pipeline_.pre_tokenizers.back() =
      SplitByteLevel({.prefix_space = space, .gpt2_words = model_.gpt2_words, .alphabet = false});
  return true;
}

std::unique_ptr<Tokenizer> Bpe::WithDropout(double probability, const RandomStream& random) const {
  auto tokenizer = std::unique_ptr<Bpe>(new Bpe(*this));
  tokenizer->reuses_words_ = false;
  tokenizer->dropout_ = probability;
  tokenizer->random_ = random;
  return tokenizer;
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Create(BpeModel model) {
  auto tokenizer = std::unique_ptr<Bpe>(new Bpe(std::move(model)));
  const BpeModel& own = tokenizer->model_;
  WEFT_ASSIGN_OR_RETURN(tokenizer->merges_, own.scores.empty() ? MergesOf(own) : MergesByScore(own));
  return tokenizer;
}

absl::Status Bpe::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  if (model_.whole_words && dropout_ == 0) {
    if (const std::optional<int32_t> id = model_.vocabulary.Find(word)) {
      ids->push_back(*id);
      return absl::OkStatus();
    }
  }
  std::vector<int32_t> pieces;
  bool pending = false;  // As in `tokenizers`, the unknown token is added before the next known character.
  const auto flush = [&] {
    if (pending) pieces.push_back(*model_.unknown);
    pending = false;
  };
  for (size_t i = 0, end; i < word.size(); i = end) {
    end = i + (model_.characters ? CharacterAt(word, i).bytes : 1);
    std::string character;
    int32_t id = byte_ids_[static_cast<uint8_t>(word[i])];
    if (model_.characters) {
      absl::StrAppend(&character, i > 0 ? model_.prefix : "", word.substr(i, end - i),
                      end == word.size() ? model_.suffix : "");
      id = model_.vocabulary.Find(character).value_or(-1);
    }
    if (id >= 0) {
      flush();
      pieces.push_back(id);
    } else if (!model_.byte_fallback || !AppendBytes(byte_ids_, character, &pieces)) {
      if (!model_.unknown.has_value()) {
        return model_.characters
                   ? InvalidArgument("the vocabulary has neither ", Quoted(character),
                                     " nor its bytes nor an unknown token")
                   : InvalidArgument(absl::StrFormat("the word %s has the byte 0x%02X, which is not in the vocabulary",
                                                     Quoted(word), static_cast<uint8_t>(word[i])));
      }
      if (!model_.fuse_unknown) flush();
      pending = true;
    }
  }
  flush();
  if (dropout_ > 0) {
    merges_.ApplyIf(&pieces, [this] { return static_cast<double>(random_.Uniform(drawn_++)) >= dropout_; });
  } else {
    merges_.Apply(&pieces);
  }
  ids->insert(ids->end(), pieces.begin(), pieces.end());
  return absl::OkStatus();
}

}  // namespace weft
