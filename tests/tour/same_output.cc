#include "weft/tests/tour/same_output.h"

#include <cmath>
#include <cstdlib>
#include <functional>
#include <regex>
#include <sstream>
#include <vector>

namespace weft {
namespace {

constexpr char kAny[] = "…";

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// Returns the line's numbers and the texts between them.
std::vector<std::string> Tokens(const std::string& line) {
  static const std::regex token("[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?|…|[A-Za-z_]+|[^ ]");
  return {std::sregex_token_iterator(line.begin(), line.end(), token), {}};
}

// Returns the value of one unit of the last digit, or 0 if the text is no number with decimals.
double LastDigit(const std::string& text) {
  std::smatch match;
  if (!std::regex_match(text, match, std::regex("[0-9]+\\.([0-9]+)(e[-+]?[0-9]+)?"))) return 0;
  const std::string exponent = match.str(2);
  const double power = exponent.empty() ? 0 : std::atof(exponent.c_str() + 1);
  return std::pow(10.0, power - static_cast<double>(match.length(1)));
}

bool SameToken(const std::string& got, const std::string& shown) {
  if (got == shown) return true;
  const double unit = LastDigit(shown);
  if (unit == 0 || std::regex_search(got, std::regex("^[^0-9]"))) return false;
  return std::abs(std::atof(got.c_str()) - std::atof(shown.c_str())) < 2.01 * unit;
}

// Reports whether got[i..] is shown[j..], where `any` stands for any sequence of elements.
using Same = std::function<bool(const std::string&, const std::string&)>;
bool Matches(const std::vector<std::string>& got, const std::vector<std::string>& shown, size_t i, size_t j,
             const Same& same, size_t* farthest) {
  *farthest = std::max(*farthest, i);
  for (; j < shown.size(); ++i, ++j) {
    if (shown[j] == kAny) {
      for (size_t k = i; k <= got.size(); ++k) {
        if (Matches(got, shown, k, j + 1, same, farthest)) return true;
      }
      return false;
    }
    if (i == got.size() || !same(got[i], shown[j])) return false;
    *farthest = std::max(*farthest, i + 1);
  }
  return i == got.size();
}

bool SameLine(const std::string& got, const std::string& shown) {
  size_t unused = 0;
  return got == shown || Matches(Tokens(got), Tokens(shown), 0, 0, SameToken, &unused);
}

}  // namespace

testing::AssertionResult SameOutput(const std::string& got, const std::string& shown) {
  const std::vector<std::string> lines = Lines(got);
  size_t farthest = 0;
  if (Matches(lines, Lines(shown), 0, 0, SameLine, &farthest)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the page differs from the output after " << farthest
                                     << " lines; the output is\n"
                                     << got;
}

bool Rounds(const std::string& text, double number) {
  const double unit = LastDigit(text);
  return std::abs(std::atof(text.c_str()) - number) <= (unit == 0 ? 0 : 0.5001 * unit);
}

}  // namespace weft
