// The best split of a word is found from left to right (Viterbi): each byte has the best path that ends there.
#include "weft/text/tokenizers/unigram.h"

#include <algorithm>
#include <utility>

#include "weft/base/status.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr double kUnknownPenalty = 10;  // SentencePiece's: an unknown character scores so much less than any piece

uint64_t Key(int32_t node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte); }

}  // namespace

Unigram::Unigram(UnigramModel model)
    : PipelineTokenizer(model.pipeline), model_(std::move(model)), byte_tokens_(ByteTokens(model_.vocabulary)) {
  unknown_score_ = *std::min_element(model_.scores.begin(), model_.scores.end()) - kUnknownPenalty;
  pieces_ = {-1};
  for (int32_t id = 0; id < static_cast<int32_t>(model_.scores.size()); ++id) {
    int32_t node = 0;
    for (const char byte : model_.vocabulary.token(id)) {
      const auto [child, added] = children_.emplace(Key(node, byte), static_cast<int32_t>(pieces_.size()));
      if (added) pieces_.push_back(-1);
      node = child->second;
    }
    if (node > 0) pieces_[static_cast<size_t>(node)] = id;
  }
  SetFormats(model_.special, model_.single, model_.pair);
  AllowCleanUp();
}

absl::StatusOr<std::unique_ptr<Unigram>> Unigram::Create(UnigramModel model) {
  const auto scores = static_cast<int64_t>(model.scores.size());
  if (scores == 0 || scores > model.vocabulary.size()) {
    return InvalidArgument("there are ", scores, " scores of ", model.vocabulary.size(), " tokens");
  }
  if (model.unknown.has_value() && (*model.unknown < 0 || *model.unknown >= scores)) {
    return InvalidArgument("unk_id: ", *model.unknown, " is not in 0 .. ", scores - 1);
  }
  return std::unique_ptr<Unigram>(new Unigram(std::move(model)));
}

absl::Status Unigram::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  struct Path {
    double score = 0;
    int32_t id = -1;   // of the last piece; -1 if no path ends here
    size_t begin = 0;  // of the last piece
  };
  std::vector<Path> paths(word.size() + 1);
  const int32_t unknown = model_.unknown.value_or(-1);
  for (size_t begin = 0, next; begin < word.size(); begin = next) {
    next = begin + CharacterAt(word, begin).bytes;
    const auto extend = [&](size_t end, int32_t id, double score) {
      score += paths[begin].score;
      if (paths[end].id < 0 || score > paths[end].score) paths[end] = {score, id, begin};
    };
    bool known = false;  // whether the character itself is a piece
    int32_t node = 0;
    for (size_t end = begin; end < word.size();) {
      const auto child = children_.find(Key(node, word[end++]));
      if (child == children_.end()) break;
      node = child->second;
      const int32_t id = pieces_[static_cast<size_t>(node)];
      if (id < 0) continue;
      extend(end, id, model_.scores[static_cast<size_t>(id)]);
      known = known || end == next;
    }
    if (known) continue;
    if (unknown < 0) {
      return InvalidArgument("no token has ", Quoted(word.substr(begin, next - begin)),
                             ", and none is for the unknown");
    }
    extend(next, unknown, unknown_score_);
  }
  std::vector<std::pair<size_t, int32_t>> pieces;  // the beginnings and ids, the last piece first
  for (size_t end = word.size(); end > 0; end = paths[end].begin) {
    const Path& path = paths[end];
    const bool joins = path.id == unknown && !pieces.empty() && pieces.back().second == unknown;
    if (joins) pieces.pop_back();
    pieces.emplace_back(path.begin, path.id);
  }
  for (size_t i = pieces.size(); i-- > 0;) {
    const auto [begin, id] = pieces[i];
    const size_t end = i > 0 ? pieces[i - 1].first : word.size();
    const absl::string_view text = word.substr(begin, end - begin);
    if (id != unknown) {
      ids->push_back(id);
    } else if (const std::optional<int32_t> known = model_.vocabulary.Find(text)) {
      ids->push_back(*known);
    } else if (!model_.byte_fallback || !AppendBytes(byte_tokens_, text, ids)) {
      ids->push_back(unknown);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
