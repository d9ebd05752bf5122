#include "weft/formats/images.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;

// Writes a file in a new folder, so that the rows of a table can have files of one name.
std::string Write(const std::string& name, const std::string& contents) {
  static int files = 0;
  const std::string folder = testing::TempDir() + "/images_test-" + std::to_string(++files);
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string Bytes(std::initializer_list<int> bytes) { return std::string(bytes.begin(), bytes.end()); }

const std::string kPictures = Bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});
const std::string kLabels = Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 9});

TEST(ImagesTest, ReadsCsv) {
  const absl::StatusOr<Images> images = ReadImages(Write("a.csv", "1,2,3,4,5\r\n0,0.5,0,1,0.0\n\n"));
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->height, 2);
  EXPECT_EQ(images->width, 2);
  EXPECT_THAT(images->labels, ElementsAre(5, 0));
  EXPECT_THAT((*images)[1], ElementsAre(0, 0.5f, 0, 1));
}

TEST(ImagesTest, ReadsIdx) {
  const absl::StatusOr<Images> images = ReadImages(Write("p.idx", kPictures), Write("l.idx", kLabels));
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->height, 1);
  EXPECT_EQ(images->width, 3);
  EXPECT_THAT(images->labels, ElementsAre(7, 9));
  EXPECT_THAT((*images)[1], ElementsAre(4, 5, 255));
}

TEST(ImagesTest, ReadsPicturesWithoutLabels) {
  for (const char* text : {"1,2,3,4\n5,6,7,8\n", "1,2,3,4,0\n5,6,7,8,x\n"}) {
    const absl::StatusOr<Images> images = ReadUnlabelledImages(Write("a.csv", text), 2, 2);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ(images->size(), 2);
    EXPECT_TRUE(images->labels.empty());
    EXPECT_THAT((*images)[1], ElementsAre(5, 6, 7, 8));
  }
  const absl::StatusOr<Images> idx = ReadUnlabelledImages(Write("p.idx", kPictures), 1, 3);
  ASSERT_TRUE(idx.ok()) << idx.status();
  EXPECT_EQ(idx->size(), 2);
  EXPECT_THAT((*idx)[1], ElementsAre(4, 5, 255));
  const absl::Status status = ReadUnlabelledImages(Write("a.csv", "1,2,3\n"), 2, 2).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "a.csv, line 1: 3 pixels, but the model's have 4")) << status;
}

// MNIST's CSVs come with the label in the first column or in the last one. Seven pictures of 2 x 2 pixels.
TEST(ImagesTest, RefusesLabelsInTheFirstColumn) {
  const std::string kFirst = "0,9,0,255,253\n1,7,0,31,0\n2,9,3,254,17\n0,9,0,200,119\n1,8,0,64,80\n";
  const absl::Status status = ReadImages(Write("f.csv", kFirst)).status();
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "f.csv: the last column of a line is taken for its label, and has 5 different values "
                                "of 0 .. 253; but the first column has each label of 0 .. 2"))
      << status;
  for (const char* first : {"0,9,0,255,0\n1,7,0,31,0\n",  // the last pixel is always black, or often
                            "0,1,2,3,0\n1,3,2,1,0\n2,3,3,3,0\n1,3,2,1,0\n0,1,2,3,0\n2,1,2,3,2\n"}) {
    EXPECT_FALSE(ReadImages(Write("f.csv", first)).ok()) << first;
  }
  for (const char* last : {"9,0,255,253,0\n7,0,31,0,1\n9,3,254,17,2\n",  // three labels
                           "0,1,0,1,4\n1,1,0,1,9\n",                     // black and white; labels exceed the pixels
                           "0,0,3,4,5\n0,0,3,4,5\n",                     // one label; the first pixel has one value
                           "0,9,0,255,0\n1,7,0,31,1\n"}) {               // both columns have all labels
    EXPECT_TRUE(ReadImages(Write("l.csv", last)).ok()) << last;
  }
}

TEST(ImagesTest, SaysWhatCannotBeRead) {
  const std::string pictures = Write("p.idx", kPictures), labels = Write("l.idx", kLabels);
  const struct {
    std::string path, labels, error;
  } kCases[] = {
      {Write("b.csv", "1,2,3,4\n"), "", "b.csv, line 1: 3 pixels before the label are not a square"},
      {Write("b.csv", "1,2\n1,2,3\n"), "", "b.csv, line 2: 2 pixels, but the pictures before have 1"},
      {Write("b.csv", "1,2\n\nx,3\n"), "", "b.csv, line 3: 'x' is not a number"},
      {Write("b.csv", "nan,3\n"), "", "b.csv, line 1: 'nan' is not a number"},
      {Write("b.csv", "-1,1\n"), "", "b.csv, line 1: the pixel -1 is less than 0"},
      {Write("b.csv", "1,-1\n"), "", "the label '-1' is not a whole number of 0 .. 65535"},
      {Write("b.csv", "1,1.5\n"), "", "the label '1.5' is not a whole number"},
      {Write("b.csv", "\n"), "", "b.csv: there are no pictures in it"},
      {Write("b.csv", "1,2\n"), labels, "it is not an IDX file"},
      {pictures, "", "needs one of labels, too"},
      {pictures, pictures, "p.idx: it is not an IDX file of bytes of rank 1"},
      {pictures, Write("m.idx", Bytes({0, 0, 8, 1, 0, 0, 0, 1, 7})), "has 2 pictures, but "},
      {Write("q.idx", kPictures + "x"), labels, "q.idx: its header asks for 6 bytes, but it has 7"},
      {Write("q.idx", Bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})), labels,
       "q.idx: its header asks for"},
      {Write("q.idx", Bytes({0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3})), labels, "q.idx: there are no pictures"},
      {Write("q.png", "\x89PNG\r\n\x1a\n"), "", "q.png: a picture without a label; wanted a folder"},
      {Write("q.idx", Bytes({0, 0, 8, 3, 0})), labels, "q.idx: it is not an IDX file of bytes of rank 3"},
      {"missing.csv", "", "missing.csv"},
  };
  for (const auto& [path, label_path, error] : kCases) {
    const absl::Status status = ReadImages(path, label_path).status();
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << "; wanted: " << error;
  }
}

TEST(ImagesTest, EveryNthIsHeldOut) {
  Images images = {"", 1, 1, {0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}};
  const Images held = HoldOut(&images, 3);
  EXPECT_THAT(held.labels, ElementsAre(2, 5));
  EXPECT_THAT(held.pixels, ElementsAre(2, 5));
  EXPECT_THAT(images.labels, ElementsAre(0, 1, 3, 4, 6));
  EXPECT_EQ(images.size(), 5);
}

}  // namespace
}  // namespace weft
