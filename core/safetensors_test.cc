#include "weft/core/safetensors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/core/block_formats.h"

namespace weft {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::string Length(uint64_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof(n)); }

// Writes a file with `header` and then `data_bytes` bytes of 1, and opens it.
absl::StatusOr<SafetensorsFile> OpenHeader(const std::string& header, size_t data_bytes) {
  const std::string path = Path("case.safetensors");
  EXPECT_TRUE(WriteFile(path, {Length(header.size()), header, std::string(data_bytes, '\1')}).ok());
  return SafetensorsFile::Open(path);
}

std::string Tensor32(const std::string& name, const std::string& shape, const std::string& offsets,
                     const std::string& dtype = "F32") {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":", offsets,
                      "}");
}

TEST(SafetensorsTest, RowsOfBlocksAreWhole) {
  EXPECT_TRUE(OpenHeader("{" + Tensor32("w", "[2,48]", "[0,136]", "Q8_0") + "}", 136).ok());
  EXPECT_THAT(std::string(OpenHeader("{" + Tensor32("w", "[2,48]", "[0,102]", "Q8_0") + "}", 102).status().message()),
              HasSubstr("Q8_0[2,48] takes 136 bytes, but it has 102"));
}

TEST(SafetensorsTest, RoundTripOfEveryDtype) {
  Arena arena;
  std::vector<NamedTensor> tensors;
  const Shape shapes[kDTypeCount] = {{2, 3}, {}, {5}, {0, 4}, {3}, {2, 64}, {3, 33}};
  for (int i = 0; i < kDTypeCount; ++i) {
    const TensorType type = {static_cast<DType>(i), shapes[i]};
    const Tensor tensor = {type, arena.Allocate(type.bytes())};
    for (size_t b = 0; b < type.bytes(); ++b) tensor.data[b] = std::byte(type.dtype == kBool ? b % 2 : 17 * b + i);
    tensors.push_back({absl::StrCat("layer.", i, " \"é\""), tensor});
  }
  const std::string path = Path("round_trip.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& got = file->tensors()[i];
    EXPECT_EQ(got.name, tensors[i].name);
    ASSERT_EQ(got.tensor.type, tensors[i].tensor.type);
    EXPECT_EQ(std::memcmp(got.tensor.data, tensors[i].tensor.data, got.tensor.type.bytes()), 0);
    const size_t alignment = IsBlockFormat(got.tensor.type.dtype) ? 1 : SizeOf(got.tensor.type.dtype);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.tensor.data) % alignment, 0);
    EXPECT_EQ(file->Find(got.name), &got);
  }
  EXPECT_EQ(file->Find("layer"), nullptr);
  const std::string bytes = *ReadFile(path);
  EXPECT_EQ(static_cast<uint8_t>(bytes[0]) % 8, 0);  // the header's length is padded
}

TEST(SafetensorsTest, ReadsMetadataPaddingAndNoTensors) {
  EXPECT_TRUE(OpenHeader("{}", 0).ok());
  EXPECT_TRUE(OpenHeader("{}      ", 0).ok());
  const auto file = OpenHeader("{\"__metadata__\":{\"format\":\"pt\"}," + Tensor32("b", "[1]", "[4,8]") + "," +
                                   Tensor32("a", "[]", "[0,4]") + "}  ",
                               8);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 2);
  EXPECT_EQ(file->tensors()[0].name, "a");  // in the order of their bytes
  EXPECT_EQ(file->tensors()[1].name, "b");
}

struct HostileCase {
  std::string header;
  size_t data_bytes;
  const char* error;
};

