// Tests the config.json that `weft train gpt` writes without flags.
#include <string>

#include "weft/base/checksum.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using DefaultConfigTest = WeftProgramTest;

TEST_F(DefaultConfigTest, TheDefaultsAreThoseOfTheReadme) {
  EXPECT_TRUE(Works(Weft({"train", "gpt", "--steps=0", "--eval-every=0", "--sample-length=0", "--out=run"})));
  EXPECT_EQ(Read("run/config.json"), R"({
  "command": "train gpt",
  "data": "",
  "validation": "",
  "tokenizer": "",
  "vocabulary": 8000,
  "documents": "across",
  "window_positions": "anywhere",
  "init": "",
  "ignore_extra_tensors": false,
  "context": 64,
  "layers": 4,
  "heads": 4,
  "width": 128,
  "feed_forward": 0,
  "dropout": 0.0,
  "activation_dropout": 0.0,
  "tied_head": true,
  "head_bias": false,
  "result_norm": false,
  "residual": "sequential",
  "embedding_scale": 1.0,
  "residual_scale": 1.0,
  "logits_scale": 1.0,
  "logits_cap": 0.0,
  "layer_names": "gpt2",
  "activation": "gelu-tanh",
  "gated": false,
  "pre_norm": true,
  "norm": "layer-norm",
  "norm_epsilon": 1e-05,
  "norm_bias": true,
  "norm_plus_one": false,
  "bias": true,
  "positions": "auto",
  "initializer": "default",
  "key_value_heads": 0,
  "query_width": 0,
  "key_width": 0,
  "value_width": 0,
  "score": "dot",
  "score_width": 0,
  "head_merge": "project",
  "window": "0",
  "stride": "0",
  "dilation": "1",
  "distance_bias": "none",
  "buckets": 32,
  "max_distance": 128,
  "soft_cap": 0.0,
  "score_scale": 0.0,
  "query_key_norm": "none",
  "rotary": "none",
  "rotary_base": 10000.0,
  "rotary_width": 0,
  "rotary_layers": "1",
  "layer_rotary_base": "0",
  "rotary_scaling": "none",
  "rotary_factor": 2.0,
  "rotary_context": 8192,
  "rotary_slow": 1.0,
  "rotary_fast": 0.0,
  "rotary_gain": 0.0,
  "ablate": "none",
  "batch": 12,
  "eval_batches": 200,
  "input_noise": 0.0,
  "lora_rank": 0,
  "lora_alpha": 16.0,
  "lora_dropout": 0.0,
  "lora_targets": "*.c_attn",
  "epochs": 0,
  "steps": 0,
  "schedule": "cosine",
  "learning_rate": 0.001,
  "min_learning_rate": 0.0001,
  "warmup_steps": 100,
  "decay_steps": 0.2,
  "plateau_factor": 0.1,
  "plateau_patience": 10,
  "plateau_threshold": 0.0001,
  "eval_every": 0,
  "checkpoint_every": 500,
  "log_every": 100,
  "threads": 0,
  "precision": "f32",
  "memory_budget": 0,
  "seed": 1,
  "micro_batches": 1,
  "gradient_sums": "f32",
  "keep": 2,
  "ema": 0.0,
  "metric": "val_loss",
  "save_best": false,
  "patience": 0,
  "insights": false,
  "tensorboard": false,
  "max_skipped": 10,
  "skip_deviations": 0.0,
  "optimizer": "adamw",
  "beta1": 0.9,
  "beta2": 0.99,
  "epsilon": 1e-08,
  "weight_decay": 0.1,
  "clip": 1.0,
  "clip_value": 0.0,
  "groups": "",
  "sample_length": 0,
  "sample_temperature": 0.8,
  "model": {
    "model_type": "gpt2",
    "architectures": [
      "GPT2LMHeadModel"
    ],
    "vocab_size": 73,
    "n_positions": 64,
    "n_embd": 128,
    "n_layer": 4,
    "n_head": 4,
    "n_inner": null,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "layer_norm_epsilon": 1e-05,
    "tie_word_embeddings": true
  },
  "version": "0.1.0",
  "files": {
    "tokenizer.json": ")" + Checksum(Read("run/tokenizer.json")) +
                                         R"("
  }
}
)");
  const std::string tokenizer = Read("run/tokenizer.json");
  EXPECT_EQ(std::count(tokenizer.begin(), tokenizer.end(), '"'), 2 * (3 + 73)) << "the King James Bible has 73";
}

}  // namespace
}  // namespace weft
