// Reads any text as a config.json, of the kind that the first byte selects. If the configuration can be read and
// written, reading it again must give the same configuration.
#include <nlohmann/json.hpp>

#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/tests/fuzz/files/target.h"

namespace weft {
namespace {

// Reports whether `json` can be read. If the configuration can be written, checks that reading and writing it once more
// gives the same JSON.
template <class Config, class Read, class Write>
bool RoundTrip(const nlohmann::ordered_json& json, Read read, Write write) {
  const absl::StatusOr<Config> config = read(json);
  if (!config.ok()) return false;
  const absl::StatusOr<nlohmann::ordered_json> written = write(*config);
  if (!written.ok()) return true;
  const absl::StatusOr<Config> again = read(*written);
  WEFT_CHECK(again.ok());
  const absl::StatusOr<nlohmann::ordered_json> twice = write(*again);
  WEFT_CHECK(twice.ok() && *twice == *written);
  return true;
}

bool Read(uint8_t kind, const nlohmann::ordered_json& json) {
  const auto write = [](const auto& config) { return ToJson(config); };
  switch (kind % 7) {
    case 0:
      return RoundTrip<GptConfig>(json, ConfigFromJson<GptConfig>, write);
    case 1:
      return RoundTrip<GptConfig>(json, NanoGptConfigFromJson, ToNanoGptJson);
    case 2:
      return RoundTrip<BertConfig>(json, ConfigFromJson<BertConfig>, write);
    case 3:
      return RoundTrip<VitConfig>(json, ConfigFromJson<VitConfig>, write);
    case 4:
      return RoundTrip<TransformerConfig>(json, ConfigFromJson<TransformerConfig>, write);
    case 5:
      return RoundTrip<TransformerConfig>(json, CTranslate2ConfigFromJson, ToCTranslate2Json);
    default:
      return LabelsFromJson(json).ok();
  }
}

}  // namespace

bool accepted = false;

std::vector<std::string> Seeds() {
  const auto seed = [](char kind, const std::string& text) { return std::string(1, kind) + text; };
  return {
      seed(0, R"({"model_type":"gpt2","n_layer":2,"n_head":2,"n_embd":8,"n_positions":16,"vocab_size":32})"),
      seed(0, R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
              R"("hidden_size":16,"intermediate_size":32,"max_position_embeddings":64,"vocab_size":32,)"
              R"("rms_norm_eps":1e-5,"rope_theta":10000.0,"tie_word_embeddings":false})"),
      seed(1, R"({"n_layer":2,"n_head":2,"n_embd":8,"block_size":16,"bias":false,"vocab_size":32,"dropout":0.0})"),
      seed(2, R"({"model_type":"bert","num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,)"
              R"("intermediate_size":16,"vocab_size":32,"type_vocab_size":2,"max_position_embeddings":16})"),
      seed(2, R"({"model_type":"modernbert","num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,)"
              R"("intermediate_size":16,"vocab_size":32,"local_attention":4,"global_rope_theta":100.0,)"
              R"("rope_parameters":{"full_attention":{"rope_theta":50.0},"sliding_attention":{"rope_theta":20.0}},)"
              R"("layer_types":["full_attention","sliding_attention"],"max_position_embeddings":16})"),
      seed(2, R"({"model_type":"albert","num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,)"
              R"("embedding_size":4,"intermediate_size":16,"vocab_size":32,"max_position_embeddings":16})"),
      seed(3, R"({"model_type":"vit","num_hidden_layers":2,"num_attention_heads":2,"hidden_size":8,)"
              R"("intermediate_size":16,"image_size":8,"patch_size":4,"num_channels":1,"id2label":{"0":"a","1":"b"}})"),
      seed(4, R"({"model_type":"transformer","vocab_size":32,"d_model":8,"encoder_layers":1,"decoder_layers":1,)"
              R"("encoder_attention_heads":2,"decoder_attention_heads":2,"encoder_ffn_dim":16,"decoder_ffn_dim":16})"),
      seed(5, R"({"d_model":8,"num_heads":2,"ffn_dim":16,"encoder_layers":1,"decoder_layers":1,"vocab_size":32})"),
      seed(6, R"({"id2label":{"0":"no","1":"yes"}})"),
  };
}

}  // namespace weft

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::accepted = false;
  if (size == 0) return 0;
  const auto json = weft::ParseJsonObject({reinterpret_cast<const char*>(data) + 1, size - 1});
  weft::accepted = json.ok() && weft::Read(data[0], *json);
  return 0;
}
