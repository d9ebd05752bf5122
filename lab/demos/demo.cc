#include "weft/lab/demos/demo.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/dtype.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr int kLeft = 56, kTop = 40, kBottom = 46, kGap = 64, kRight = 16;  // pixels around the panels
constexpr int kWide = 320, kHigh = 220, kLine = 18;                         // pixels of curves, and of a curve's name
constexpr const char* kColors[] = {"#4477aa", "#228833", "#b06000", "#cc3311", "#7b3294", "#555555"};
constexpr int kLevels = 16;  // of a heat map's colour on either side of white

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

void AppendText(double x, double y, const char* anchor, const std::string& text, std::string* svg) {
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, Escaped(text));
}

std::string Picture(const std::string& title, double width, double height, const std::string& body) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"13\" fill=\"#333333\">\n<title>%s</title>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s</svg>\n",
      width, height, width, height, Escaped(title), body);
}

// Returns the height of a value in the panel, from 0 to 1.
double Part(const CurvePanel& panel, double value) {
  const double low = panel.logarithmic ? std::log10(panel.low) : panel.low;
  const double high = panel.logarithmic ? std::log10(panel.high) : panel.high;
  const double y = panel.logarithmic ? std::log10(std::max(value, panel.low)) : value;
  return std::isnan(y) ? 1 : std::clamp((y - low) / (high - low), 0.0, 1.0);
}

std::vector<double> Ticks(const CurvePanel& panel) {
  std::vector<double> ticks;
  if (panel.logarithmic) {
    const int low = std::lround(std::log10(panel.low)), high = std::lround(std::log10(panel.high));
    const int step = std::max(1, (high - low + 5) / 6);
    for (int power = low; power <= high; power += step) ticks.push_back(std::pow(10, power));
  } else {
    for (int i = 0; i <= 5; ++i) ticks.push_back(panel.low + (panel.high - panel.low) * i / 5);
  }
  return ticks;
}

void AppendPanel(const CurvePanel& panel, double left, std::string* svg) {
  AppendText(left + kWide / 2.0, 20, "middle", panel.title, svg);
  for (const double tick : Ticks(panel)) {
    const double y = kTop + kHigh * (1 - Part(panel, tick));
    absl::StrAppendFormat(svg, "<path d=\"M%.1f %.1fh%d\" stroke=\"#dddddd\"/>\n", left, y, kWide);
    AppendText(left - 6, y + 4, "end", absl::StrFormat("%.3g", tick), svg);
  }
  size_t count = 2;
  for (const PlotCurve& curve : panel.curves) count = std::max(count, curve.values.size());
  const auto at = [&](size_t i) { return left + kWide * static_cast<double>(i) / (count - 1); };
  const int64_t units = static_cast<int64_t>(count - 1) / panel.per_unit;
  for (int64_t x = 0; x <= units; x += std::max<int64_t>(1, units / 5))
    AppendText(at(x * panel.per_unit), kTop + kHigh + 18, "middle", absl::StrCat(panel.first + x), svg);
  AppendText(left + kWide / 2.0, kTop + kHigh + 38, "middle", panel.x_label, svg);
  for (size_t c = 0; c < panel.curves.size(); ++c) {
    const char* const color = kColors[c % std::size(kColors)];
    const PlotCurve& curve = panel.curves[c];
    std::string points;
    for (size_t i = 0; i < curve.values.size(); ++i) {
      absl::StrAppendFormat(&points, "%s%.1f %.1f", i == 0 ? "M" : "L", at(i),
                            kTop + kHigh * (1 - Part(panel, curve.values[i])));
    }
    absl::StrAppendFormat(svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points, color);
    const double y = kTop + kHigh + kBottom + kLine * static_cast<double>(c + 1);
    absl::StrAppendFormat(svg, "<path d=\"M%.1f %.1fh20\" stroke=\"%s\" stroke-width=\"3\"/>\n", left, y - 4, color);
    AppendText(left + 26, y, "start", curve.name, svg);
  }
}

