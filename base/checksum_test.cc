#include "weft/base/checksum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"

namespace weft {
namespace {

// Expected values: XXH3_64bits of libxxhash 0.8.1, called from C for the whole text at once.
TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(Checksum(""), "2d06800538d394c2");
  EXPECT_EQ(Checksum("weft"), "15d05235f1304082");
  EXPECT_EQ(Checksum(std::string(1000, 'a')), "b3e7af627147db7c");
}

TEST(ChecksumTest, DoesNotDependOnTheParts) {
  const std::string text(5000, 'x');
  Checksummer sum;
  for (const size_t size : {0, 1, 1499, 3500}) sum.Add(text.substr(0, size));
  EXPECT_EQ(sum.Digest(), Checksum(text));
}

TEST(ChecksumTest, OfAFileReadsItInPieces) {
  const std::string path = testing::TempDir() + "/pieces", text(3'000'001, 'y');
  ASSERT_TRUE(WriteFile(path, {text}).ok());
  EXPECT_EQ(*ChecksumOfFile(path), Checksum(text));
  EXPECT_THAT(std::string(ChecksumOfFile(testing::TempDir()).status().message()), testing::HasSubstr("it is a folder"));
  EXPECT_EQ(ChecksumOfFile(path + ".missing").status().code(), absl::StatusCode::kNotFound);
}

TEST(ChecksumTest, OfAFileThatHoldsItFindsEveryFlippedBit) {
  std::string file = absl::StrCat("{\"a\":1,\"checksum\":\"", kNoChecksum, "\"}tail");
  const size_t at = file.find(kNoChecksum.data());
  PutChecksum(&file);
  EXPECT_TRUE(CheckOwnChecksum(file, file.substr(at, 16)).ok());
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    const absl::Status status = CheckOwnChecksum(flipped, flipped.substr(at, 16));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bit;
  }
  EXPECT_THAT(std::string(CheckOwnChecksum(file, "1234").message()), testing::HasSubstr("not 16 digits"));
}

}  // namespace
}  // namespace weft
