"""Reference values from PyTorch for layers the shared vectors lack.

    python3 test/vectors/make_torch.py        (Debian package python3-torch)

writes the JSON files beside this script: float64, dropout 0, inputs rounded to four decimals so that the files stay
small and the inputs exact. A tensor is {"shape": [...], "data": [...]}, row-major; booleans are 0 and 1. Unless a
file's note says otherwise loss = sum(out * loss_w); `grads` belongs to `params`, `grad_x` to the input `x`.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)  # one order of summation, whatever the machine

HERE = Path(__file__).parent


def main():
    write("lstm.json", "gate order in the rows of weight_ih_l*/weight_hh_l*: input, forget, cell, output; "
          "c=f*c+i*g; h=o*tanh(c). loss=sum(out*loss_w_out)+sum(h_n*loss_w_h)+sum(c_n*loss_w_c)", cases=lstm())
    write("decoder_layer.json", "loss=sum(out*loss_w); a mask entry of 1 is blocked; memory_mask is [B, Tq, Tk] and "
          "holds for every head: query i of sample b sees key j iff j <= i + memory_limit[b]", cases=decoder_layer())
    write("attention_limit.json", "in_proj_weight rows = [Wq;Wk;Wv] (each 8x8), head h uses rows/columns h*4..h*4+3; "
          "scale 1/sqrt(4); query i of sample b sees key j iff j <= i + limit[b] and key j is not padding "
          "(key_padding_mask 1); loss=sum(out*loss_w)", cases=attention_limit())
    write("batch_norm.json", "BatchNorm1d, momentum 0.1, eps 1e-5. Three training batches one after the other, each "
          "with its output, gradients and the running statistics after it; then one batch in evaluation with the "
          "statistics of the third. The running variance takes the unbiased batch variance. loss=sum(out*loss_w)",
          cases=batch_norm())
    write("losses.json", "activations: loss=sum(out*loss_w). mse: loss as named, gradients of that loss", ops=losses())


def lstm():
    return {
        "two_layer": lstm_case(seed=1),
        "two_layer_h0_c0": lstm_case(seed=2, initial=True),
        "packed_lengths": lstm_case(seed=3, initial=True, lengths=[6, 4, 2]),
    }


def lstm_case(seed, initial=False, lengths=None):
    torch.manual_seed(seed)
    batch, time, inputs, hidden, layers = 3, 6, 5, 8, 2
    net = nn.LSTM(inputs, hidden, layers, batch_first=True)
    params = given_parameters(net)
    x = leaf(batch, time, inputs)
    state = (leaf(layers, batch, hidden), leaf(layers, batch, hidden)) if initial else None
    if lengths is None:
        out, (h_n, c_n) = net(x, state)
    else:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, (h_n, c_n) = net(packed, state)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=time)
    w_out, w_h, w_c = constant(*out.shape), constant(*h_n.shape), constant(*c_n.shape)
    loss = (out * w_out).sum() + (h_n * w_h).sum() + (c_n * w_c).sum()
    loss.backward()
    case = {
        "config": {"input": inputs, "hidden": hidden, "layers": layers, "bidirectional": False, "batch_first": True,
                   "lengths": lengths},
        "params": params, "x": tensor(x), "out": tensor(out), "h_n": tensor(h_n), "c_n": tensor(c_n),
        "loss_w_out": tensor(w_out), "loss_w_h": tensor(w_h), "loss_w_c": tensor(w_c), "loss": loss.item(),
        "grads": gradients(net), "grad_x": tensor(x.grad),
    }
    if state is not None:
        case |= {"h0": tensor(state[0]), "c0": tensor(state[1]),
                 "grad_h0": tensor(state[0].grad), "grad_c0": tensor(state[1].grad)}
    return case


def decoder_layer():
    return {
        "post_norm": decoder_case(seed=11, norm_first=False),
        "pre_norm": decoder_case(seed=12, norm_first=True),
        "post_norm_memory_pad": decoder_case(seed=13, norm_first=False, memory_lengths=[6, 4]),
        "post_norm_memory_limit": decoder_case(seed=15, norm_first=False, memory_limit=[0, 2]),
        "pre_norm_memory_limit_pad": decoder_case(seed=16, norm_first=True, memory_limit=[1, 3], memory_lengths=[6, 4]),
    }


def decoder_case(seed, norm_first, memory_lengths=None, memory_limit=None):
    torch.manual_seed(seed)
    batch, target, source, d_model, heads, ff = 2, 5, 6, 8, 2, 16
    net = nn.TransformerDecoderLayer(d_model, heads, ff, dropout=0, activation="relu", batch_first=True,
                                     norm_first=norm_first)
    params = given_parameters(net)
    x, memory = leaf(batch, target, d_model), leaf(batch, source, d_model)
    causal = blocked_after(target, target, [0])[0]
    limit = None if memory_limit is None else blocked_after(target, source, memory_limit)
    padding = None if memory_lengths is None else padded(source, memory_lengths)
    out = net(x, memory, tgt_mask=causal, memory_mask=per_head(limit, heads), memory_key_padding_mask=padding)
    w = constant(*out.shape)
    loss = (out * w).sum()
    loss.backward()
    case = {
        "config": {"d_model": d_model, "nhead": heads, "dim_feedforward": ff, "dropout": 0, "activation": "relu",
                   "norm_first": norm_first, "layer_norm_eps": 1e-5},
        "params": params, "x": tensor(x), "memory": tensor(memory), "tgt_mask": tensor(causal), "out": tensor(out),
        "loss_w": tensor(w), "loss": loss.item(), "grads": gradients(net), "grad_x": tensor(x.grad),
        "grad_memory": tensor(memory.grad),
    }
    if padding is not None:
        case["memory_key_padding_mask"] = tensor(padding)
    if limit is not None:
        case |= {"memory_limit": memory_limit, "memory_mask": tensor(limit)}
    return case


def attention_limit():
    return {
        "self_limit": attention_case(seed=21, queries=5, keys=5, limit=[0, 1, 3]),
        "self_limit_pad": attention_case(seed=22, queries=5, keys=5, limit=[0, 1, 4], lengths=[5, 3, 2]),
        "cross_limit": attention_case(seed=23, queries=4, keys=6, limit=[0, 2, 5], cross=True),
        "cross_limit_pad": attention_case(seed=24, queries=4, keys=6, limit=[0, 1, 9], lengths=[6, 3, 4], cross=True),
    }


def attention_case(seed, queries, keys, limit, lengths=None, cross=False):
    torch.manual_seed(seed)
    batch, d_model, heads = len(limit), 8, 2
    net = nn.MultiheadAttention(d_model, heads, batch_first=True)
    params = given_parameters(net)
    query = leaf(batch, queries, d_model)
    key_value = leaf(batch, keys, d_model) if cross else query
    blocked = blocked_after(queries, keys, limit)
    padding = None if lengths is None else padded(keys, lengths)
    out, attention = net(query, key_value, key_value, key_padding_mask=padding, attn_mask=per_head(blocked, heads),
                         average_attn_weights=False)
    w = constant(*out.shape)
    loss = (out * w).sum()
    loss.backward()
    case = {
        "config": {"embed_dim": d_model, "num_heads": heads, "kind": "cross" if cross else "self"},
        "params": params, "query": tensor(query), "limit": limit, "attn_mask": tensor(blocked), "out": tensor(out),
        "attn_per_head": tensor(attention), "loss_w": tensor(w), "loss": loss.item(), "grads": gradients(net),
        "grad_query": tensor(query.grad),
    }
    if cross:
        case |= {"key_value": tensor(key_value), "grad_key_value": tensor(key_value.grad)}
    if padding is not None:
        case["key_padding_mask"] = tensor(padding)
    return case


def batch_norm():
    return {"two_dimensional": batch_norm_case(31, 7, 4), "three_dimensional": batch_norm_case(32, 3, 4, 5)}


def batch_norm_case(seed, *shape):
    """`shape` is [N, C] or, as BatchNorm1d wants it, [N, C, L]."""
    torch.manual_seed(seed)
    net = nn.BatchNorm1d(shape[1], eps=1e-5, momentum=0.1)
    params = given_parameters(net)
    updates = [batch_norm_step(net, shape) for _ in range(3)]
    net.eval()
    return {"config": {"num_features": shape[1], "eps": 1e-5, "momentum": 0.1}, "params": params,
            "train": updates, "eval": batch_norm_step(net, shape)}


def batch_norm_step(net, shape):
    net.zero_grad(set_to_none=True)
    x, w = leaf(*shape), constant(*shape)
    out = net(x)
    loss = (out * w).sum()
    loss.backward()
    return {"x": tensor(x), "out": tensor(out), "loss_w": tensor(w), "loss": loss.item(), "grads": gradients(net),
            "grad_x": tensor(x.grad), "running_mean": tensor(net.running_mean), "running_var": tensor(net.running_var)}


def losses():
    torch.manual_seed(41)
    return {
        "mse_mean": mse_case(lambda x, y, w: F.mse_loss(x, y), "mean((x-target)^2)"),
        "mse_sum": mse_case(lambda x, y, w: F.mse_loss(x, y, reduction="sum"), "sum((x-target)^2)"),
        "mse_weighted_mean": mse_case(lambda x, y, w: (w * F.mse_loss(x, y, reduction="none")).mean(),
                                      "mean(weight*(x-target)^2), divided by the number of elements"),
        "mse_weighted_by_weight": mse_case(lambda x, y, w: (w * F.mse_loss(x, y, reduction="none")).sum() / w.sum(),
                                           "sum(weight*(x-target)^2)/sum(weight)"),
        "leaky_relu_0.1": activation_case(lambda x: F.leaky_relu(x, 0.1)),
        "gelu_erf": activation_case(F.gelu),
        "gelu_tanh": activation_case(lambda x: F.gelu(x, approximate="tanh")),
        "softplus": activation_case(F.softplus),
    }


def mse_case(loss_of, formula):
    x, target = leaf(4, 3), constant(4, 3)
    weight = four_decimals(torch.rand(4, 3) + 0.1)
    loss = loss_of(x, target, weight)
    loss.backward()
    return {"formula": formula, "x": tensor(x), "target": tensor(target), "weight": tensor(weight),
            "loss": loss.item(), "grad_x": tensor(x.grad)}


def activation_case(function):
    # A spread of 3 reaches both tails; no entry is at the kink of the leaky ReLU.
    x = four_decimals(3 * torch.randn(4, 6)).requires_grad_()
    w = constant(4, 6)
    out = function(x)
    (out * w).sum().backward()
    return {"x": tensor(x), "out": tensor(out), "loss_w": tensor(w), "grad_x": tensor(x.grad)}


def given_parameters(net):
    """Every parameter, also those PyTorch starts at 0 or 1, becomes a random number of four decimals."""
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            spread = four_decimals(0.4 * torch.randn(parameter.shape))
            is_norm = isinstance(net, nn.BatchNorm1d) or "norm" in name
            is_scale = is_norm and name.endswith("weight")
            parameter.copy_(1 + spread if is_scale else spread)
    return {name: tensor(parameter) for name, parameter in net.named_parameters()}


def gradients(net):
    return {name: tensor(parameter.grad) for name, parameter in net.named_parameters()}


def blocked_after(queries, keys, limits):
    """[B, queries, keys], true where key j > query i + limit_b."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    return torch.stack([j > i + limit for limit in limits])


def per_head(mask, heads):
    """PyTorch takes a mask per sample as [B * heads, Tq, Tk], the heads of one sample together."""
    return None if mask is None else mask.repeat_interleave(heads, dim=0)


def padded(length, lengths):
    return torch.stack([torch.arange(length) >= n for n in lengths])


def leaf(*shape):
    return constant(*shape).requires_grad_()


def constant(*shape):
    return four_decimals(torch.randn(shape))


def four_decimals(values):
    # Through decimal text, so that the double is the one that a reader of the JSON gets.
    return torch.tensor([float(f"{v:.4f}") for v in values.flatten().tolist()]).reshape(values.shape)


def tensor(values):
    values = values.detach()
    data = values.flatten().to(torch.int64 if values.dtype == torch.bool else values.dtype).tolist()
    return {"shape": list(values.shape), "data": data}


def write(name, note, **content):
    text = json.dumps({"torch_version": torch.__version__, "dtype": "float64",
                       "layout": "row-major flat arrays, shape given", "note": note, **content},
                      separators=(",", ":"), allow_nan=False)
    (HERE / name).write_text(text + "\n")


main()
