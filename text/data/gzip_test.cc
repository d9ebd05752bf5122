#include "weft/text/data/gzip.h"

#include <zlib.h>

#include <fstream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"

namespace weft {
namespace {

std::string Compressed(const std::string& text) {
  const std::string path = testing::TempDir() + "/compressed.gz";
  const gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GzipTest, GivesWhatWasCompressed) {
  std::string text;
  for (int64_t i = 0; i < 50000; ++i) text += std::to_string(i * i) + "\n";
  const std::string bytes = Compressed(text);
  EXPECT_TRUE(IsGzip(bytes));
  EXPECT_LT(bytes.size(), text.size());
  EXPECT_EQ(*Gunzip(bytes), text);
  EXPECT_EQ(*Gunzip(bytes + Compressed("more")), text + "more") << "a file of several members";
}

TEST(GzipTest, ZerosAfterTheLastPartArePadding) {
  const std::string bytes = Compressed("text"), zeros(700, '\0');
  EXPECT_EQ(*Gunzip(bytes + zeros), "text");
  EXPECT_EQ(*Gunzip(bytes + bytes + zeros), "texttext");
  EXPECT_FALSE(Gunzip(bytes + zeros + "x").ok());
  EXPECT_FALSE(Gunzip(bytes + zeros + bytes).ok());
}

TEST(GzipTest, WhatIsTooLongIsAnError) {
  const std::string bytes = Compressed(std::string(1000, 'a'));
  EXPECT_EQ(Gunzip(bytes, /*most=*/1000)->size(), 1000u);
  for (const std::string& long_one : {bytes, Compressed(std::string(1 << 20, 'a'))}) {
    const absl::Status error = Gunzip(long_one, /*most=*/999).status();
    EXPECT_TRUE(absl::StrContains(error.message(), "it has more than the 999 that are allowed")) << error;
  }
}

TEST(GzipTest, AFileDecompressesToNoMoreThanTheReadLimit) {
  const std::string path = testing::TempDir() + "/bomb.gz", bytes = Compressed(std::string(1 << 20, 'a'));
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_TRUE(ReadMaybeGzip(path).ok());
  const size_t before = ReadLimit();
  SetReadLimit(100'000);
  const absl::Status error = ReadMaybeGzip(path).status();
  EXPECT_TRUE(absl::StartsWith(error.message(), path)) << error;
  EXPECT_TRUE(absl::StrContains(error.message(), "it has more than the 100000 that are allowed")) << error;
  SetReadLimit(before);
}

TEST(GzipTest, DamageIsAnError) {
  std::string bytes = Compressed("some text that is long enough to be cut");
  const absl::Status cut = Gunzip(absl::string_view(bytes).substr(0, bytes.size() - 9)).status();
  EXPECT_TRUE(absl::StrContains(cut.message(), "it is cut off")) << cut;
  bytes[bytes.size() - 6] ^= 1;  // a bit of the checksum
  const absl::Status changed = Gunzip(bytes).status();
  EXPECT_TRUE(absl::StrContains(changed.message(), "incorrect data check")) << changed;
  EXPECT_FALSE(Gunzip("\x1f\x8b").ok());
}

TEST(GzipTest, OtherFilesAreReadAsTheyAre) {
  const std::string path = testing::TempDir() + "/plain";
  std::ofstream(path) << "plain\n";
  EXPECT_EQ(*ReadMaybeGzip(path), "plain\n");
  std::ofstream(path) << "\x1f\x8b"
                      << "broken";
  const absl::Status broken = ReadMaybeGzip(path).status();
  EXPECT_TRUE(absl::StrContains(broken.message(), path)) << broken;
}

}  // namespace
}  // namespace weft