// Returns a colour for a level from -kLevels (red) over 0 (white) to kLevels (blue).
std::string Color(int level) {
  const double part = std::abs(level) / static_cast<double>(kLevels);
  const auto mix = [&](int end) { return std::lround(255 + (end - 255) * part); };
  return level < 0 ? absl::StrFormat("#%02x%02x%02x", mix(190), mix(45), mix(20))
                   : absl::StrFormat("#%02x%02x%02x", mix(20), mix(75), mix(150));
}

void AppendMap(const HeatMap& map, double left, double size, std::string* svg) {
  const double wide = size * map.columns, high = size * map.rows;
  AppendText(left + wide / 2, 20, "middle", map.title, svg);
  std::map<int, std::string> cells;  // one path for each colour
  for (int64_t i = 0; i < map.rows * map.columns; ++i) {
    const double value = map.values[i];
    const double part = value >= 0 ? value / map.high : map.low < 0 ? -value / map.low : 0;
    absl::StrAppendFormat(&cells[std::lround(kLevels * std::clamp(part, -1.0, 1.0))], "M%d %dh1v1h-1z", i % map.columns,
                          i / map.columns);
  }
  absl::StrAppendFormat(svg, "<g transform=\"translate(%.1f %d) scale(%.4g)\">\n", left, kTop, size);
  for (const auto& [level, path] : cells) {
    absl::StrAppendFormat(svg, "<path d=\"%s\" fill=\"%s\"/>\n", path, Color(level));
  }
  absl::StrAppend(svg, "</g>\n");
  absl::StrAppendFormat(svg,
                        "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#999999\"/>\n",
                        left, kTop, wide, high);
  const auto label = [&](int64_t i) { return map.names.empty() ? absl::StrCat(map.first + i) : map.names[i]; };
  const auto step = [&](int64_t n) { return map.names.empty() ? std::max<int64_t>(1, n / 4) : 1; };
  for (int64_t i = 0; i < map.rows; i += step(map.rows)) {
    AppendText(left - 6, kTop + size * (i + 0.5) + 4, "end", label(i), svg);
  }
  for (int64_t i = 0; i < map.columns; i += step(map.columns)) {
    AppendText(left + size * (i + 0.5), kTop + high + 18, "middle", label(i), svg);
  }
  AppendText(left + wide / 2, kTop + high + 38, "middle", map.column_label, svg);
  if (map.row_label.empty()) return;
  absl::StrAppendFormat(svg, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                        left - 40, kTop + high / 2, Escaped(map.row_label));
}

}  // namespace

std::string DrawCurves(const std::string& title, absl::Span<const CurvePanel> panels) {
  std::string body;
  double left = kLeft;
  size_t names = 0;
  for (const CurvePanel& panel : panels) {
    AppendPanel(panel, left, &body);
    left += kWide + kGap;
    names = std::max(names, panel.curves.size());
  }
  return Picture(title, left - kGap + kRight, kTop + kHigh + kBottom + kLine * static_cast<double>(names) + 8, body);
}

std::string DrawHeatMaps(const std::string& title, absl::Span<const HeatMap> maps) {
  std::string body;
  double left = kLeft, bottom = 0;
  for (const HeatMap& map : maps) {
    const double size = std::clamp(300.0 / std::max(map.rows, map.columns), 4.0, 36.0);
    AppendMap(map, left, size, &body);
    left += size * map.columns + kGap;
    bottom = std::max(bottom, kTop + size * map.rows);
  }
  return Picture(title, left - kGap + kRight, bottom + kBottom, body);
}

namespace {

std::string Text(const DemoCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) return absl::StrFormat("%.4g", *number);
  if (const int64_t* number = std::get_if<int64_t>(&cell)) return absl::StrCat(*number);
  return std::get<std::string>(cell);
}

