#include "weft/tests/tour/arithmetic.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace weft {
namespace {

bool IsName(const std::string& text) { return std::regex_match(text, std::regex("[A-Za-z_][A-Za-z_0-9]*")); }

// Evaluates one expression by recursive descent. Throws std::runtime_error if it is none.
class Expression {
 public:
  Expression(const std::string& text, const std::map<std::string, double>& values) : text_(text), values_(values) {}

  double Value() {
    const double value = Sum();
    if (Next() != '\0') throw std::runtime_error(absl::StrCat("can't read '", text_.substr(at_), "' in '", text_, "'"));
    return value;
  }

 private:
  char Next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Next() != c) return false;
    ++at_;
    return true;
  }
  double Sum() {
    double value = Product();
    while (true) {
      if (Take('+')) {
        value += Product();
      } else if (Take('-')) {
        value -= Product();
      } else {
        return value;
      }
    }
  }
  double Product() {
    double value = Signed();
    while (true) {
      if (Take('*')) {
        value *= Signed();
      } else if (Take('/')) {
        value /= Signed();
      } else {
        return value;
      }
    }
  }
  double Signed() { return Take('-') ? -Signed() : Power(); }
  double Power() {
    const double base = Primary();
    return Take('^') ? std::pow(base, Signed()) : base;
  }
  double Primary() {
    if (Take('(')) {
      const double value = Sum();
      if (!Take(')')) throw std::runtime_error("a ) is missing in '" + text_ + "'");
      return value;
    }
    if (std::isdigit(static_cast<unsigned char>(Next())) != 0) {
      char* end = nullptr;
      const double value = std::strtod(text_.c_str() + at_, &end);
      at_ = end - text_.c_str();
      return value;
    }
    std::string name;
    while (Next() != '\0' && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      name += text_[at_++];
      if (at_ < text_.size() && text_[at_] == ' ') break;
    }
    if (name == "sqrt") return std::sqrt(Primary());
    if (name == "exp") return std::exp(Primary());
    if (name == "log") return std::log(Primary());
    if (name == "sin") return std::sin(Primary());
    if (name == "cos") return std::cos(Primary());
    if (name == "tanh") return std::tanh(Primary());
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("'" + name + "' has no value in '" + text_ + "'");
    return found->second;
  }

  const std::string text_;
  const std::map<std::string, double>& values_;
  size_t at_ = 0;
};

// Returns the largest error that rounding `text` to its decimals can make, or nothing if it is no number.
std::optional<double> Rounding(const std::string& text) {
  std::smatch match;
  if (!std::regex_match(text, match, std::regex("-?[0-9]+\\.?([0-9]*)"))) return std::nullopt;
  return 0.5001 * std::pow(10.0, -static_cast<double>(match.length(1)));
}

}  // namespace

std::string Arithmetic::Check(std::string line) {
  line = line.substr(0, line.find('#'));
  line = absl::StrReplaceAll(
      line, {{"·", "*"}, {"×", "*"}, {"−", "-"}, {"√", " sqrt "}, {"²", "^2"}, {"π", "3.14159265358979"}, {"≈", "=~"}});
  line = std::regex_replace(line, std::regex("([0-9]),([0-9]{3})"), "$1$2");
  line = std::regex_replace(line, std::regex("([0-9]),([0-9]{3})"), "$1$2");
  std::vector<std::string> sides;
  for (const absl::string_view side : absl::StrSplit(line, '=')) sides.emplace_back(absl::StripAsciiWhitespace(side));
  if (sides.size() < 2) return "no equation: " + line;
  try {
    std::string name;
    if (IsName(sides[0]) && !values_.contains(sides[0])) {
      name = sides[0];
      sides.erase(sides.begin());
    }
    const double value = Expression(sides[0], values_).Value();
    for (size_t i = 1; i < sides.size(); ++i) {
      const bool about = sides[i].rfind("~", 0) == 0;
      if (about) sides[i].erase(0, sides[i].find_first_not_of("~ "));
      const double other = Expression(sides[i], values_).Value();
      const bool rounded = about || sides[i].find('.') != std::string::npos;
      const double margin = std::max(
          {1e-9 * std::abs(value), Rounding(sides[0]).value_or(0), rounded ? Rounding(sides[i]).value_or(0) : 0});
      if (!(std::abs(other - value) <= margin)) {
        return absl::StrCat(sides[i], " should be ", absl::StrFormat("%.10f", value));
      }
    }
    if (!name.empty()) values_[name] = value;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace weft
