// Gives the lines to SentencePiece's trainer from memory, without a file.
#include "weft/text/learn_sentencepiece.h"

#include <sentencepiece_trainer.h>

namespace weft {
namespace {

class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t next_ = 0;
};

}  // namespace

std::string LearnSentencePiece(const std::vector<std::string>& lines, const std::string& options) {
  LineIterator iterator(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train("--minloglevel=2 " + options, &iterator, &model);
  return status.ok() ? model : "";
}

}  // namespace weft
