// All figures of classes follow from the confusion matrix: a row's sum is a class's support, a column's sum its
// predictions. seqeval's default mode accepts any sequence of tags: where an entity begins or ends follows from each
// pair of neighbouring tags.
#include "weft/inference/measure/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kMaxColumns = 80;      // of a terminal
constexpr size_t kMaxClasses = 20;      // of a table with all classes
constexpr size_t kFewClasses = 10;      // shown of more classes than kMaxClasses
constexpr size_t kMaxLabel = 32;        // characters of a label
constexpr size_t kMaxColumnLabel = 10;  // characters of a label at the head of a column

double Ratio(double a, double b) { return b == 0 ? 0 : a / b; }
double Ratio(int64_t a, int64_t b) { return Ratio(static_cast<double>(a), static_cast<double>(b)); }

// Adds `weight` times the figures of `from` to `mean`.
void AddTo(Quality* mean, const Quality& from, double weight) {
  mean->precision += weight * from.precision;
  mean->recall += weight * from.recall;
  mean->f1 += weight * from.f1;
}

// Returns `label`, cut to `max` characters, the last of which is then "…".
std::string Cut(absl::string_view label, size_t max) {
  if (CountCharacters(label) <= max) return std::string(label);
  size_t end = 0;
  for (size_t i = 0; i + 1 < max; ++i) end += std::max<size_t>(CharacterAt(label, end).bytes, 1);
  return absl::StrCat(label.substr(0, end), "…");
}

std::string Left(absl::string_view text, size_t width) {
  return absl::StrCat(text, std::string(width - std::min(width, CountCharacters(text)), ' '));
}
std::string Right(absl::string_view text, size_t width) {
  return absl::StrCat(std::string(width - std::min(width, CountCharacters(text)), ' '), text);
}

std::string QualityTable(const ConfusionMatrix& confusion, absl::Span<const std::string> labels) {
  const ClassReport report = ReportClasses(confusion);
  std::vector<size_t> shown(confusion.size());
  std::iota(shown.begin(), shown.end(), 0);
  std::string text;
  if (confusion.size() > kMaxClasses) {
    absl::c_stable_sort(shown, [&](size_t a, size_t b) { return report.classes[a].f1 < report.classes[b].f1; });
    shown.resize(kFewClasses);
    text = absl::StrCat("the ", kFewClasses, " of ", confusion.size(), " classes with the lowest f1\n");
  }
  size_t width = std::string("weighted average").size();
  for (const size_t i : shown) width = std::max(width, CountCharacters(Cut(labels[i], kMaxLabel)));
  const auto line = [&](absl::string_view label, const Quality& quality) {
    absl::StrAppend(
        &text, Left(label, width),
        absl::StrFormat("%11.4f%11.4f%11.4f%11d\n", quality.precision, quality.recall, quality.f1, quality.support));
  };
  absl::StrAppend(&text, Left("class", width), "  precision     recall         f1    support\n");
  for (const size_t i : shown) line(Cut(labels[i], kMaxLabel), report.classes[i]);
  line("macro average", report.macro);
  line("weighted average", report.weighted);
  return text;
}

// Returns the matrix as a table, or "" if it is wider than a terminal.
std::string MatrixTable(const ConfusionMatrix& confusion, absl::Span<const std::string> labels) {
  size_t first = 0, column = 0, total = 0;  // widths: of the labels of rows, of a column, of the table
  for (size_t i = 0; i < labels.size(); ++i) {
    first = std::max(first, CountCharacters(Cut(labels[i], kMaxLabel)));
    column = std::max(column, CountCharacters(Cut(labels[i], kMaxColumnLabel)) + 2);
    for (const int64_t count : confusion[i]) column = std::max(column, absl::StrCat(count).size() + 2);
  }
  total = first + column * labels.size();
  if (total > kMaxColumns) return "";
  std::string text = "confusion matrix: a row is a right class, a column is a prediction\n" + std::string(first, ' ');
  for (const std::string& label : labels) absl::StrAppend(&text, Right(Cut(label, kMaxColumnLabel), column));
  text += '\n';
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&text, Left(Cut(labels[i], kMaxLabel), first));
    for (const int64_t count : confusion[i]) absl::StrAppend(&text, Right(absl::StrCat(count), column));
    text += '\n';
  }
  return text;
}

std::string ConfusionList(const ConfusionMatrix& confusion, absl::Span<const std::string> labels) {
  std::string text = "most frequent confusions: number, right class, prediction\n";
  const std::vector<Confusion> most = MostFrequentConfusions(confusion, kFewClasses);
  if (most.empty()) return "no confusions\n";
  size_t width = 0;
  for (const Confusion& each : most) {
    width = std::max(width, CountCharacters(Cut(labels[static_cast<size_t>(each.right)], kMaxLabel)));
  }
  for (const Confusion& each : most) {
    absl::StrAppend(&text, absl::StrFormat("%7d", each.count), "  ",
                    Left(Cut(labels[static_cast<size_t>(each.right)], kMaxLabel), width), "  ",
                    Cut(labels[static_cast<size_t>(each.predicted)], kMaxLabel), "\n");
  }
  return text;
}

struct Entity {
  std::string type;
  size_t first = 0, last = 0;  // indices of words

  bool operator==(const Entity&) const = default;
};

// A tag is split into the letter of its position, and the type of its entity.
struct Tag {
  char letter = 'O';
  absl::string_view type = "";

  bool is_within() const { return !absl::StrContains("O.", letter); }
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
  if (absl::StrContains("ES", tag.letter)) return true;
  if (absl::StrContains("BI", tag.letter) && absl::StrContains("BSO", next.letter)) return true;
  return tag.is_within() && tag.type != next.type;
}