TEST(SafetensorsTest, RefusesHostileHeaders) {
  const std::string fine = Tensor32("a", "[2]", "[0,8]");
  const HostileCase cases[] = {
      {"", 0, "it is not JSON"},
      {"{", 0, "it is not JSON"},
      {"{} x", 0, "it is not JSON"},
      {"[1]", 0, "it is not a JSON object"},
      {"{\"a\xff\":1}", 0, "it is not JSON"},
      {"{" + fine + "," + fine + "}", 8, "'a' occurs twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "'dtype' occurs twice"},
      {"{\"__metadata__\":{\"x\":\"1\",\"x\":\"2\"}}", 0, "'x' occurs twice"},
      {std::string(5'000'000, '['), 0, "nested too deeply"},
      {"{\"a\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}", 0, "nested too deeply"},
      {"{\"a\":1}", 0, "tensor 'a': it is not a JSON object"},
      {"{\"a\":{}}", 0, "tensor 'a': it has no dtype"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":0}}", 4, "it has more than"},
      {"{" + Tensor32("a", "[2]", "[0,2]", "F9") + "}", 2, "tensor 'a': its dtype F9 is none of the format's"},
      {"{" + Tensor32("a", "[2]", "[0,8]", "U8") + "}", 8, "U8[2] takes 2 bytes, but it has 8"},
      {"{" + Tensor32("a", "[2]", "[0,8]", "F16") + "}", 8, "F16[2] takes 4 bytes, but it has 8"},
      {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "its dtype is not a string"},
      {"{" + Tensor32("a", "{}", "[0,4]") + "}", 4, "its shape is not an array"},
      {"{" + Tensor32("a", "[-1]", "[0,4]") + "}", 4, "not a natural number"},
      {"{" + Tensor32("a", "[1.5]", "[0,4]") + "}", 4, "not a natural number"},
      {"{" + Tensor32("a", "[18446744073709551615]", "[0,4]") + "}", 4, "not a natural number"},
      {"{" + Tensor32("a", "[4294967296,4294967296]", "[0,0]") + "}", 0, "is too large"},
      {"{" + Tensor32("a", "[0,9223372036854775807,9]", "[0,0]") + "}", 0, "is too large"},
      {"{" + Tensor32("a", "[1,1,1,1,1,1,1]", "[0,4]") + "}", 4, "it has rank 7"},
      {"{" + Tensor32("a", "[2]", "[0,4]") + "}", 4, "F32[2] takes 8 bytes, but it has 4"},
      {"{" + Tensor32("a", "[2]", "[8,0]") + "}", 8, "not two natural numbers in order"},
      {"{" + Tensor32("a", "[2]", "[-8,0]") + "}", 8, "not two natural numbers in order"},
      {"{" + Tensor32("a", "[2]", "[0]") + "}", 8, "not two natural numbers in order"},
      {"{" + Tensor32("a", "[2]", "[18446744073709551608,18446744073709551615]") + "}", 8, "run past the end"},
      {"{" + fine + "}", 7, "run past the end"},
      {"{" + fine + "}", 9, "9 bytes after the header, but its tensors take 8"},
      {"{" + fine + "," + Tensor32("b", "[1]", "[12,16]") + "}", 16, "tensor 'b': its bytes begin at 12, but"},
      {"{" + fine + "," + Tensor32("b", "[2]", "[4,12]") + "}", 12, "tensor 'b': its bytes begin at 4, inside"},
      {"{" + fine + "," + Tensor32("b", "[2]", "[0,8]") + "}", 8, "inside the tensor before"},
      {"{" + Tensor32("a", "[1]", "[4,8]") + "}", 8, "tensor 'a': its bytes begin at 4, but"},
      {"{}", 1, "1 bytes after the header, but its tensors take 0"},
  };
  for (const HostileCase& c : cases) {
    SCOPED_TRACE(c.header.substr(0, 100));
    const absl::Status status = OpenHeader(c.header, c.data_bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("case.safetensors is no valid safetensors file: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST(SafetensorsTest, RefusesABoolThatIsNone) {
  const std::string path = Path("bool.safetensors"), header = "{" + Tensor32("a", "[2]", "[0,2]", "BOOL") + "}";
  ASSERT_TRUE(WriteFile(path, {Length(header.size()), header, "\1\2"}).ok());
  EXPECT_THAT(std::string(SafetensorsFile::Open(path).status().message()), HasSubstr("neither 0 nor 1"));
}

TEST(SafetensorsTest, ReadsHalvesAsTheyLie) {
  const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00, 0xfc00, 0x3555};
  const std::string path = Path("half.safetensors"), header = "{" + Tensor32("a", "[8]", "[0,16]", "F16") + "}";
  ASSERT_TRUE(WriteFile(path, {Length(header.size()), header, {reinterpret_cast<const char*>(halves), 16}}).ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor& tensor = file->tensors()[0].tensor;
  ASSERT_EQ(tensor.type, (TensorType{kF16, {8}}));
  std::vector<float> values(8);
  DecodeWeight(kF16, tensor.data, absl::MakeSpan(values));
  EXPECT_THAT(values, testing::ElementsAre(1, -2, 65504, 0x1p-24f, 0, kInf, -kInf, 0.333251953125f));
}

TEST(SafetensorsTest, Reads64BitIntegersAsI32WhereTheyFit) {
  const std::string path = Path("i64.safetensors"), header = "{" + Tensor32("a", "[2]", "[0,16]", "I64") + "}";
  for (const int64_t last : {int64_t{-7}, int64_t{1} << 31}) {
    const int64_t values[] = {0x7fffffff, last};
    ASSERT_TRUE(WriteFile(path, {Length(header.size()), header, {reinterpret_cast<const char*>(values), 16}}).ok());
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    if (last > 0) {
      EXPECT_THAT(std::string(file.status().message()),
                  HasSubstr("tensor 'a': element 1 is 2147483648, which does not fit i32"));
    } else {
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_THAT(file->tensors()[0].tensor.span<const int32_t>(), testing::ElementsAre(0x7fffffff, -7));
    }
  }
}

// These are the other dtypes of safetensors 0.8. Three elements of 6 or 4 bits fill 3 and 2 bytes.
TEST(SafetensorsTest, NamesTensorsThatItDoesNotRead) {
  for (const auto& [dtype, bytes] : {std::pair{"U8", 3},
                                     {"I8", 3},
                                     {"F8_E4M3", 3},
                                     {"F8_E5M2", 3},
                                     {"F8_E8M0", 3},
                                     {"F8_E4M3FNUZ", 3},
                                     {"F8_E5M2FNUZ", 3},
                                     {"I16", 6},
                                     {"U16", 6},
                                     {"U32", 12},
                                     {"U64", 24},
                                     {"C64", 24},
                                     {"F6_E2M3", 3},
                                     {"F6_E3M2", 3},
                                     {"F4", 2}}) {
    SCOPED_TRACE(dtype);
    const std::string header = "{" + Tensor32("a", "[3]", absl::StrCat("[4,", 4 + bytes, "]"), dtype) + "," +
                               Tensor32("b", "[1]", "[0,4]") + "}";
    const absl::StatusOr<SafetensorsFile> file = OpenHeader(header, static_cast<size_t>(4 + bytes));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->tensors().size(), 1u);
    EXPECT_EQ(file->tensors()[0].name, "b");
    EXPECT_THAT(file->unread(), testing::ElementsAre(testing::Pair("a", absl::StrCat(dtype, "[3]"))));
  }
}

TEST(SafetensorsTest, RefusesHeaderLengthsThatDontFit) {
  const std::string path = Path("length.safetensors");
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 40, uint64_t{1} << 60, ~uint64_t{0}, ~uint64_t{7}}) {
    ASSERT_TRUE(WriteFile(path, {Length(length), "{}"}).ok());
    EXPECT_THAT(std::string(SafetensorsFile::Open(path).status().message()), HasSubstr("2 bytes are left"));
  }
  ASSERT_TRUE(WriteFile(path, {"1234567"}).ok());
  EXPECT_THAT(std::string(SafetensorsFile::Open(path).status().message()), HasSubstr("only 7 bytes"));
  ASSERT_TRUE(WriteFile(path, {}).ok());
  EXPECT_THAT(std::string(SafetensorsFile::Open(path).status().message()), HasSubstr("only 0 bytes"));
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  Arena arena;
  const TensorType type = {kF32, {4}};
  const std::string path = Path("whole.safetensors"), cut = Path("cut.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {{"a", {type, arena.Allocate(type.bytes())}}}).ok());
  const std::string bytes = *ReadFile(path);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_TRUE(WriteFile(cut, {absl::string_view(bytes).substr(0, size)}).ok());
    EXPECT_FALSE(SafetensorsFile::Open(cut).ok()) << size;
  }
}

TEST(SafetensorsTest, WritesMetadata) {
  ASSERT_TRUE(WriteSafetensors(Path("metadata"), {}, {{"format", "pt"}}).ok());
  EXPECT_THAT(ReadFile(Path("metadata"))->substr(8),
              ContainsRegex(R"(\{"__metadata__":\{"checksum":"[0-9a-f]{16}","format":"pt"\}\})"));
  EXPECT_TRUE(SafetensorsFile::Open(Path("metadata")).ok());
}

TEST(SafetensorsTest, FindsChangedBytes) {
  Arena arena;
  const TensorType type = {kF32, {4}};
  const std::string path = Path("changed.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {{"a", {type, arena.Allocate(type.bytes())}}}).ok());
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 4;
  ASSERT_TRUE(WriteFile(path, {bytes}).ok());
  const absl::Status status = SafetensorsFile::Open(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": it is damaged"));
}

// A file of a run whose checksum lost its name is found; other programs' metadata is not mistaken for a checksum.
TEST(SafetensorsTest, AFileOfARunNeedsItsChecksum) {
  for (const char* metadata : {R"({"bhecksum":"2d06800538d394c2"})", R"({"checksum":"sha256:12"})", R"({})", "[]"}) {
    const std::string header = absl::StrCat(R"({"__metadata__":)", metadata, "}"), path = Path("of_run.safetensors");
    ASSERT_TRUE(WriteFile(path, {std::string(1, static_cast<char>(header.size())), std::string(7, '\0'), header}).ok());
    EXPECT_TRUE(SafetensorsFile::Open(path).ok()) << metadata;
    EXPECT_EQ(SafetensorsFile::Open(path, WantedChecksum::kOfRun).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(SafetensorsTest, AWriterMakesTheSameFile) {
  std::vector<float> w = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> ids = {7, 8};
  const Tensor a = {{kF32, {2, 3}}, reinterpret_cast<std::byte*>(w.data())};
  const Tensor b = {{kI32, {2}}, reinterpret_cast<std::byte*>(ids.data())};
  const std::string whole = Path("whole.safetensors"), parts = Path("parts.safetensors");
  ASSERT_TRUE(WriteSafetensors(whole, {{"w", a}, {"ids", b}}).ok());
  std::remove(parts.c_str());
  for (const bool finishes : {false, true}) {
    {
      absl::StatusOr<SafetensorsWriter> writer = SafetensorsWriter::Create(parts, {{"w", a.type}, {"ids", b.type}});
      ASSERT_TRUE(writer.ok()) << writer.status();
      EXPECT_TRUE(writer->Add(a).ok());
      EXPECT_TRUE(writer->Add(b).ok());
      EXPECT_FALSE(Exists(parts));
      if (finishes) {
        EXPECT_TRUE(writer->Finish().ok());
      }
    }
    EXPECT_EQ(Exists(parts), finishes);
  }
  EXPECT_EQ(*ReadFile(parts), *ReadFile(whole));
  EXPECT_FALSE(SafetensorsWriter::Create(Path("no/folder"), {}).ok());
}

TEST(SafetensorsTest, WriteRefusesANameTwice) {
  Arena arena;
  const NamedTensor tensor = {"a", {{kF32, {}}, arena.Allocate(4)}};
  EXPECT_THAT(std::string(WriteSafetensors(Path("twice"), {tensor, tensor}).message()), HasSubstr("'a'"));
}

TEST(SafetensorsTest, ReadsAPublishedFile) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA, the folder of the published models, is not set";
  const auto file = SafetensorsFile::Open(absl::StrCat(data, "/gpt-nano-sort/model.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  const NamedTensor* head = file->Find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(ToString(head->tensor.type), "f32[3,48]");
  int64_t elements = 0;
  for (const NamedTensor& tensor : file->tensors()) elements += tensor.tensor.type.shape.elements();
  EXPECT_EQ(elements, 85'296);  // as config.json implies: q, k and v have no bias
}

}  // namespace
}  // namespace weft
