// This file has the code that all tokenizers share: added tokens, special tokens and their roles, input formats, and
// checks of ids. A text is scanned once for added tokens. The first byte at a position selects the few tokens that are
// compared there.
#include "weft/text/tokenizers/tokenizer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr struct {
  absl::string_view text;
  TokenRole role;
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

bool IsSingleWord(absl::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !IsWordCharacter(CharacterAt(text, CharacterBegin(text, begin - 1)).code_point)) &&
         (end == text.size() || !IsWordCharacter(CharacterAt(text, end).code_point));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].text.empty()) continue;
    by_first_byte_[static_cast<uint8_t>(tokens_[i].text[0])].push_back(i);
    longest_ = std::max(longest_, tokens_[i].text.size());
    all_special_ = all_special_ && tokens_[i].special;
  }
}

const AddedToken* AddedTokenFinder::FindAt(absl::string_view text, size_t at) const {
  for (const uint32_t i : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (absl::StartsWith(text.substr(at), tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::Split(absl::string_view text, bool special) const {
  std::vector<Piece> pieces;
  size_t done = 0;
  for (size_t at = all_special_ && !special ? text.size() : 0; at < text.size();) {
    const AddedToken* const token = FindAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->text.size();
    at = end;
    if ((token->special && !special) || (token->single_word && !IsSingleWord(text, begin, end))) continue;
    if (token->strip_before) begin = std::max(done, BeforeSpace(text, begin));
    if (token->strip_after) end = BehindSpace(text, end);
    if (done < begin) pieces.push_back({text.substr(done, begin - done), nullptr});
    pieces.push_back({token->text, token});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), nullptr});
  return pieces;
}

bool AddedTokenFinder::Touches(absl::string_view text, size_t at) const {
  const size_t begin = BeforeSpace(text, at), end = BehindSpace(text, at);
  for (size_t i = begin - std::min(begin, longest_); i <= end && i < text.size(); ++i) {
    const AddedToken* const token = FindAt(text, i);
    if (token != nullptr && i + token->text.size() >= begin) return true;
  }
  return false;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text, bool special) const {
  if (!added_.empty()) WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::vector<int32_t> ids;
  std::string storage;
  for (const auto& [written, token] : written_.Split(text, special)) {
    if (token != nullptr) {
      ids.push_back(token->id);
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const absl::string_view normal, NormalForm(written, &storage));
    for (const auto& [piece, token] : normalized_.Split(normal, special)) {
      if (token != nullptr) {
        ids.push_back(token->id);
        continue;
      }
      const bool begins = written.data() == text.data() && piece.data() == normal.data();
      WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ordinary, EncodeOrdinary(piece, begins));
      ids.insert(ids.end(), ordinary.begin(), ordinary.end());
    }
  }
  return ids;
}

absl::StatusOr<absl::string_view> Tokenizer::NormalForm(absl::string_view text, std::string* storage) const {
  if (lowercases_) {
    WEFT_RETURN_IF_ERROR(CheckUtf8(text));
    std::string lower;
    ForEachCharacter(text, [&](int32_t c, absl::string_view) { AppendLowercase(c, &lower); });
    text = *storage = std::move(lower);
  }
  return Normalize(text, storage);
}

void Tokenizer::Lowercase() {
  lowercases_ = true;
  SetAdded(added_, /*keep_roles=*/true);
}

ModelInput Tokenizer::Wrap(absl::Span<const int32_t> ids) const { return Fill(single_, ids, {}); }

absl::StatusOr<ModelInput> Tokenizer::WrapPair(absl::Span<const int32_t> first,
                                               absl::Span<const int32_t> second) const {
  if (pair_.empty()) return InvalidArgument("the tokenizer's format has no pairs of texts");
  return Fill(pair_, first, second);
}

absl::StatusOr<std::string> Tokenizer::DecodeUncleaned(absl::Span<const int32_t> ids) const {
  WEFT_RETURN_IF_ERROR(CheckIds(ids));
  if (special_list_.empty()) return Join(ids);
  std::vector<int32_t> shown;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(shown), [this](int32_t id) { return !IsHidden(id); });
  return Join(shown);
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  absl::StatusOr<std::string> text = DecodeUncleaned(ids);
  return text.ok() && clean_up_ ? CleanUpSpaces(*std::move(text)) : text;
}

absl::StatusOr<std::string> Tokenizer::DecodeWithSpecial(absl::Span<const int32_t> ids) const {
  WEFT_RETURN_IF_ERROR(CheckIds(ids));
  return clean_up_ ? CleanUpSpaces(Join(ids)) : Join(ids);
}

std::string Tokenizer::TokenText(int32_t id) const {
  const std::string text = DecodeWithSpecial({id}).value_or("");
  if (!absl::StrContains(text, "\uFFFD")) return text;
  const int byte = ByteOf(Piece(id));
  return byte >= 0 ? std::string(1, static_cast<char>(byte)) : FromByteAlphabet(Piece(id)).value_or(text);
}

