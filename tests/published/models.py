"""The models that draw.py writes: for each folder, a class of transformers, its configuration and, if there is a third
element, changes of the written config.json that mean the same model."""
import transformers as t

ABSENT = "(absent)"

GPT2 = dict(vocab_size=30, n_positions=16, n_embd=16, n_layer=2, n_head=2)
LLAMA = dict(vocab_size=30, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=16)
NEOX = dict(vocab_size=30, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=16)
GPTJ = dict(vocab_size=30, n_positions=16, n_embd=16, n_layer=2, n_head=2, n_inner=24, rotary_dim=4)
PHI = dict(vocab_size=30, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
           max_position_embeddings=16)
FALCON = dict(vocab_size=30, hidden_size=16, ffn_hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
              max_position_embeddings=16)
OPT = dict(vocab_size=30, hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2,
           max_position_embeddings=16)
BLOOM = dict(vocab_size=30, hidden_size=16, n_layer=2, n_head=4)
IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)  # if the class's own are not below vocab_size
BERT = dict(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=16)
ROBERTA = dict(BERT, pad_token_id=0, type_vocab_size=1, max_position_embeddings=18)  # no text has the padding token 0
DISTILBERT = dict(vocab_size=30, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=16)
ELECTRA = dict(BERT, embedding_size=8)
MPNET = dict(BERT, max_position_embeddings=18)
ALBERT = dict(BERT, embedding_size=8, num_hidden_layers=3)
MODERN = dict(vocab_size=30, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
              max_position_embeddings=16, local_attention=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
              cls_token_id=1, sep_token_id=2)
VIT = dict(image_size=8, patch_size=4, num_channels=1, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
           intermediate_size=24, num_labels=3, attention_probs_dropout_prob=0.0)
SEQUENCES = dict(vocab_size=30, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
                 decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=16,
                 pad_token_id=0, eos_token_id=2, bos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=2)
T5 = dict(vocab_size=30, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
          relative_attention_max_distance=9, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0, n_positions=16)
