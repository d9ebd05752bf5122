// This file has the code that all tokenizers share: special tokens and their roles, input formats, and checks of ids.
#include "weft/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "weft/core/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Role = std::optional<int32_t> SpecialTokens::*;

constexpr struct {
  absl::string_view text;
  Role role;
} kUsualNames[] = {
    {"<s>", &SpecialTokens::begin},
    {"<bos>", &SpecialTokens::begin},
    {"<|startoftext|>", &SpecialTokens::begin},
    {"<|endoftext|>", &SpecialTokens::begin},  // GPT-2 separates texts with it
    {"</s>", &SpecialTokens::end},
    {"<eos>", &SpecialTokens::end},
    {"<|endoftext|>", &SpecialTokens::end},
    {"<pad>", &SpecialTokens::padding},
    {"[PAD]", &SpecialTokens::padding},
    {"<unk>", &SpecialTokens::unknown},
    {"[UNK]", &SpecialTokens::unknown},
    {"<mask>", &SpecialTokens::mask},
    {"[MASK]", &SpecialTokens::mask},
    {"[CLS]", &SpecialTokens::classification},
    {"[SEP]", &SpecialTokens::separator},
};

ModelInput Fill(const WrapFormat& format, absl::Span<const int32_t> first, absl::Span<const int32_t> second) {
  ModelInput input;
  for (const WrapItem& item : format) {
    const absl::Span<const int32_t> ids = item.kind == WrapItem::kToken   ? absl::MakeConstSpan(&item.id, 1)
                                          : item.kind == WrapItem::kFirst ? first
                                                                          : second;
    input.ids.insert(input.ids.end(), ids.begin(), ids.end());
    input.segments.resize(input.ids.size(), item.segment);
  }
  return input;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeWithSpecial(absl::string_view text) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));  // not left to Encode, which counts bytes from a part's beginning
  std::vector<int32_t> ids;
  std::vector<size_t> positions(special_list_.size(), 0);  // the next occurrence of each special token
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    size_t at = text.size();
    const SpecialToken* next = nullptr;
    for (size_t i = 0; i < positions.size(); ++i) {
      const SpecialToken& token = special_list_[i];
      if (begin == 0 || positions[i] < begin) positions[i] = std::min(text.find(token.text, begin), text.size());
      if (positions[i] == text.size() || positions[i] > at) continue;
      if (positions[i] == at && next != nullptr && token.text.size() <= next->text.size()) continue;
      at = positions[i];
      next = &token;
    }
    absl::string_view before = text.substr(begin, at - begin);
    if (next != nullptr && next->strip_before) before = absl::StripTrailingAsciiWhitespace(before);
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ordinary, Encode(before));
    ids.insert(ids.end(), ordinary.begin(), ordinary.end());
    end = at;
    if (next == nullptr) continue;
    ids.push_back(next->id);
    end += next->text.size();
    if (next->strip_after) end = text.size() - absl::StripLeadingAsciiWhitespace(text.substr(end)).size();
  }
  return ids;
}

ModelInput Tokenizer::Wrap(absl::Span<const int32_t> ids) const { return Fill(single_, ids, {}); }

absl::StatusOr<ModelInput> Tokenizer::WrapPair(absl::Span<const int32_t> first,
                                               absl::Span<const int32_t> second) const {
  if (pair_.empty()) return InvalidArgument("the tokenizer's format has no pairs of texts");
  return Fill(pair_, first, second);
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  WEFT_RETURN_IF_ERROR(CheckIds(ids));
  if (special_list_.empty()) return Join(ids);
  std::vector<int32_t> ordinary;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(ordinary),
               [this](int32_t id) { return id == special_.unknown || !IsSpecial(id); });
  return Join(ordinary);
}

absl::StatusOr<std::string> Tokenizer::DecodeWithSpecial(absl::Span<const int32_t> ids) const {
  WEFT_RETURN_IF_ERROR(CheckIds(ids));
  return Join(ids);
}

void Tokenizer::SetSpecial(std::vector<SpecialToken> tokens) {
  special_list_ = std::move(tokens);
  std::sort(special_list_.begin(), special_list_.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  special_ = {};
  for (const auto& [name, role] : kUsualNames) {
    for (const SpecialToken& token : special_list_) {
      if (token.text == name && !(special_.*role).has_value()) special_.*role = token.id;
    }
  }
}

void Tokenizer::SetFormat(WrapFormat single, WrapFormat pair) {
  single_ = std::move(single);
  pair_ = std::move(pair);
}

absl::Status Tokenizer::CheckIds(absl::Span<const int32_t> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary_size()) continue;
    return InvalidArgument("id ", ids[i], ", at position ", i, ", is not in 0 .. ", vocabulary_size() - 1);
  }
  return absl::OkStatus();
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const auto found = std::lower_bound(special_list_.begin(), special_list_.end(), id,
                                      [](const SpecialToken& token, int32_t id) { return token.id < id; });
  return found != special_list_.end() && found->id == id;
}

std::vector<SpecialToken> UsualSpecialTokens(const Vocabulary& vocabulary) {
  std::vector<SpecialToken> special;
  for (const auto& [name, role] : kUsualNames) {
    const std::optional<int32_t> id = vocabulary.Find(name);
    const bool listed = std::any_of(special.begin(), special.end(), [&](const auto& token) { return token.id == id; });
    if (id.has_value() && !listed) special.push_back({std::string(name), *id});
  }
  return special;
}

WrapFormat BertSingle(int32_t classification, int32_t separator) {
  return {{WrapItem::kToken, classification}, {WrapItem::kFirst}, {WrapItem::kToken, separator}};
}

WrapFormat BertPair(int32_t classification, int32_t separator) {
  return {{WrapItem::kToken, classification},
          {WrapItem::kFirst},
          {WrapItem::kToken, separator},
          {WrapItem::kSecond, 0, 1},
          {WrapItem::kToken, separator, 1}};
}

WrapFormat RobertaPair(int32_t begin, int32_t end) {
  return {{WrapItem::kToken, begin}, {WrapItem::kFirst},  {WrapItem::kToken, end},
          {WrapItem::kToken, end},   {WrapItem::kSecond}, {WrapItem::kToken, end}};
}

WrapFormat BeginText(int32_t begin) { return {{WrapItem::kToken, begin}, {WrapItem::kFirst}}; }

}  // namespace weft
