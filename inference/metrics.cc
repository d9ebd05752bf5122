// All figures follow from the confusion matrix: a row's sum is a class's support, a column's sum its predictions.
#include "weft/inference/metrics.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kMaxColumns = 80;      // of a terminal
constexpr size_t kMaxClasses = 20;      // of a table with all classes
constexpr size_t kFewClasses = 10;      // shown of more classes than kMaxClasses
constexpr size_t kMaxLabel = 32;        // characters of a label
constexpr size_t kMaxColumnLabel = 10;  // characters of a label at the head of a column

double Ratio(double a, double b) { return b == 0 ? 0 : a / b; }

// Adds `weight` times the figures of `from` to `mean`.
void AddTo(ClassQuality* mean, const ClassQuality& from, double weight) {
  mean->precision += weight * from.precision;
  mean->recall += weight * from.recall;
  mean->f1 += weight * from.f1;
}

size_t Characters(absl::string_view text) {
  return static_cast<size_t>(absl::c_count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Returns `label`, cut to `max` characters, the last of which is then "…".
std::string Cut(absl::string_view label, size_t max) {
  if (Characters(label) <= max) return std::string(label);
  size_t end = 0;
  for (size_t i = 0; i + 1 < max; ++i) end += std::max<size_t>(CharacterAt(label, end).bytes, 1);
  return absl::StrCat(label.substr(0, end), "…");
}

std::string Left(absl::string_view text, size_t width) {
  return absl::StrCat(text, std::string(width - std::min(width, Characters(text)), ' '));
}
std::string Right(absl::string_view text, size_t width) {
  return absl::StrCat(std::string(width - std::min(width, Characters(text)), ' '), text);
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
  for (const size_t i : shown) width = std::max(width, Characters(Cut(labels[i], kMaxLabel)));
  const auto line = [&](absl::string_view label, const ClassQuality& quality) {
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
    first = std::max(first, Characters(Cut(labels[i], kMaxLabel)));
    column = std::max(column, Characters(Cut(labels[i], kMaxColumnLabel)) + 2);
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
    width = std::max(width, Characters(Cut(labels[static_cast<size_t>(each.right)], kMaxLabel)));
  }
  for (const Confusion& each : most) {
    absl::StrAppend(&text, absl::StrFormat("%7d", each.count), "  ",
                    Left(Cut(labels[static_cast<size_t>(each.right)], kMaxLabel), width), "  ",
                    Cut(labels[static_cast<size_t>(each.predicted)], kMaxLabel), "\n");
  }
  return text;
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
    const auto hits = static_cast<double>(confusion[i][i]);
    report.classes.push_back({.precision = Ratio(hits, static_cast<double>(predictions)),
                              .recall = Ratio(hits, static_cast<double>(support)),
                              .f1 = Ratio(2 * hits, static_cast<double>(predictions + support)),
                              .support = support});
    examples += support;
    occurring += predictions + support > 0 ? 1 : 0;
  }
  for (const ClassQuality& quality : report.classes) {
    // A class that does not occur has only zeros.
    AddTo(&report.macro, quality, Ratio(1, static_cast<double>(occurring)));
    AddTo(&report.weighted, quality, Ratio(static_cast<double>(quality.support), static_cast<double>(examples)));
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

}  // namespace weft