# A third element has changes of config.json that mean the same model: ABSENT removes a key.
MODELS = {
    "gpt2": (t.GPT2LMHeadModel, GPT2),
    "llama": (t.LlamaForCausalLM, LLAMA),
    "llama_tied": (t.LlamaForCausalLM, {**LLAMA, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "llama_wide": (t.LlamaForCausalLM, {**LLAMA, "head_dim": 6, "attention_bias": True, "rope_parameters": {
        "rope_type": "linear", "rope_theta": 100.0, "factor": 4.0}}),
    "llama3": (t.LlamaForCausalLM, {**LLAMA, "head_dim": 8, "mlp_bias": True, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 0.5, "high_freq_factor": 2.0,
        "original_max_position_embeddings": 8}}),
    "llama_yarn": (t.LlamaForCausalLM, {**LLAMA, "head_dim": 8, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 8,
        "beta_fast": 4.0, "beta_slow": 0.5}}),
    "mistral": (t.MistralForCausalLM, {**LLAMA, "sliding_window": 4}),
    "mistral_wide": (t.MistralForCausalLM, {**LLAMA, "sliding_window": None, "head_dim": 6}),
    "qwen2": (t.Qwen2ForCausalLM, LLAMA),
    "qwen2_windows": (t.Qwen2ForCausalLM, {**LLAMA, "use_sliding_window": True, "sliding_window": 4,
                                           "max_window_layers": 1, "tie_word_embeddings": True}),
    "qwen3": (t.Qwen3ForCausalLM, {**LLAMA, "head_dim": 8}),
    "qwen3_windows": (t.Qwen3ForCausalLM, {**LLAMA, "head_dim": 4, "attention_bias": True, "use_sliding_window": True,
                                           "sliding_window": 4, "max_window_layers": 1}),
    "smollm3": (t.SmolLM3ForCausalLM, {**LLAMA, "no_rope_layers": [1, 0], "use_sliding_window": True,
                                       "sliding_window": 4, **IDS}),
    "olmo2": (t.Olmo2ForCausalLM, {**LLAMA, **IDS}),
    "granite": (t.GraniteForCausalLM, {**LLAMA, "embedding_multiplier": 3.0, "logits_scaling": 4.0,
                                       "residual_multiplier": 0.5, "attention_multiplier": 0.25}),
    "gemma": (t.GemmaForCausalLM, {**LLAMA, "head_dim": 6, **IDS}),
    "gemma2": (t.Gemma2ForCausalLM, {**LLAMA, "head_dim": 6, "query_pre_attn_scalar": 9, "sliding_window": 4,
                                     "final_logit_softcapping": 3.0, "attn_logit_softcapping": 2.0, **IDS}),
    "gemma3": (t.Gemma3ForCausalLM, {**LLAMA, "head_dim": 6, "query_pre_attn_scalar": 9, "sliding_window": 4,
                                     "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}, **IDS}),
    "gemma3_old": (t.Gemma3ForCausalLM, {**LLAMA, "head_dim": 4, "query_pre_attn_scalar": 4, "sliding_window": 4,
                                         "final_logit_softcapping": 3.0, "layer_types": [
        "sliding_attention", "full_attention"], "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}, **IDS}, {
        "layer_types": ABSENT, "_sliding_window_pattern": ABSENT, "sliding_window_pattern": 2, "rope_theta": 50.0,
        "rope_parameters": ABSENT, "rope_scaling": {"rope_type": "linear", "factor": 4.0},
        "rope_local_base_freq": 20.0}),
    "phi3": (t.Phi3ForCausalLM, {**LLAMA, "sliding_window": 4, **IDS}),
    "stablelm": (t.StableLmForCausalLM, {**LLAMA, "use_qkv_bias": True, "rope_parameters": {
        "rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}}),
    "stablelm_parallel": (t.StableLmForCausalLM, {**LLAMA, "num_attention_heads": 2, "use_parallel_residual": True}),
    "gpt_neox": (t.GPTNeoXForCausalLM, NEOX),
    "gpt_neox_one": (t.GPTNeoXForCausalLM, {**NEOX, "use_parallel_residual": False, "attention_bias": False,
                                            "tie_word_embeddings": True}),
    "gptj": (t.GPTJForCausalLM, GPTJ),
    "gptj_tied": (t.GPTJForCausalLM, {**GPTJ, "rotary_dim": 8, "tie_word_embeddings": True}),
    "phi": (t.PhiForCausalLM, PHI),
    "phi_norms": (t.PhiForCausalLM, {**PHI, "num_attention_heads": 4, "num_key_value_heads": 2, "qk_layernorm": True,
                                     "rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0,
                                                         "partial_rotary_factor": 1.0}}),
    "falcon": (t.FalconForCausalLM, {**FALCON, **IDS}),
    "falcon_groups": (t.FalconForCausalLM, {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "bias": True,
                                            "tie_word_embeddings": False, **IDS}),
    "falcon_one_norm": (t.FalconForCausalLM, {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2,
                                              "num_ln_in_parallel_attn": 1, **IDS}),
    "falcon_sequential": (t.FalconForCausalLM, {**FALCON, "parallel_attn": False, "multi_query": False, "bias": True,
                                                **IDS}),
    "opt": (t.OPTForCausalLM, {**OPT, **IDS}),
    "opt_post_norm": (t.OPTForCausalLM, {**OPT, "do_layer_norm_before": False, "enable_bias": False,
                                         "tie_word_embeddings": False, **IDS}),
    "bloom": (t.BloomForCausalLM, BLOOM),
    "bloom_untied": (t.BloomForCausalLM, {**BLOOM, "n_head": 2, "tie_word_embeddings": False},
                     {"hidden_size": ABSENT, "n_embed": 16, "n_head": ABSENT, "num_attention_heads": 2}),
    "mixtral": (t.MixtralForCausalLM, {**LLAMA, "num_local_experts": 4, **IDS}),
    "mixtral_one": (t.MixtralForCausalLM, {**LLAMA, "num_local_experts": 3, "num_experts_per_tok": 1, "head_dim": 6,
                                           "sliding_window": 4, **IDS}),
    "bert": (t.BertModel, BERT),
    "bert_masked": (t.BertForMaskedLM, BERT),
    "bert_next": (t.BertForNextSentencePrediction, BERT),
    "bert_both": (t.BertForPreTraining, BERT),
    "bert_text": (t.BertForSequenceClassification, {**BERT, "num_labels": 3}),
    "bert_number": (t.BertForSequenceClassification, {**BERT, "num_labels": 1}),
    "bert_words": (t.BertForTokenClassification, {**BERT, "num_labels": 3}),
    "bert_answer": (t.BertForQuestionAnswering, BERT),
    "bert_choice": (t.BertForMultipleChoice, BERT),
    "roberta": (t.RobertaModel, ROBERTA),
    "roberta_masked": (t.RobertaForMaskedLM, ROBERTA),
    "roberta_text": (t.RobertaForSequenceClassification, {**ROBERTA, "num_labels": 3}),
    "roberta_words": (t.RobertaForTokenClassification, {**ROBERTA, "num_labels": 3}),
    "roberta_answer": (t.RobertaForQuestionAnswering, ROBERTA),
    "roberta_choice": (t.RobertaForMultipleChoice, ROBERTA),
    "xlm_roberta": (t.XLMRobertaForMaskedLM, ROBERTA),
    "camembert": (t.CamembertForSequenceClassification, {**ROBERTA, "num_labels": 3}),
    "distilbert": (t.DistilBertModel, DISTILBERT),
    "distilbert_masked": (t.DistilBertForMaskedLM, DISTILBERT),
    "distilbert_text": (t.DistilBertForSequenceClassification, {**DISTILBERT, "num_labels": 3}),
    "distilbert_words": (t.DistilBertForTokenClassification, {**DISTILBERT, "num_labels": 3}),
    "electra": (t.ElectraModel, ELECTRA),
    "electra_masked": (t.ElectraForMaskedLM, ELECTRA),
    "electra_replaced": (t.ElectraForPreTraining, {**ELECTRA, "embedding_size": 16}),
    "electra_text": (t.ElectraForSequenceClassification, {**ELECTRA, "num_labels": 3}),
    "mpnet": (t.MPNetModel, MPNET),
    "mpnet_masked": (t.MPNetForMaskedLM, MPNET),
    "mpnet_text": (t.MPNetForSequenceClassification, {**MPNET, "num_labels": 3}),
    "albert": (t.AlbertModel, ALBERT),
    "albert_masked": (t.AlbertForMaskedLM, ALBERT),
    "albert_both": (t.AlbertForPreTraining, {**ALBERT, "embedding_size": 16}),
    "albert_text": (t.AlbertForSequenceClassification, {**ALBERT, "num_labels": 3}),
    "albert_words": (t.AlbertForTokenClassification, {**ALBERT, "num_labels": 3}),
    "modernbert": (t.ModernBertModel, MODERN),
    "modernbert_masked": (t.ModernBertForMaskedLM, MODERN),
    "modernbert_biases": (t.ModernBertForMaskedLM, {
        **MODERN, "layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2, "norm_bias": True,
        "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "decoder_bias": False,
        "classifier_activation": "silu", "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 100.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}}),
    "modernbert_text": (t.ModernBertForSequenceClassification, {**MODERN, "num_labels": 3}),
    "modernbert_mean": (t.ModernBertForSequenceClassification, {**MODERN, "num_labels": 3, "classifier_pooling": "mean"}),
    "modernbert_words": (t.ModernBertForTokenClassification, {**MODERN, "num_labels": 3}),
    "modernbert_choice": (t.ModernBertForMultipleChoice, MODERN),
    "vit": (t.ViTForImageClassification, VIT),
    "vit_colour": (t.ViTForImageClassification, {**VIT, "num_channels": 3, "image_size": [8, 12]}),
    "deit": (t.DeiTForImageClassification, {**VIT, "num_channels": 3}),
    "deit_teacher": (t.DeiTForImageClassificationWithTeacher, {**VIT, "num_channels": 3}),
    "marian": (t.MarianMTModel, {**SEQUENCES, "scale_embedding": True}),
    "pegasus": (t.PegasusForConditionalGeneration, SEQUENCES),
    "blenderbot": (t.BlenderbotForConditionalGeneration, SEQUENCES),
    "bart": (t.BartForConditionalGeneration, {**SEQUENCES, "scale_embedding": True}),
    "mbart": (t.MBartForConditionalGeneration, SEQUENCES),
    "m2m_100": (t.M2M100ForConditionalGeneration, SEQUENCES),
    "t5": (t.T5ForConditionalGeneration, T5),
    "t5_gated": (t.T5ForConditionalGeneration, {**T5, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 1,
                                                "tie_word_embeddings": False}),
    "t5_untied": (t.T5ForConditionalGeneration, {**T5, "feed_forward_proj": "gated-silu", "tie_word_embeddings": False}),
    "mt5": (t.MT5ForConditionalGeneration, T5),
    "umt5": (t.UMT5ForConditionalGeneration, T5),
}