bool BeginsBetween(const Tag& tag, const Tag& next) {
  if (absl::StrContains("BS", next.letter)) return true;
  if (absl::StrContains("ESO", tag.letter) && absl::StrContains("EI", next.letter)) return true;
  return next.is_within() && tag.type != next.type;
}

// Returns the entities of the tags of one sentence.
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

std::string Line(absl::string_view name, size_t width, const Quality& figures) {
  return absl::StrFormat("%*s  %9.4f %9.4f %9.4f %9d\n", static_cast<int>(width), name, figures.precision,
                         figures.recall, figures.f1, figures.support);
}

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

ConfusionMatrix CountConfusions(absl::Span<const int32_t> right, absl::Span<const int32_t> predicted, size_t classes) {
  ConfusionMatrix confusion(classes, std::vector<int64_t>(classes, 0));
  for (size_t i = 0; i < right.size(); ++i) {
    ++confusion[static_cast<size_t>(right[i])][static_cast<size_t>(predicted[i])];
  }
  return confusion;
}

ClassReport ReportClasses(const ConfusionMatrix& confusion) {
  ClassReport report;
  int64_t examples = 0, occurring = 0;  // numbers of examples, and of classes that occur
  for (size_t i = 0; i < confusion.size(); ++i) {
    const int64_t support = absl::c_accumulate(confusion[i], int64_t{0});
    int64_t predictions = 0;
    for (const std::vector<int64_t>& row : confusion) predictions += row[i];
    const int64_t hits = confusion[i][i];
    report.classes.push_back({.precision = Ratio(hits, predictions),
                              .recall = Ratio(hits, support),
                              .f1 = Ratio(2 * hits, predictions + support),
                              .support = support});
    examples += support;
    occurring += predictions + support > 0 ? 1 : 0;
  }
  for (const Quality& quality : report.classes) {
    // A class that does not occur has only zeros.
    AddTo(&report.macro, quality, Ratio(int64_t{1}, occurring));
    AddTo(&report.weighted, quality, Ratio(quality.support, examples));
  }
  report.macro.support = report.weighted.support = examples;
  return report;
}

std::vector<Confusion> MostFrequentConfusions(const ConfusionMatrix& confusion, size_t max) {
  std::vector<Confusion> all;
  for (size_t right = 0; right < confusion.size(); ++right) {
    for (size_t predicted = 0; predicted < confusion.size(); ++predicted) {
      const int64_t count = confusion[right][predicted];
      if (right == predicted || count == 0) continue;
      all.push_back({static_cast<int32_t>(right), static_cast<int32_t>(predicted), count});
    }
  }
  absl::c_stable_sort(all, [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (all.size() > max) all.resize(max);
  return all;
}

std::string ToText(const ConfusionMatrix& confusion, absl::Span<const std::string> labels) {
  const std::string matrix = MatrixTable(confusion, labels);
  return absl::StrCat(QualityTable(confusion, labels), "\n",
                      matrix.empty() ? ConfusionList(confusion, labels) : matrix);
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

TagReport TaggingScore::Report() const {
  const auto figures_of = [](const Counts& counts) {
    Quality figures = {.precision = Ratio(counts.both, counts.predicted),
                       .recall = Ratio(counts.both, counts.right),
                       .support = counts.right};
    figures.f1 = Ratio(2 * figures.precision * figures.recall, figures.precision + figures.recall);
    return figures;
  };
  TagReport report;
  Counts all;
  for (const auto& [type, counts] : counts_) {
    all.right += counts.right;
    all.predicted += counts.predicted;
    all.both += counts.both;
  }
  for (const auto& [type, counts] : counts_) {
    const Quality& figures = report.types[type] = figures_of(counts);
    AddTo(&report.macro, figures, Ratio(int64_t{1}, std::ssize(counts_)));
    AddTo(&report.weighted, figures, Ratio(counts.right, all.right));
  }
  report.all = figures_of(all);
  report.macro.support = report.weighted.support = all.right;
  return report;
}

double TaggingScore::accuracy() const { return Ratio(equal_, words_); }

std::string ToText(const TagReport& report) {
  constexpr absl::string_view kWidest = "weighted avg";
  size_t width = kWidest.size();
  for (const auto& [type, figures] : report.types) width = std::max(width, type.size());
  std::string text = absl::StrFormat("%*s  %9s %9s %9s %9s\n\n", static_cast<int>(width), "", "precision", "recall",
                                     "f1-score", "support");
  for (const auto& [type, figures] : report.types) text += Line(type, width, figures);
  absl::StrAppend(&text, "\n", Line("micro avg", width, report.all), Line("macro avg", width, report.macro),
                  Line(kWidest, width, report.weighted));
  return text;
}

double PearsonCorrelation(absl::Span<const double> x, absl::Span<const double> y) {
  WEFT_CHECK(x.size() == y.size());
  if (x.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean_x = Mean(x), mean_y = Mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (xx == 0 || yy == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(xy / (std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

double SpearmanCorrelation(absl::Span<const double> x, absl::Span<const double> y) {
  const auto is_nan = [](double value) { return std::isnan(value); };  // numbers that are not ordered have no ranks
  if (absl::c_any_of(x, is_nan) || absl::c_any_of(y, is_nan)) return std::numeric_limits<double>::quiet_NaN();
  return PearsonCorrelation(RankValues(x), RankValues(y));
}

std::vector<double> RankValues(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    // The ranks begin + 1 .. end have this mean.
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + 1 + end);
  }
  return ranks;
}

}  // namespace weft
