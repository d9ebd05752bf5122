// seqeval's default mode accepts any sequence of tags. Where an entity begins or ends follows from each pair of
// neighbouring tags.
#include "weft/inference/tagging_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/status.h"

namespace weft {
namespace {

bool IsOneOf(char letter, absl::string_view letters) { return letters.find(letter) != absl::string_view::npos; }

// A tag is split into the letter of its position, and the type of its entity.
struct Tag {
  char letter = 'O';
  absl::string_view type = "";

  bool is_within() const { return !IsOneOf(letter, "O."); }
};

Tag Split(absl::string_view text) {
  if (text.empty()) return {.type = "_"};
  Tag tag = {.letter = text[0], .type = text.substr(1)};
  const size_t hyphen = tag.type.find('-');
  if (hyphen != absl::string_view::npos) tag.type.remove_prefix(hyphen + 1);
  if (tag.type.empty()) tag.type = "_";
  return tag;
}

bool EndsBetween(const Tag& tag, const Tag& next) {
  if (IsOneOf(tag.letter, "ES")) return true;
  if (IsOneOf(tag.letter, "BI") && IsOneOf(next.letter, "BSO")) return true;
  return tag.is_within() && tag.type != next.type;
}

bool BeginsBetween(const Tag& tag, const Tag& next) {
  if (IsOneOf(next.letter, "BS")) return true;
  if (IsOneOf(tag.letter, "ESO") && IsOneOf(next.letter, "EI")) return true;
  return next.is_within() && tag.type != next.type;
}

std::string Line(absl::string_view name, size_t width, const EntityFigures& figures) {
  return absl::StrFormat("%*s  %9.4f %9.4f %9.4f %9d\n", static_cast<int>(width), name, figures.precision,
                         figures.recall, figures.f1, figures.support);
}

}  // namespace

std::vector<Entity> EntitiesOf(absl::Span<const std::string> tags) {
  std::vector<Entity> entities;
  Tag last;
  size_t first = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = i < tags.size() ? Split(tags[i]) : Tag{.type = "_"};
    if (i > 0 && EndsBetween(last, tag)) entities.push_back({std::string(last.type), first, i - 1});
    if (BeginsBetween(last, tag)) first = i;
    last = tag;
  }
  return entities;
}

void TaggingScore::Add(absl::Span<const std::string> right, absl::Span<const std::string> predicted) {
  WEFT_CHECK(right.size() == predicted.size());
  for (size_t i = 0; i < right.size(); ++i) equal_ += right[i] == predicted[i] ? 1 : 0;
  words_ += static_cast<int64_t>(right.size());
  const std::vector<Entity> entities = EntitiesOf(right), found = EntitiesOf(predicted);
  for (const Entity& entity : entities) ++counts_[entity.type].right;
  for (const Entity& entity : found) {
    Counts& counts = counts_[entity.type];
    ++counts.predicted;
    counts.both += std::count(entities.begin(), entities.end(), entity);
  }
}

EntityFigures TaggingScore::FiguresOf(const Counts& counts) {
  const auto fraction = [](auto a, auto b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); };
  EntityFigures figures = {.precision = fraction(counts.both, counts.predicted),
                           .recall = fraction(counts.both, counts.right),
                           .support = counts.right};
  figures.f1 = fraction(2 * figures.precision * figures.recall, figures.precision + figures.recall);
  return figures;
}

EntityFigures TaggingScore::All() const {
  Counts all;
  for (const auto& [type, counts] : counts_) {
    all.right += counts.right;
    all.predicted += counts.predicted;
    all.both += counts.both;
  }
  return FiguresOf(all);
}

namespace {

// Returns the mean of the figures with the weights that `weight_of` returns.
template <class WeightOf>
EntityFigures MeanOf(const std::map<std::string, EntityFigures>& types, WeightOf weight_of) {
  EntityFigures mean;
  double sum = 0;
  for (const auto& [type, figures] : types) {
    const double weight = weight_of(figures);
    mean.precision += weight * figures.precision;
    mean.recall += weight * figures.recall;
    mean.f1 += weight * figures.f1;
    mean.support += figures.support;
    sum += weight;
  }
  for (double* figure : {&mean.precision, &mean.recall, &mean.f1}) *figure = sum == 0 ? 0 : *figure / sum;
  return mean;
}

}  // namespace

EntityFigures TaggingScore::Macro() const {
  return MeanOf(ByType(), [](const EntityFigures&) { return 1.0; });
}

EntityFigures TaggingScore::Weighted() const {
  return MeanOf(ByType(), [](const EntityFigures& figures) { return static_cast<double>(figures.support); });
}

std::map<std::string, EntityFigures> TaggingScore::ByType() const {
  std::map<std::string, EntityFigures> figures;
  for (const auto& [type, counts] : counts_) figures[type] = FiguresOf(counts);
  return figures;
}

double TaggingScore::accuracy() const {
  return words_ == 0 ? 0 : static_cast<double>(equal_) / static_cast<double>(words_);
}

std::string TaggingScore::Report() const {
  constexpr absl::string_view kWidest = "weighted avg";
  const std::map<std::string, EntityFigures> types = ByType();
  size_t width = kWidest.size();
  for (const auto& [type, figures] : types) width = std::max(width, type.size());
  std::string report = absl::StrFormat("%*s  %9s %9s %9s %9s\n\n", static_cast<int>(width), "", "precision", "recall",
                                       "f1-score", "support");
  for (const auto& [type, figures] : types) report += Line(type, width, figures);
  absl::StrAppend(&report, "\n", Line("micro avg", width, All()), Line("macro avg", width, Macro()),
                  Line(kWidest, width, Weighted()));
  return report;
}

}  // namespace weft
