// Each new token is decoded together with the token before it. Bytes wait for the rest of their character, and
// characters wait until they cannot be part of a stop string.
#include "weft/text/tokenizers/text_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD
// A character has at most 4 tokens, and U+FFFD itself may have 3. So after 12 tokens, no character is incomplete,
// unless the bytes are not UTF-8.
constexpr size_t kMaxWaiting = 12;
constexpr char kShown = '0', kHidden = '1';  // the values of TextStream::hidden_

// Returns the length of the longest suffix of `text` that is a prefix of `stop`.
size_t BeginningAtEnd(absl::string_view text, absl::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size()); n > 0; --n) {
    if (absl::EndsWith(text, stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, absl::Span<const int32_t> prompt, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  stops_.erase(std::remove(stops_.begin(), stops_.end(), ""), stops_.end());
  const auto shown = std::find_if(prompt.rbegin(), prompt.rend(), [&](int32_t id) { return !tokenizer.IsHidden(id); });
  if (shown != prompt.rend()) ids_.push_back(*shown);
  known_ = ids_.size();
}

absl::StatusOr<std::string> TextStream::Add(int32_t token) {
  if (stopped_) return std::string();
  const bool hidden = tokenizer_.IsHidden(token);
  if (!hidden) ids_.push_back(token);
  const absl::Span<const int32_t> ids(ids_);
  WEFT_ASSIGN_OR_RETURN(const std::string before, tokenizer_.DecodeUncleaned(ids.first(known_)));
  WEFT_ASSIGN_OR_RETURN(const std::string after, tokenizer_.DecodeUncleaned(ids));
  // Some tokenizers decode an incomplete character as U+FFFD. A hidden token can't complete it.
  const bool incomplete = absl::EndsWith(after, kReplacement) && ids_.size() - known_ < kMaxWaiting;
  if (incomplete && !hidden) return std::string();
  AddBytes(before, after);
  if (ids_.size() > known_) ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(known_));
  known_ = ids_.size();
  return hidden ? AddHidden(token) : Release(/*all=*/false);
}

// Appends the text by which `after` is longer than `before`.
void TextStream::AddBytes(absl::string_view before, absl::string_view after) {
  absl::ConsumePrefix(&after, before);
  if (!tokenizer_.cleans_up()) {
    absl::StrAppend(&bytes_, after);
    return;
  }
  absl::StrAppend(&uncleaned_, after);
  // CleanUpSpaces changes both parts on their own if they meet at a space that begins or ends no text that it replaces.
  const absl::string_view text = uncleaned_;
  for (size_t cut = text.rfind(' '); cut != text.npos && cut > 0; cut = text.rfind(' ', cut - 1)) {
    if (cut + 1 == text.size() || absl::StrContains(".?!,'n", text[cut + 1]) || text[cut - 1] == '\'') continue;
    bytes_ += CleanUpSpaces(uncleaned_.substr(0, cut));
    uncleaned_.erase(0, cut);
    break;
  }
}

// Adds a token that is not shown, but whose text a stop string may have.
absl::StatusOr<std::string> TextStream::AddHidden(int32_t token) {
  bytes_ += CleanUpSpaces(std::exchange(uncleaned_, ""));
  const std::string before = Release(/*all=*/false);
  if (stopped_) return before;
  Append(ReplaceInvalidUtf8(std::exchange(bytes_, "")), kShown);
  Append(tokenizer_.TokenText(token), kHidden);
  return before + Release(/*all=*/false);
}

void TextStream::Append(absl::string_view text, char hidden) {
  text_.append(text.data(), text.size());
  hidden_.append(text.size(), hidden);
}

std::string TextStream::Release(bool all) {
  const std::string bytes = std::exchange(bytes_, "");
  Append(ReplaceInvalidUtf8(bytes, all ? nullptr : &bytes_), kShown);
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, text_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    text_.resize(end);
    bytes_.clear();
    all = true;
  }
  size_t withheld = 0;
  for (const std::string& stop : stops_) withheld = std::max(withheld, all ? 0 : BeginningAtEnd(text_, stop));
  const size_t ready = text_.size() - withheld;
  std::string released = Shown(ready);
  text_.erase(0, ready);
  hidden_.erase(0, ready);
  return released;
}

size_t TextStream::withheld() const { return CountCharacters(uncleaned_) + CountCharacters(Shown(text_.size())); }

std::string TextStream::Shown(size_t length) const {
  std::string shown;
  for (size_t i = 0; i < length; ++i) {
    if (hidden_[i] == kShown) shown += text_[i];
  }
  return shown;
}

std::string TextStream::Finish() {
  if (stopped_) return "";
  if (known_ < ids_.size()) {
    const absl::Span<const int32_t> ids(ids_);
    AddBytes(*tokenizer_.DecodeUncleaned(ids.first(known_)), *tokenizer_.DecodeUncleaned(ids));
  }
  bytes_ += CleanUpSpaces(std::exchange(uncleaned_, ""));
  return Release(/*all=*/true);
}

}  // namespace weft
