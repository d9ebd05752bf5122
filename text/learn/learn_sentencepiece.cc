// Gives the lines to SentencePiece's trainer from memory, without a file.
#include "weft/text/learn/learn_sentencepiece.h"

#include <sentencepiece_trainer.h>

#include <cstddef>
#include <exception>
#include <unordered_map>

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

// Returns the trainer's message without the place in its source, which ends with the failed condition in brackets.
std::string WithoutPlace(const std::string& message) {
  const size_t end = message.rfind("] ");
  return end == std::string::npos || end + 2 == message.size() ? message : message.substr(end + 2);
}

}  // namespace

LearntSentencePiece LearnSentencePiece(const std::vector<std::string>& lines,
                                       const std::map<std::string, std::string>& options) {
  std::unordered_map<std::string, std::string> flags(options.begin(), options.end());
  flags.emplace("minloglevel", "2");  // errors only
  LineIterator iterator(lines);
  std::string model;
  try {
    const auto status = sentencepiece::SentencePieceTrainer::Train(flags, &iterator, &model);
    if (!status.ok()) return {"", WithoutPlace(status.error_message())};
  } catch (const std::exception& error) {
    return {"", error.what()};
  }
  return {model, ""};
}

}  // namespace weft
