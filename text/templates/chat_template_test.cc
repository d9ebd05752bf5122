#include "weft/text/templates/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class ChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/additional_chat_templates");
    Write("tokenizer.json",
          R"({"model":{"type":"BPE","vocab":{"<s>":0,"</s>":1,"<":2,"s":3,">":4,"h":5,"i":6},"merges":[]},)"
          R"("added_tokens":[{"id":0,"content":"<s>","special":true},{"id":1,"content":"</s>","special":true}],)"
          R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})");
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  // Returns what the folder's template makes of one message.
  std::string Text(const std::string& content = "hi") const {
    const auto tokenizer = LoadTokenizer(folder_);
    const auto chat = ReadChatTemplate(folder_ + "/tokenizer.json", **tokenizer);
    if (!chat.ok()) return std::string(chat.status().message().substr(folder_.size() + 1));
    if (!chat->has_value()) return "none";
    const Json message = {{"role", "user"}, {"content", content}};
    const auto text = (*chat)->Render(Json::array({message}), true);
    return text.ok() ? *text : std::string(text.status().message().substr(folder_.size() + 1));
  }

  const std::string folder_ = testing::TempDir() + "chat_template";
};

TEST_F(ChatTemplateTest, FilesAreTakenInTheOrderOfTransformers) {
  EXPECT_EQ(Text(), "none");
  Write("chat_template.json", R"({"chat_template": "e{{ messages[0].content }}"})");
  EXPECT_EQ(Text(), "ehi");
  Write("tokenizer_config.json", R"({"chat_template": "d{{ bos_token }}{{ pad_token }}"})");
  EXPECT_EQ(Text(), "d<s>");
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_EQ(Text(), "tokenizer_config.json: no template is called default, but there are rag");
  Write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "c"}]})");
  EXPECT_EQ(Text(), "c");
  Write("additional_chat_templates/default.jinja", "b");
  EXPECT_EQ(Text(), "b");
  Write("chat_template.jinja", "a{{ add_generation_prompt }}{{ tools }}");
  EXPECT_EQ(Text(), "aTrueNone");
  Write("chat_template.jinja", "\n{{ nothing.a }}");
  EXPECT_EQ(Text(), "chat_template.jinja: line 2: the undefined value 'nothing' has no attribute 'a'");
  fs::remove(folder_ + "/chat_template.jinja");
  fs::remove_all(folder_ + "/additional_chat_templates");
  Write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_EQ(Text(),
            "tokenizer_config.json: chat_template: wanted a text, or a list of objects with a name and a template");
}

// A tokenizer of no class in particular has only the tokens that its files name, as in transformers.
TEST_F(ChatTemplateTest, SpecialTokensAreVariables) {
  Write("chat_template.jinja", "{{ bos_token }}|{{ eos_token }}");
  EXPECT_EQ(Text(), "<s>|</s>");
  Write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(Text(), "|</s>");
}

TEST_F(ChatTemplateTest, MarkedTextsOfSpecialTokensAreOrdinaryText) {
  const auto tokenizer = LoadTokenizer(folder_);
  const std::string marked = MarkSpecialTokens("h<s>i", **tokenizer);
  EXPECT_EQ(*EncodeMarked("<s>" + marked + "</s>", **tokenizer), (std::vector<int32_t>{0, 5, 2, 3, 4, 6, 1}));
  EXPECT_EQ(*(*tokenizer)->Encode("<s>h<s>i</s>"), (std::vector<int32_t>{0, 5, 0, 6, 1}));
  // Marks that a person types have no effect.
  EXPECT_EQ(MarkSpecialTokens(marked, **tokenizer), marked);
}

}  // namespace
}  // namespace weft
