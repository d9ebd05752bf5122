// Reads any bytes as a GGUF file, and its metadata as a tokenizer.
#include <sys/mman.h>
#include <unistd.h>

#include "weft/base/status.h"
#include "weft/core/gguf.h"
#include "weft/tests/fuzz/files/target.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

template <class T>
std::string Bytes(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}
std::string Text(const std::string& text) { return Bytes<uint64_t>(text.size()) + text; }
std::string List(uint32_t type, uint64_t count, const std::string& values) {
  return Bytes<uint32_t>(9) + Bytes(type) + Bytes(count) + values;
}

std::string File(uint64_t keys, const std::string& metadata, uint64_t tensors, const std::string& infos, size_t bytes) {
  std::string file = "GGUF" + Bytes<uint32_t>(3) + Bytes(tensors) + Bytes(keys) + metadata + infos;
  file.resize((file.size() + 31) / 32 * 32);
  return file + std::string(bytes, '\x01');
}

std::string Key(const std::string& name, const std::string& value) { return Text("tokenizer.ggml." + name) + value; }
std::string TextValue(const std::string& text) { return Bytes<uint32_t>(8) + Text(text); }

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  const std::string number = Text("n") + Bytes<uint32_t>(4) + Bytes<uint32_t>(7);
  const std::string words = List(8, 4, Text("<s>") + Text("a") + Text("b") + Text("ab"));
  const std::string types = List(5, 4, Bytes<int32_t>(3) + Bytes<int32_t>(1) + Bytes<int32_t>(1) + Bytes<int32_t>(1));
  const std::string scores = List(6, 4, Bytes(0.f) + Bytes(-1.f) + Bytes(-2.f) + Bytes(-3.f));
  const std::string begin = Key("bos_token_id", Bytes<uint32_t>(4) + Bytes<uint32_t>(0));
  return {
      File(0, "", 0, "", 0),
      File(1, number, 1,
           Text("w") + Bytes<uint32_t>(2) + Bytes<uint64_t>(32) + Bytes<uint64_t>(2) + Bytes<uint32_t>(8) +
               Bytes<uint64_t>(0),
           68),
      File(0, "", 1, Text("h") + Bytes<uint32_t>(1) + Bytes<uint64_t>(4) + Bytes<uint32_t>(1) + Bytes<uint64_t>(0), 8),
      File(6,
           Key("model", TextValue("gpt2")) + Key("pre", TextValue("gpt-2")) + Key("tokens", words) +
               Key("token_type", types) + Key("merges", List(8, 1, Text("a b"))) + begin,
           0, "", 0),
      File(4, Key("model", TextValue("llama")) + Key("tokens", words) + Key("scores", scores) + begin, 0, "", 0),
      File(3, Key("model", TextValue("bert")) + Key("tokens", words) + begin, 0, "", 0),
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("weft", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  WEFT_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  const auto opened = weft::GgufFile::Open(path);
  weft::accepted = opened.ok();
  if (!opened.ok()) return 0;
  size_t bytes = 0;
  volatile uint32_t sum = 0;  // volatile, so that all bytes are really read
  for (const auto& [name, tensor] : opened->tensors()) {
    WEFT_CHECK(tensor.type.shape.valid());
    bytes += tensor.type.bytes();
    for (size_t i = 0; i < tensor.type.bytes(); ++i) sum = sum + static_cast<uint32_t>(tensor.data[i]);
  }
  WEFT_CHECK(bytes <= 2 * size);  // f16 is read as f32, twice its size
  if (const auto tokenizer = weft::TokenizerOfGguf(opened->metadata()); tokenizer.ok()) {
    (void)weft::ReadTokenizerJson(tokenizer->tokenizer);
  }
  return 0;
}
