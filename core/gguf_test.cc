#include "weft/core/gguf.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/core/block_formats.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::string PathOf(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name, ".gguf"); }

template <class T>
std::string Bytes(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}
std::string Text(absl::string_view text) { return absl::StrCat(Bytes<uint64_t>(text.size()), text); }

// Returns a file with this metadata and these tensors, whose bytes are all 1.
std::string File(uint64_t keys, absl::string_view metadata, uint64_t tensors, absl::string_view infos, size_t bytes,
                 uint32_t version = 3) {
  std::string file = absl::StrCat("GGUF", Bytes(version), Bytes(tensors), Bytes(keys), metadata, infos);
  file.resize((file.size() + 31) / 32 * 32);
  return file + std::string(bytes, '\x01');
}
std::string Info(absl::string_view name, const std::vector<int64_t>& sizes, uint32_t type, uint64_t offset) {
  std::string info = absl::StrCat(Text(name), Bytes(static_cast<uint32_t>(sizes.size())));
  for (int64_t size : sizes) info += Bytes(size);
  return info + Bytes(type) + Bytes(offset);
}

absl::StatusOr<GgufFile> Open(const std::string& contents, GgufLists lists = GgufLists::kAll) {
  EXPECT_TRUE(WriteFile(PathOf("open"), {contents}).ok());
  return GgufFile::Open(PathOf("open"), lists);
}

TEST(GgufTest, WrittenFileIsRead) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  std::vector<float> many(64);
  for (int i = 0; i < 64; ++i) many[static_cast<size_t>(i)] = static_cast<float>(i) / 8;
  std::vector<std::byte> blocks(2 * 34);
  EncodeWeight(many, kQ8_0, blocks.data());
  const Json metadata = {{"general.architecture", "test"},
                         {"size", uint32_t{7}},
                         {"signed", -7},
                         {"epsilon", 1e-5},
                         {"flag", true},
                         {"words", {"a", "b", ""}},
                         {"types", std::vector<int32_t>(100, 3)}};
  const Tensor a = {{kF32, {2, 3}}, reinterpret_cast<std::byte*>(const_cast<float*>(numbers.data()))};
  const Tensor b = {{kQ8_0, {2, 32}}, blocks.data()};
  const std::string path = PathOf("written");
  absl::StatusOr<GgufWriter> writer = GgufWriter::Create(path, metadata, {{"a", a.type}, {"b", b.type}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Add(a).ok());
  ASSERT_TRUE(writer->Add(b).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata(), metadata);  // 1e-5 is not the nearest f32, 9.9999997e-06
  ASSERT_EQ(file->tensors().size(), 2);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[0].tensor.type, a.type);
  EXPECT_EQ(std::memcmp(file->tensors()[0].tensor.data, a.data, a.type.bytes()), 0);
  EXPECT_EQ(file->tensors()[1].tensor.type, b.type);
  EXPECT_EQ(std::memcmp(file->tensors()[1].tensor.data, b.data, b.type.bytes()), 0);

  const absl::StatusOr<GgufFile> brief = GgufFile::Open(path, GgufLists::kShort);
  ASSERT_TRUE(brief.ok()) << brief.status();
  EXPECT_TRUE(brief->metadata()["types"].is_null());
  EXPECT_EQ(brief->metadata()["words"].size(), 3);
}

TEST(GgufTest, TensorsOfOtherTypesAreNamed) {
  const std::string infos = Info("half", {2}, 1, 0) + Info("other", {256, 2}, 10, 32) + Info("empty", {0, 4}, 0, 0);
  const absl::StatusOr<GgufFile> file = Open(File(0, "", 3, infos, 256, /*version=*/2));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 2);
  EXPECT_EQ(ToString(file->tensors()[0].tensor.type), "f16[2]");
  EXPECT_EQ(ToString(file->tensors()[1].tensor.type), "f32[4,0]");
  ASSERT_EQ(file->unread().size(), 1);
  EXPECT_EQ(file->unread()[0].first, "other");
  EXPECT_EQ(file->unread()[0].second, "Q2_K[2,256]");
}

