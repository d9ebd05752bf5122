// Reads any bytes as the files of a tokenizer of the kind that the first byte selects. A zero byte separates two files.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "weft/base/status.h"
#include "weft/tests/fuzz/files/target.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kFiles[] = {
    {"tokenizer.json", nullptr},  {"vocab.txt", nullptr},        {"tokenizer.bin", nullptr},
    {"tokenizer.model", nullptr}, {"encoder.json", "vocab.bpe"}, {"vocab.txt", "tokenizer_config.json"},
};
constexpr uint8_t kTokenList = std::size(kFiles), kKinds = kTokenList + 1;

// A folder that is deleted when the program ends.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("weft_fuzz_" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  const fs::path path;
};

bool Try(const Tokenizer& tokenizer) {
  for (const char* text : {"", "The quick brown fox, 12 times!", "na\xc3\xafve \xe2\x82\xac\xf0\x9f\x99\x82\n\t a"}) {
    const absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(text);
    if (!ids.ok()) continue;
    for (const int32_t id : *ids) WEFT_CHECK(id >= 0 && id < tokenizer.vocabulary_size());
    WEFT_CHECK(tokenizer.Decode(*ids).ok() && tokenizer.DecodeWithSpecial(tokenizer.Wrap(*ids).ids).ok());
  }
  return true;
}

bool LoadFiles(uint8_t kind, absl::string_view bytes) {
  static const Folder folder;
  for (const fs::path& old : fs::directory_iterator(folder.path)) fs::remove(old);
  for (const char* name : kFiles[kind]) {
    if (name == nullptr) break;
    const size_t end = kFiles[kind][1] == nullptr ? bytes.size() : std::min(bytes.find('\0'), bytes.size());
    std::ofstream(folder.path / name, std::ios::binary) << bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  const auto tokenizer = LoadTokenizer(folder.path.string());
  return tokenizer.ok() && Try(**tokenizer);
}

std::string Number(uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

// Returns a Protocol Buffers field that holds up to 127 bytes.
std::string Bytes(int field, const std::string& bytes) {
  return std::string(1, static_cast<char>(field << 3 | 2)) + std::string(1, static_cast<char>(bytes.size())) + bytes;
}

std::string SentencePieceModel() {
  std::string model;
  const std::pair<const char*, char> pieces[] = {{"<unk>", 2}, {"<s>", 3}, {"</s>", 3}, {"\xe2\x96\x81", 1},
                                                 {"a", 1},     {"b", 1},   {"ab", 1}};
  for (const auto& [text, type] : pieces) {
    const std::string score = "\x15" + std::string("\0\0\x80\xbf", 4), kind = std::string("\x18") + type;
    model += Bytes(1, Bytes(1, text) + score + kind);
  }
  const std::string unigram = std::string("\x18\x01", 2);
  return model + Bytes(2, unigram) + Bytes(3, Bytes(1, "identity"));
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  const auto seed = [](uint8_t kind, const std::string& bytes) {
    return std::string(1, static_cast<char>(kind)) + bytes;
  };
  const std::string word_pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfox\n##es\na\n##b\n!\n";
  std::string llama2c = Number(8);
  for (const char* piece : {"<unk>", "<s>", "</s>", " ", "a", "b", "ab"}) {
    llama2c += Number(0xbf800000) + Number(static_cast<uint32_t>(std::strlen(piece))) + piece;
  }
  return {
      seed(0, R"({"type":"byte"})"),
      seed(0, R"({"type":"character","characters":["a","b"," ","\n"]})"),
      seed(0, R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},)"
              R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})"),
      seed(0, R"({"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2,"[CLS]":3,"[SEP]":4},)"
              R"("unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100},)"
              R"("normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)"
              R"("strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"}})"),
      seed(
          0,
          R"({"model":{"type":"BPE","vocab":{"<unk>":0,"a":1,"\u2581":2,"\u2581a":3,"<0x41>":4},"merges":[["\u2581","a"]],)"
          R"("unk_token":"<unk>","fuse_unk":true,"byte_fallback":true},"normalizer":{"type":"Sequence","normalizers":[)"
          R"({"type":"Prepend","prepend":"\u2581"},{"type":"Replace","pattern":{"Regex":" +"},"content":"\u2581"},)"
          R"({"type":"NFKD"},{"type":"StripAccents"},{"type":"Strip","strip_left":true,"strip_right":true}]},)"
          R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},)"
          R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})"),
      seed(
          0,
          R"({"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["a",-1.5],["\u2581a",-2]]},)"
          R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAAAEAAAAAAAAIAA="},"pre_tokenizer":)"
          R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":"\u2581",)"
          R"("prepend_scheme":"always","split":true}]},"decoder":{"type":"Metaspace","replacement":"\u2581"}})"),
      seed(
          0,
          R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"pre_tokenizer":{"type":"Sequence",)"
          R"("pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s)|[^\\s\\p{L}]?\\w+|\\s+(?!\\S)|x"},)"
          R"("behavior":"MergedWithNext","invert":true},{"type":"Digits"},{"type":"Punctuation","behavior":"Removed"},)"
          R"({"type":"ByteLevel","use_regex":false}]},"decoder":{"type":"ByteLevel"}})"),
      seed(1, word_pieces),
      seed(2, llama2c),
      seed(3, SentencePieceModel()),
      seed(4, std::string(R"({"a":0,"b":1,"ab":2,"\u0120a":3})") + '\0' + "#version: 0.2\na b\n"),
      seed(5, word_pieces + '\0' + R"({"do_lower_case":false,"tokenize_chinese_chars":true})"),
      seed(kTokenList, "<unk>\n<s>\n</s>\na\nb\nab\n"),
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::accepted = false;
  if (size == 0) return 0;
  const uint8_t kind = data[0] % weft::kKinds;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (kind == weft::kTokenList) {
    const auto list = weft::ReadTokenList(bytes);
    weft::accepted = list.ok() && weft::Try(**list);
  } else {
    weft::accepted = weft::LoadFiles(kind, bytes);
  }
  return 0;
}
