// Checks the folded output of `weft graph`: DOT, JSON and the page.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GraphTest : public WeftProgramTest {
 protected:
  std::string Print(const Arguments& flags) const {
    const CommandResult result = Weft(Arguments{"graph"} + kTinyModel + flags);
    EXPECT_TRUE(Works(result));
    return result.out;
  }
};

TEST_F(GraphTest, JsonHasBoxesTheirNodesAndEdges) {
  const nlohmann::json graph = nlohmann::json::parse(Print({"--format=json"}));
  EXPECT_EQ(graph.at("stage"), "compiled");
  EXPECT_EQ(graph.at("depth"), 2);
  const auto& boxes = graph.at("boxes");
  std::string block;
  size_t nodes = graph.at("sources").size(), groups = 0;
  for (size_t b = 0; b < boxes.size(); ++b) {
    const auto& box = boxes[b];
    EXPECT_EQ(box.at("id"), b);
    nodes += box.at("nodes").size();
    double flops = 0;
    for (const auto& node : box.at("nodes")) {
      flops += node.at("flops").get<double>();
      groups += node.contains("group");
      EXPECT_EQ(node.at("types").size(), node.at("outputs").size());
      if (node.at("op") == "attention") {
        EXPECT_THAT(node.at("attrs"), HasSubstr("heads=2"));
      }
    }
    EXPECT_NEAR(box.at("flops"), flops, 1e-6 * flops);
    if (box.at("scope") != "gpt/h.0" || box.at("phase") != "forward") continue;
    EXPECT_EQ(box.at("ops").at("layer_norm"), 2);
    EXPECT_EQ(box.at("parameters").at("count"), 12);
    EXPECT_EQ(box.at("parameters").at("elements"), 12 * 16 * 16 + 13 * 16);
    EXPECT_EQ(box.at("part"), 0);
    block = box.at("nodes")[0].at("scope");
  }
  EXPECT_THAT(block, StartsWith("gpt/h.0/"));
  EXPECT_GT(groups, 0u);
  for (const auto& edge : graph.at("edges")) {
    EXPECT_LT(edge.at("from"), edge.at("to"));
    EXPECT_GT(edge.at("values"), 0);
    EXPECT_GT(edge.at("bytes"), 0);
  }
  const std::string text = Print({});
  EXPECT_EQ(nodes, std::count(text.begin(), text.end(), '\n'));
}

TEST_F(GraphTest, ARecordedProgramIsFoldedToo) {
  const nlohmann::json graph = nlohmann::json::parse(Print({"--format=json", "--stage=recorded", "--depth=1"}));
  EXPECT_EQ(graph.at("stage"), "recorded");
  for (const auto& box : graph.at("boxes")) {
    EXPECT_THAT(box.at("phase"), testing::AnyOf("input", "recorded"));
    for (const auto& node : box.at("nodes")) EXPECT_FALSE(node.contains("group"));
  }
}

TEST_F(GraphTest, ThePageHasTheDataAndNeedsNothingElse) {
  const std::string page = Print({"--format=html"}), json = Print({"--format=json"});
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<script id=\"data\" type=\"application/json\">" + json + "</script>"));
  EXPECT_THAT(page, HasSubstr("function fold("));
  for (const char* placeholder : {"/*DATA*/", "/*SCRIPTS*/", " src=", "@import", "<link", "fetch(", "url(http"}) {
    EXPECT_THAT(page, Not(HasSubstr(placeholder)));
  }
}

TEST_F(GraphTest, DotFoldsUnlessToldNotTo) {
  const std::string folded = Print({"--format=dot"}), all = Print({"--format=dot", "--depth=0"});
  EXPECT_THAT(folded, HasSubstr("[label=\"gpt/h.0\\nforward, "));
  EXPECT_THAT(folded, HasSubstr("  b0 -> b"));
  EXPECT_THAT(all, HasSubstr("[label=\"attention\\n"));
  EXPECT_GT(all.size(), 3 * folded.size());
  EXPECT_EQ(folded, Print({"--format=dot", "--depth=2"}));
}

TEST_F(GraphTest, UsageErrorsAreNamed) {
  EXPECT_TRUE(Fails(Weft({"graph", "--depth=2"}), 2, "--depth: it needs --format=dot or json or html"));
  EXPECT_TRUE(Fails(Weft({"graph", "--format=jsno"}), 2,
                    "--format: 'jsno' is not one of text, dot, json, html, did you mean 'json'?"));
  EXPECT_TRUE(Fails(Weft({"graph", "--format=dot", "--depth=-1"}), 2, "--depth: -1 is not in 0 .. 100"));
  EXPECT_TRUE(
      Fails(Weft({"graph", "--memory", "--format=dot", "--depth=1"}), 2, "--format: it has no effect with --memory"));
}

}  // namespace
}  // namespace weft