void Tokenizer::SetAdded(std::vector<AddedToken> tokens, bool keep_roles) {
  added_ = std::move(tokens);
  std::sort(added_.begin(), added_.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  std::vector<AddedToken> written, normalized;
  special_list_.clear();
  for (AddedToken token : added_) {
    if (token.special) special_list_.push_back(token);
    if (token.normalized) {
      std::string storage;
      token.text = std::string(NormalForm(token.text, &storage).value_or(token.text));
    }
    (token.normalized ? normalized : written).push_back(std::move(token));
  }
  written_ = AddedTokenFinder(std::move(written));
  normalized_ = AddedTokenFinder(std::move(normalized));
  if (keep_roles) return;
  special_ = {};
  for (const auto& [name, role] : kUsualNames) {
    for (const AddedToken& token : special_list_) {
      if (token.text == name && !(special_.*role).has_value()) special_.*role = token.id;
    }
  }
}

void Tokenizer::Configure(const TokenizerSettings& settings) {
  clean_up_ = may_clean_up_ && settings.clean_up;
  reads_special_ = !settings.split_special;
  absl::flat_hash_map<std::string, int32_t> ids;  // of the vocabulary; empty until it is needed
  const auto find = [&](const std::string& text) -> std::optional<int32_t> {
    const auto known =
        std::find_if(added_.begin(), added_.end(), [&](const auto& token) { return token.text == text; });
    if (known != added_.end()) return known->id;
    for (int32_t id = ids.empty() ? 0 : vocabulary_size(); id < vocabulary_size(); ++id) ids.emplace(Join({id}), id);
    const auto found = ids.find(text);
    return found == ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
  };
  std::vector<AddedToken> added = added_;
  const auto add = [&](AddedToken token, bool replace) {
    const std::optional<int32_t> id = find(token.text);
    if (!id.has_value()) return;
    const auto is_same = [&](const AddedToken& old) { return old.id == *id; };
    if (replace) std::erase_if(added, is_same);
    token.id = *id;
    if (std::none_of(added.begin(), added.end(), is_same)) added.push_back(std::move(token));
  };
  for (const AddedToken& token : settings.tokens) add(token, /*replace=*/true);
  for (const AddedToken& token : settings.special) add(token, /*replace=*/false);
  SetAdded(std::move(added), /*keep_roles=*/true);
  for (const auto& [role, text] : settings.roles) {
    special_.*role = text.has_value() ? find(*text) : std::nullopt;
  }
  // A kind with a format for pairs, such as BERT's or RoBERTa's, does not have these settings.
  if ((!settings.add_begin && !settings.add_end) || !pair_.empty()) return;
  const bool begins = settings.add_begin.value_or(single_.front().kind == WrapItem::kToken);
  const bool ends = settings.add_end.value_or(single_.back().kind == WrapItem::kToken);
  const std::optional<int32_t> begin = begins ? special_.begin : std::nullopt, end = ends ? special_.end : std::nullopt;
  const WrapFormat single = Surrounded(begin, {WrapItem::kFirst}, end);
  SetFormat(single, Joined(single, Surrounded(begin, {WrapItem::kSecond, 0, 1}, end)));
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
                                      [](const AddedToken& token, int32_t id) { return token.id < id; });
  return found != special_list_.end() && found->id == id;
}

std::vector<AddedToken> UsualSpecialTokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> special;
  for (const auto& [name, role] : kUsualNames) {
    const std::optional<int32_t> id = vocabulary.Find(name);
    const bool listed = std::any_of(special.begin(), special.end(), [&](const auto& token) { return token.id == id; });
    if (id.has_value() && !listed) special.push_back({std::string(name), *id});
  }
  return special;
}

std::string CleanUpSpaces(std::string text) {
  constexpr std::pair<absl::string_view, absl::string_view> kInOrder[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& each : kInOrder) absl::StrReplaceAll({each}, &text);
  return text;
}

std::vector<int32_t> TokenBytes(const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocabulary_size();
  // Tokens are decoded behind another token, because decoding drops the space at the beginning of a text.
  const auto decode = [&](std::vector<int32_t> ids) { return tokenizer.Decode(ids).value_or(""); };
  int32_t first = 0;  // an ordinary token: one that ends with a letter
  for (int32_t id = 0; id < size; ++id) {
    const std::string text = decode({id});
    if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text.back()))) continue;
    if (id == tokenizer.special_tokens().unknown) continue;
    first = id;
    break;
  }
  const auto before = static_cast<int64_t>(decode({first}).size());
  std::vector<int32_t> bytes(static_cast<size_t>(size));
  for (int32_t id = 0; id < size; ++id) {
    const auto both = static_cast<int64_t>(decode({first, id}).size());
    bytes[static_cast<size_t>(id)] = static_cast<int32_t>(std::max<int64_t>(both - before, 0));
  }
  const SpecialTokens& special = tokenizer.special_tokens();
  // Byte-level BPE knows all bytes, and often names its end token as the unknown one, too.
  if (const auto unknown = special.unknown; unknown && *unknown >= 0 && *unknown < size && unknown != special.end) {
    bytes[static_cast<size_t>(*unknown)] = kUnknownBytes;
  }
  return bytes;
}

WrapFormat Surrounded(std::optional<int32_t> before, const WrapItem& text, std::optional<int32_t> after) {
  WrapFormat format;
  if (before) format.push_back({WrapItem::kToken, *before, text.segment});
  format.push_back(text);
  if (after) format.push_back({WrapItem::kToken, *after, text.segment});
  return format;
}

WrapFormat Joined(WrapFormat first, const WrapFormat& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

WrapFormat BertSingle(int32_t classification, int32_t separator) {
  return Surrounded(classification, {WrapItem::kFirst}, separator);
}

WrapFormat BertPair(int32_t classification, int32_t separator) {
  return Joined(BertSingle(classification, separator), Surrounded({}, {WrapItem::kSecond, 0, 1}, separator));
}

WrapFormat RobertaPair(int32_t begin, int32_t end) {
  return Joined(BertSingle(begin, end), Surrounded(end, {WrapItem::kSecond}, end));
}

}  // namespace weft
