// Compares block formats with gguf's Python package, which wrote blocks.json through draw.py.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/block_formats.h"

namespace weft {
namespace {

using Json = nlohmann::json;

const Json& Drawn() {
  static const Json json = Json::parse(*ReadFile("tests/block_formats/blocks.json"));
  return json;
}

std::string Bytes(const Json& digits) { return absl::HexStringToBytes(digits.get<std::string>()); }

std::vector<float> Floats(const Json& digits) {
  const std::string bytes = Bytes(digits);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> Decode(DType dtype, const std::string& bytes, size_t count) {
  std::vector<float> values(count);
  DecodeWeight(dtype, reinterpret_cast<const std::byte*>(bytes.data()), absl::MakeSpan(values));
  return values;
}

double SquaredError(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Calls check(dtype, drawn) for each block format. draw.py must have drawn each of them.
template <class Check>
void ForEachFormat(const Check& check) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!IsBlockFormat(dtype)) continue;
    SCOPED_TRACE(Name(dtype));
    check(dtype, Drawn()["formats"].at(absl::AsciiStrToUpper(Name(dtype))));
  }
}

TEST(GgufBlocksTest, DecodesTheSameNumbers) {
  ForEachFormat([](DType dtype, const Json& drawn) {
    const std::vector<float> values = Floats(drawn["values"]);
    const std::string bytes = Bytes(drawn["bytes"]);
    ASSERT_EQ(bytes.size(), BytesOf(dtype, static_cast<int64_t>(values.size())));
    EXPECT_EQ(Decode(dtype, bytes, values.size()), values);
  });
}

TEST(GgufBlocksTest, EncodesWithNoLargerError) {
  const std::vector<float> numbers = Floats(Drawn()["numbers"]);
  ForEachFormat([&](DType dtype, const Json& drawn) {
    std::string bytes(BytesOf(dtype, static_cast<int64_t>(numbers.size())), 0);
    EncodeWeight(numbers, dtype, reinterpret_cast<std::byte*>(bytes.data()));
    const double error = SquaredError(Decode(dtype, bytes, numbers.size()), numbers);
    const double zero = SquaredError(std::vector<float>(numbers.size()), numbers);
    const int bits = Name(dtype)[1] - '0';  // each bit more halves the error
    EXPECT_LT(std::sqrt(error / zero), 0.11 * std::exp2(4 - bits));
    RecordProperty(std::string(Name(dtype)), std::to_string(std::sqrt(error / zero)));
    if (!drawn.contains("encoded")) return;
    const std::string encoded = Bytes(drawn["encoded"]);
    if (dtype == kQ8_0) {
      EXPECT_EQ(bytes, encoded);
    }
    EXPECT_LE(error, SquaredError(Decode(dtype, encoded, numbers.size()), numbers));
  });
}

}  // namespace
}  // namespace weft