// Returns the title and a line for each row. Texts are aligned on the left, and numbers on the right.
std::string Print(const DemoTable& table) {
  const size_t columns = table.columns.size();
  std::vector<std::vector<std::string>> lines = {table.columns};
  std::vector<bool> is_text(columns, false);
  for (const std::vector<DemoCell>& row : table.rows) {
    lines.emplace_back();
    for (size_t i = 0; i < columns; ++i) {
      lines.back().push_back(Text(row[i]));
      if (std::holds_alternative<std::string>(row[i])) is_text[i] = true;
    }
  }
  std::vector<size_t> widths(columns, 0);
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], CountCharacters(line[i]));
  }
  std::string text = table.title + "\n";
  for (const std::vector<std::string>& cells : lines) {
    std::string line;
    for (size_t i = 0; i < columns; ++i) {
      const std::string space(widths[i] - CountCharacters(cells[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", is_text[i] ? cells[i] : space, is_text[i] ? space : cells[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Print(const DemoMatrix& matrix) {
  const bool whole = absl::c_all_of(matrix.values, [](double x) { return x == std::rint(x); });
  double largest = 0;
  for (const double x : matrix.values) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  const bool fixed = whole ? largest < 1e9 : largest >= 1e-2 && largest < 1e6;
  std::vector<std::string> cells;
  size_t width = 0;
  for (const double x : matrix.values) {  // a number that rounds to 0 is printed without a minus sign
    cells.push_back(fixed ? absl::StrFormat("%.*f", whole ? 0 : 4, std::abs(x) < 5e-5 ? 0.0 : x)
                          : absl::StrFormat("%.4g", x + 0.0));
    width = std::max(width, cells.back().size());
  }
  std::string text = matrix.title + "\n";
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&text, std::string(2 + width - cells[i].size(), ' '), cells[i]);
    if ((i + 1) % matrix.columns == 0) absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<Numbers>> EvaluateOnce(const Tape& tape, const VarList& fetch, uint64_t seed,
                                                  absl::Span<const FeedPair> feeds) {
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = fetch}));
  Parameters parameters({.seed = seed});
  Runner runner(graph, &parameters);
  WEFT_ASSIGN_OR_RETURN(const Outputs out, runner.Run(feeds));
  std::vector<Numbers> values;
  for (const Var& var : fetch) {
    Dispatch(var.dtype(), [&](auto zero) {
      const auto elements = out[var].span<const decltype(zero)>();
      values.emplace_back(elements.begin(), elements.end());
    });
  }
  return values;
}

std::vector<Demo> AllDemos() {
  return {AttentionDemo(), ScaleDemo(), HeadsDemo(), MasksDemo(),      PatternsDemo(),
          PositionsDemo(), NormsDemo(), DepthDemo(), ActivationsDemo()};
}

std::string PrintText(const DemoResult& result) {
  std::string text;
  for (const DemoTable& table : result.tables) absl::StrAppend(&text, text.empty() ? "" : "\n", Print(table));
  for (const DemoMatrix& m : result.matrices) absl::StrAppend(&text, text.empty() ? "" : "\n", Print(m));
  return text;
}

std::string PrintJson(const DemoResult& result) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const DemoTable& table : result.tables) {
    nlohmann::ordered_json& rows = all[table.name] = nlohmann::ordered_json::array();
    for (const std::vector<DemoCell>& cells : table.rows) {
      nlohmann::ordered_json row;
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::string key = absl::StrReplaceAll(table.columns[i], {{" ", "_"}});
        WEFT_CHECK(!row.contains(key));  // two columns with one key
        std::visit([&](const auto& x) { row[key] = x; }, cells[i]);
      }
      rows.push_back(std::move(row));
    }
  }
  for (const DemoMatrix& matrix : result.matrices) {
    nlohmann::ordered_json& rows = all[matrix.name] = nlohmann::ordered_json::array();
    for (auto x = matrix.values.begin(); x != matrix.values.end(); x += matrix.columns) {
      rows.push_back(Numbers(x, x + matrix.columns));
    }
  }
  return JsonLine(all) + "\n";
}

}  // namespace weft