TEST(GgufTest, DamagedFilesAreRefused) {
  const auto key = [](absl::string_view name, uint32_t type, absl::string_view value) {
    return absl::StrCat(Text(name), Bytes(type), value);
  };
  const std::string list = Bytes(uint32_t{8}) + Bytes(uint64_t{1} << 60);
  const struct {
    std::string file;
    const char* error;
  } kRows[] = {
      {"", "the file ends at byte 0"},
      {"GGML" + std::string(60, '\0'), "does not begin with GGUF"},
      {File(0, "", 0, "", 0, 1), "version is 1, wanted 2 or 3"},
      {File(0, "", 0, "", 0, 3u << 24), "in little-endian order"},
      {File(uint64_t{1} << 60, "", 0, "", 0), "the file ends at byte 32"},
      {File(0, "", uint64_t{1} << 60, "", 0), "tensor"},
      {File(1, key("a", 13, ""), 0, "", 0), "key 'a': its value is of the unknown type 13"},
      {File(1, key("a", 9, Bytes(uint32_t{9}) + Bytes(uint64_t{1})), 0, "", 0),
       "its elements are of the unknown type 9"},
      {File(1, key("a", 9, list), 0, "", 0), "it has 1152921504606846976 values, but only"},
      {File(1, key("a", 8, Bytes(~uint64_t{0})), 0, "", 0), "the file ends at byte"},
      {File(1, key("a", 7, "\x02"), 0, "", 0), "neither 0 nor 1"},
      {File(2, key("a", 7, "\x01") + key("a", 7, "\x01"), 0, "", 0), "it occurs twice"},
      {File(1, key("general.alignment", 4, Bytes(uint32_t{0})), 0, "", 0), "general.alignment is 0, wanted 1"},
      // The error is UTF-8, though the text is not.
      {File(1, key("general.alignment", 8, Text("\xFF")), 0, "", 0), "general.alignment is \"\xEF\xBF\xBD\", wanted 1"},
      {File(0, "", 1, Info("w", {4}, 0, 0), 15), "its 16 bytes from 0 on run past the end"},
      {File(0, "", 1, Info("w", {4}, 0, uint64_t{1} << 60), 64), "run past the end"},
      {File(0, "", 1, Info("w", {4}, 0, 4), 64), "no multiple of the alignment 32"},
      {File(0, "", 1, Info("w", {4}, 31, 0), 64), "its type 31 is unknown"},
      {File(0, "", 1, Info("w", {4}, 1000, 0), 64), "its type 1000 is unknown"},
      {File(0, "", 1, Info("w", {33}, 8, 0), 640), "no whole blocks of Q8_0"},
      {File(0, "", 1, Info("w", {int64_t{1} << 40, int64_t{1} << 40}, 0, 0), 64), "too large or negative"},
      {File(0, "", 1, Info("w", {-4}, 0, 0), 64), "too large or negative"},
      {File(0, "", 1, Info("w", {1, 1, 1, 1, 1}, 0, 0), 64), "5 axes, more than 4"},
      {File(0, "", 2, Info("v", {4}, 0, 0) + Info("w", {4}, 0, 0), 64), "begins inside of another one"},
      {File(0, "", 2, Info("v", {4}, 0, 0) + Info("v", {4}, 0, 32), 64), "tensor 'v': it occurs twice"},
  };
  for (const auto& [file, error] : kRows) {
    const absl::Status status = Open(file).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << error;
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << ", wanted " << error;
    EXPECT_TRUE(absl::StrContains(status.message(), "open.gguf is no valid GGUF file")) << status;
  }
}

TEST(GgufTest, WhatHasNoTypeIsNotWritten) {
  for (const Json& value : {Json(nullptr), Json({1, "a"}), Json(int64_t{1} << 40), Json::object()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(GgufWriter::Create(PathOf("bad"), {{"key", value}}, {}).status())) << value;
  }
  for (const TensorType& type :
       {TensorType{kQ8_0, {2, 33}}, TensorType{kBool, {2}}, TensorType{kF32, {1, 1, 1, 1, 1}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(GgufWriter::Create(PathOf("bad"), Json::object(), {{"w", type}}).status()));
  }
  EXPECT_FALSE(Exists(PathOf("bad")));
}

}  // namespace
}  // namespace weft
