#include "weft/distributed/piece_name.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(PieceNameTest, NamesAreParsedBack) {
  const std::string name = PieceName("h.0.w", {3, 12});
  EXPECT_EQ(name, "h.0.w[3:12]");
  const std::optional<Piece> piece = ParsePiece(name);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->weight, "h.0.w");
  EXPECT_EQ(piece->rows, (IndexRange{3, 12}));
  EXPECT_EQ(WeightOfPiece(name), "h.0.w");
}

TEST(PieceNameTest, OtherNamesNameNoPiece) {
  for (const char* name : {"", "w", "w[3]", "w[3:]", "w[:3]", "w[a:b]", "w[3:4", "w]3:4["}) {
    EXPECT_FALSE(ParsePiece(name).has_value()) << name;
    EXPECT_EQ(WeightOfPiece(name), name);
  }
}

}  // namespace
}  // namespace weft
