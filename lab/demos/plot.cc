#include "weft/lab/demos/plot.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace weft {
namespace {

constexpr int kLeft = 56, kTop = 40, kBottom = 46, kGap = 64, kRight = 16;  // pixels around the panels
constexpr int kWide = 320, kHigh = 220;                                     // pixels of a panel of curves
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
  const size_t step = std::max<size_t>(1, (count - 1) / 5);
  for (size_t i = 0; i < count; i += step)
    AppendText(at(i), kTop + kHigh + 18, "middle", absl::StrCat(panel.first + i), svg);
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
    const double y = kTop + 14 + 18.0 * c;
    absl::StrAppendFormat(svg, "<path d=\"M%.1f %.1fh20\" stroke=\"%s\" stroke-width=\"3\"/>\n", left + kWide - 20,
                          y - 4, color);
    AppendText(left + kWide - 26, y, "end", curve.name, svg);
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
  const auto label = [&](int64_t i) { return map.names.empty() ? absl::StrCat(i) : map.names[i]; };
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
  for (const CurvePanel& panel : panels) {
    AppendPanel(panel, left, &body);
    left += kWide + kGap;
  }
  return Picture(title, left - kGap + kRight, kTop + kHigh + kBottom, body);
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

}  // namespace weft
