"""Tiny random checkpoints in the layouts of fairseq, Marian (OPUS-MT) and M2M-100, with the logits of PyTorch.

    python3 test/vectors/make_checkpoints.py        (Debian package python3-torch)

writes the folders fairseq/, marian/ and m2m/ beside this script. No released weights are used: names, shapes and
configurations are those of the public documentation of fairseq and transformers, the numbers are random. The logits in
logits.json come from the forward pass below, which is written from that documentation in plain PyTorch and float64, and
shares nothing with the code that is tested. `source` and `previous` are ids of the checkpoint's own vocabulary.
"""

import json
import math
import struct
import sys
import types
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path

import torch
import torch.nn.functional as F

HERE = Path(__file__).parent
SIZE = dict(width=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=1)


def main():
    torch.manual_seed(17)
    fairseq(HERE / "fairseq")
    marian(HERE / "marian")
    m2m(HERE / "m2m")


# The forward pass: batch of one sentence, [T, D].

def logits(state, *, source, previous, heads, norm, activation, positions, scale, bias=None, names=""):
    get = lambda name: state[names + name].double()
    width = get("encoder.embed_tokens.weight").shape[1]

    def embedded(side, ids):
        table = get(f"{side}.embed_tokens.weight")
        return table[ids] * (math.sqrt(width) if scale else 1) + positions(len(ids), width)

    def layer_norm(name, x):
        return F.layer_norm(x, (width,), get(f"{name}.weight"), get(f"{name}.bias"))

    def linear(name, x):
        return F.linear(x, get(f"{name}.weight"), get(f"{name}.bias"))

    def attention(name, x, memory, causal=False):
        size = width // heads
        q, k, v = (linear(f"{name}.{part}", of).view(-1, heads, size).transpose(0, 1)
                   for part, of in [("q_proj", x), ("k_proj", memory), ("v_proj", memory)])
        scores = q @ k.transpose(1, 2) / math.sqrt(size)
        if causal:
            hidden = torch.ones(len(x), len(memory)).triu(1).bool()
            scores = scores.masked_fill(hidden, float("-inf"))
        return linear(f"{name}.out_proj", (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(x), width))

    def block(name, x, inner):
        return x + inner(layer_norm(name, x)) if norm == "pre" else layer_norm(name, x + inner(x))

    def ffn(name, x):
        return linear(f"{name}.fc2", activation(linear(f"{name}.fc1", x)))

    x = embedded("encoder", source)
    for l in range(SIZE["encoder_layers"]):
        name = f"encoder.layers.{l}"
        x = block(f"{name}.self_attn_layer_norm", x, lambda h: attention(f"{name}.self_attn", h, h))
        x = block(f"{name}.final_layer_norm", x, lambda h: ffn(name, h))
    memory = layer_norm("encoder.layer_norm", x) if norm == "pre" else x
    x = embedded("decoder", previous)
    for l in range(SIZE["decoder_layers"]):
        name = f"decoder.layers.{l}"
        x = block(f"{name}.self_attn_layer_norm", x, lambda h: attention(f"{name}.self_attn", h, h, causal=True))
        x = block(f"{name}.encoder_attn_layer_norm", x, lambda h: attention(f"{name}.encoder_attn", h, memory))
        x = block(f"{name}.final_layer_norm", x, lambda h: ffn(name, h))
    x = layer_norm("decoder.layer_norm", x) if norm == "pre" else x
    out = x @ get("decoder.output_projection.weight").T
    return out if bias is None else out + bias.double()


def fairseq_positions(count, width):
    """SinusoidalPositionalEmbedding of fairseq, also of M2M-100: from the padding's id 1 + 1."""
    half = width // 2
    rates = torch.exp(torch.arange(half).double() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(2, 2 + count).double()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def marian_positions(count, width):
    """MarianSinusoidalPositionalEmbedding: from 0, pos / 10000^(2 (j // 2) / dim), sines of even j, then cosines of odd."""
    table = torch.tensor([[p / 10000 ** (2 * (j // 2) / width) for j in range(width)] for p in range(count)], dtype=torch.float64)
    return torch.cat([table[:, 0::2].sin(), table[:, 1::2].cos()], 1)


# Parameters.

def parameters(prefix=""):
    width, ffn = SIZE["width"], SIZE["ffn"]
    state = OrderedDict()

    def linear(name, out, size):
        state[f"{prefix}{name}.weight"] = torch.randn(out, size) * 0.4
        state[f"{prefix}{name}.bias"] = torch.randn(out) * 0.2

    def norm(name):
        state[f"{prefix}{name}.weight"] = 1 + torch.randn(width) * 0.2
        state[f"{prefix}{name}.bias"] = torch.randn(width) * 0.2

    for side in ["encoder", "decoder"]:
        for l in range(SIZE[f"{side}_layers"]):
            for attention in ["self_attn"] + (["encoder_attn"] if side == "decoder" else []):
                for part in ["k_proj", "v_proj", "q_proj", "out_proj"]:
                    linear(f"{side}.layers.{l}.{attention}.{part}", width, width)
                norm(f"{side}.layers.{l}.{attention}_layer_norm")
            linear(f"{side}.layers.{l}.fc1", ffn, width)
            linear(f"{side}.layers.{l}.fc2", width, ffn)
            norm(f"{side}.layers.{l}.final_layer_norm")
    return state, norm


def table(rows, padding):
    rows = torch.randn(rows, SIZE["width"]) * SIZE["width"] ** -0.5
    rows[padding] = 0
    return rows


# fairseq: post-norm, ReLU, target embedding and output in one.

def fairseq(folder):
    folder.mkdir(exist_ok=True)
    words = {"en": "the a dog cat sees hears man".split(), "de": "der die ein hund katze sieht hört mann".split()}
    for language, tokens in words.items():
        (folder / f"dict.{language}.txt").write_text("".join(f"{token} {9 - i}\n" for i, token in enumerate(tokens)))
    layers, _ = parameters()
    state = OrderedDict({"encoder.version": torch.tensor([3.0])})
    state["encoder.embed_tokens.weight"] = table(4 + len(words["en"]), 1)
    state["encoder.embed_positions._float_tensor"] = torch.zeros(1)
    state["decoder.embed_tokens.weight"] = table(4 + len(words["de"]), 1)
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"]
    state.update(layers)
    args = dict(
        arch="transformer", activation_fn="relu", dropout=0.1, attention_dropout=0.0, activation_dropout=0.0,
        encoder_embed_dim=SIZE["width"], encoder_ffn_embed_dim=SIZE["ffn"], encoder_layers=SIZE["encoder_layers"],
        encoder_attention_heads=SIZE["heads"], encoder_normalize_before=False, encoder_learned_pos=False,
        decoder_embed_dim=SIZE["width"], decoder_ffn_embed_dim=SIZE["ffn"], decoder_layers=SIZE["decoder_layers"],
        decoder_attention_heads=SIZE["heads"], decoder_normalize_before=False, decoder_learned_pos=False,
        share_decoder_input_output_embed=True, share_all_embeddings=False, adaptive_softmax_cutoff=None,
        no_token_positional_embeddings=False, no_scale_embedding=False, layernorm_embedding=False,
        max_source_positions=64, max_target_positions=64, source_lang="en", target_lang="de", decoder_output_dim=8,
        decoder_input_dim=8, quant_noise_pq=0, tie_adaptive_weights=False)
    rest = {
        "criterion": None,
        "optimizer_history": [{"criterion_name": "LabelSmoothedCrossEntropyCriterion", "num_updates": 3,
                               "lr_scheduler_state": {"best": 1.5}}],
        "task_state": {},
        "extra_state": {"metrics": OrderedDict(), "val_loss": 1.5, "train_iterator": {"epoch": 2, "shuffle": True}},
        "last_optimizer_state": {"state": {0: {"step": 3, "exp_avg": torch.zeros(2)}}, "param_groups": []},
    }
    languages = {"source_lang": args.pop("source_lang"), "target_lang": args.pop("target_lang")}
    cfg = {"_name": None, "common": {"seed": 1, "fp16": False}, "model": Namespace(**args), "task": omegaconf(languages)}
    torch.save({"args": None, "cfg": cfg, "model": state, **rest}, folder / "checkpoint_best.pt")
    # As versions before 2019 named and before PyTorch 1.6 stored them.
    old = OrderedDict((name, tensor) for name, tensor in state.items() if "_proj." not in name or "out_proj" in name)
    for name in [name for name in state if ".q_proj." in name]:
        parts = [state[name.replace("q_proj", part)] for part in ["q_proj", "k_proj", "v_proj"]]
        old[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
    del old["encoder.version"]
    torch.save({"args": Namespace(**args, **languages), "model": old, "extra_state": {}}, folder / "legacy.pt",
               _use_new_zipfile_serialization=False)
    source, previous = [4, 6, 8, 5, 7, 2], [2, 4, 7, 9, 6]
    out = logits(state, source=source, previous=previous, heads=SIZE["heads"], norm="post", activation=torch.relu,
                 positions=fairseq_positions, scale=True)
    write_logits(folder, source, previous, out)


def omegaconf(values):
    """A DictConfig of omegaconf as a pickle names it, with a node for each value."""
    def class_of(module, name):
        made = type(name, (), {"__module__": module})
        sys.modules.setdefault(module, types.ModuleType(module))
        setattr(sys.modules[module], name, made)
        return made

    sys.modules.setdefault("omegaconf", types.ModuleType("omegaconf"))
    config, node = class_of("omegaconf.dictconfig", "DictConfig"), class_of("omegaconf.nodes", "AnyNode")

    def made(cls, **attributes):
        one = cls()
        one.__dict__.update(attributes)
        return one

    content = {key: made(node, _metadata={"key": key}, _val=value) for key, value in values.items()}
    return made(config, _metadata={"key": None}, _content=content)


# Marian: post-norm, swish, one table for all, a bias of the logits.

def marian(folder):
    folder.mkdir(exist_ok=True)
    source_pieces = ["▁the", "▁a", "▁dog", "▁cat", "▁sees", "▁", "s", "▁man", ".", "t", "h", "e", "d", "o", "g"]
    target_pieces = ["▁der", "▁ein", "▁hund", "▁katze", "▁sieht", "▁", "e", "▁mann", "."]
    (folder / "source.spm").write_bytes(sentencepiece(source_pieces))
    (folder / "target.spm").write_bytes(sentencepiece(target_pieces))
    tokens = ["</s>", "<unk>"] + list(dict.fromkeys(source_pieces + target_pieces)) + ["<pad>"]
    size, pad = len(tokens), len(tokens) - 1
    dump(folder / "vocab.json", {token: i for i, token in enumerate(tokens)})
    dump(folder / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de", "model_max_length": 64,
                                            "tokenizer_class": "MarianTokenizer"})
    dump(folder / "config.json", {
        "architectures": ["MarianMTModel"], "model_type": "marian", "activation_function": "swish",
        "d_model": SIZE["width"], "encoder_layers": SIZE["encoder_layers"], "decoder_layers": SIZE["decoder_layers"],
        "encoder_attention_heads": SIZE["heads"], "decoder_attention_heads": SIZE["heads"],
        "encoder_ffn_dim": SIZE["ffn"], "decoder_ffn_dim": SIZE["ffn"], "dropout": 0.1, "attention_dropout": 0.0,
        "activation_dropout": 0.0, "max_position_embeddings": 64, "scale_embedding": True, "vocab_size": size,
        "decoder_vocab_size": size, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": pad,
        "decoder_start_token_id": pad, "bad_words_ids": [[pad]], "normalize_before": False,
        "normalize_embedding": False, "add_final_layer_norm": False, "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": True, "is_encoder_decoder": True, "num_beams": 4, "max_length": 64})
    state, _ = parameters("model.")
    state["model.shared.weight"] = table(size, pad)
    state["final_logits_bias"] = torch.randn(1, size)
    state["final_logits_bias"][0, pad] = 0
    safetensors(folder / "model.safetensors", state)
    full = dict(state)
    for name in ["encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"]:
        full[f"model.{name}.weight"] = state["model.shared.weight"]
    source, previous = [2, 4, 6, 3, 5, 0], [pad, 17, 19, 21, 18]
    out = logits(full, source=source, previous=previous, heads=SIZE["heads"], norm="post", activation=F.silu,
                 positions=marian_positions, scale=True, bias=state["final_logits_bias"], names="model.")
    write_logits(folder, source, previous, out)


# M2M-100: pre-norm, ReLU, codes of languages; numbers of 16 bits.

def m2m(folder):
    folder.mkdir(exist_ok=True)
    pieces = ["▁the", "▁dog", "▁sees", "▁der", "▁hund", "▁sieht", "▁", "s", "e", "."]
    (folder / "sentencepiece.bpe.model").write_bytes(sentencepiece(pieces))
    dump(folder / "vocab.json", {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>"] + pieces)})
    codes = ["__de__", "__en__", "__fr__"]
    dump(folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer", "num_madeup_words": 2,
                                            "additional_special_tokens": codes})
    size = 4 + len(pieces) + len(codes) + 2
    dump(folder / "config.json", {
        "architectures": ["M2M100ForConditionalGeneration"], "model_type": "m2m_100", "activation_function": "relu",
        "d_model": SIZE["width"], "encoder_layers": SIZE["encoder_layers"], "decoder_layers": SIZE["decoder_layers"],
        "encoder_attention_heads": SIZE["heads"], "decoder_attention_heads": SIZE["heads"],
        "encoder_ffn_dim": SIZE["ffn"], "decoder_ffn_dim": SIZE["ffn"], "dropout": 0.1, "attention_dropout": 0.1,
        "activation_dropout": 0.0, "max_position_embeddings": 64, "scale_embedding": True, "vocab_size": size,
        "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2,
        "is_encoder_decoder": True, "torch_dtype": "float16"})
    state, norm = parameters("model.")
    norm("encoder.layer_norm")
    norm("decoder.layer_norm")
    state["model.shared.weight"] = table(size, 1)
    state = OrderedDict((name, tensor.half()) for name, tensor in state.items())
    safetensors(folder / "model.safetensors", state)
    full = dict(state)
    for name in ["encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"]:
        full[f"model.{name}.weight"] = state["model.shared.weight"]
    source, previous = [15, 4, 5, 6, 4, 5, 2], [2, 14, 7, 8, 9]
    out = logits(full, source=source, previous=previous, heads=SIZE["heads"], norm="pre", activation=torch.relu,
                 positions=fairseq_positions, scale=True, names="model.")
    write_logits(folder, source, previous, out)


# Files.

def write_logits(folder, source, previous, out):
    dump(folder / "logits.json", {"source": source, "previous": previous,
                                  "logits": [[round(value, 9) for value in row] for row in out.tolist()]})


def dump(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n")


def safetensors(path, state):
    """https://github.com/huggingface/safetensors#format"""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in state.items():
        numbers = tensor.contiguous().numpy().tobytes()
        dtype = {torch.float32: "F32", torch.float16: "F16"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def sentencepiece(pieces):
    """A unigram model (ModelProto of sentencepiece_model.proto): pieces = 1, trainer_spec = 2, normalizer_spec = 3."""
    def field(number, content):
        return bytes([number << 3 | 2]) + varint(len(content)) + content

    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    def piece(text, score, kind):
        return field(1, field(1, text.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, kind]))

    special = [piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3)]
    own = [piece(text, -1.0 - 0.25 * i - (4 if len(text) == 1 else 0), 1) for i, text in enumerate(pieces)]
    return b"".join(special + own) + field(2, bytes([3 << 3, 1])) + field(3, field(1, b"identity"))


main()
