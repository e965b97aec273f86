"""Transformer layers written out for speed on a CPU; the models are in transformer.py and encoder_decoder.py.

Post-norm, ReLU, dropout 0, PyTorch's parameter shapes. A sequence batch is a matrix [T*B, D], time-major. Against
nn.TransformerEncoderLayer (figures in transformer.py) it copies q, k and v at once instead of one by one, scales the
scores within the product instead of q before it, and applies the ReLU in place.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def attention_parameters(d):
    projection = nn.Parameter(torch.empty(3 * d, d))
    output = nn.Parameter(torch.empty(d, d))
    nn.init.xavier_uniform_(projection)
    nn.init.xavier_uniform_(output)
    return nn.ParameterDict({
        "in": projection, "in_bias": nn.Parameter(torch.zeros(3 * d)),
        "out": output, "out_bias": nn.Parameter(torch.zeros(d)), **norm_parameters(d),
    })


def feed_forward_parameters(d, ffn):
    up, down = nn.Linear(d, ffn), nn.Linear(ffn, d)
    return nn.ParameterDict({"up": up.weight, "up_bias": up.bias, "down": down.weight, "down_bias": down.bias,
                             **norm_parameters(d)})


def norm_parameters(d):
    return {"gain": nn.Parameter(torch.ones(d)), "shift": nn.Parameter(torch.zeros(d))}


def self_attention(x, p, batch, heads, mask=None):
    d = x.shape[1]
    # One product for q, k and v, then one copy that sorts them by head.
    qkv = F.linear(x, p["in"], p["in_bias"]).view(-1, batch, 3, heads, d // heads)
    q, k, v = qkv.permute(2, 1, 3, 0, 4).reshape(3, batch * heads, -1, d // heads).unbind(0)  # [B*H, T, D/H] each
    return residual(x, attend(q, k, v, mask).reshape(-1, d), p)


def cross_attention(x, memory, p, batch, heads):
    d = x.shape[1]
    query_bias, memory_bias = p["in_bias"].split([d, 2 * d])
    query_weight, memory_weight = p["in"].split([d, 2 * d])
    # Time-major rows are already [T, B*H, D/H]: the query needs no copy.
    q = F.linear(x, query_weight, query_bias).view(-1, batch * heads, d // heads).transpose(0, 1)  # [B*H, Tq, D/H]
    kv = F.linear(memory, memory_weight, memory_bias).view(-1, batch, 2, heads, d // heads)
    k, v = kv.permute(2, 1, 3, 0, 4).reshape(2, batch * heads, -1, d // heads).unbind(0)  # [B*H, Tk, D/H] each
    return residual(x, attend(q, k, v, None).reshape(-1, d), p)


def attend(q, k, v, mask):
    """[Tq, B*H, D/H] from q, k and v of [B*H, T, D/H]."""
    # baddbmm scales and masks within the product; with beta 0 it does not read its first argument.
    start, beta = (q.new_empty(1), 0) if mask is None else (mask, 1)
    scores = torch.baddbmm(start, q, k.transpose(1, 2), beta=beta, alpha=q.shape[2] ** -0.5)  # [B*H, Tq, Tk]
    return torch.bmm(torch.softmax(scores, -1), v).transpose(0, 1)


def residual(x, context, p):
    return norm(x + F.linear(context, p["out"], p["out_bias"]), p)


def feed_forward(x, p):
    hidden = F.relu_(F.linear(x, p["up"], p["up_bias"]))
    return norm(x + F.linear(hidden, p["down"], p["down_bias"]), p)


def norm(x, p):
    return F.layer_norm(x, (x.shape[1],), p["gain"], p["shift"])


def embed(ids, weight, positions):
    """Embedding * sqrt(d) + position, as [T*B, D]; ids [T, B]."""
    d = weight.shape[1]
    return torch.add(positions, F.embedding(ids, weight), alpha=math.sqrt(d)).view(-1, d)


def sinusoidal_positions(length, d):
    """[T, 1, D]: sines in the first half, cosines in the second (fairseq's order)."""
    rate = torch.exp(torch.arange(d // 2) * (-math.log(10000) / (d // 2 - 1)))
    angle = torch.arange(length)[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=1)[:, None]


def causal_mask(length):
    """[T, T]: 0 where key j <= query i, else minus infinity."""
    return torch.full((length, length), -math.inf).triu(1)


class SmoothedCrossEntropy(torch.autograd.Function):
    """Label-smoothed cross-entropy, mean over rows, target probability 1 - eps + eps/V, others eps/V.

    The gradient (softmax - target distribution) / N is made in place in the buffer of the log-probabilities, where
    F.cross_entropy(label_smoothing=eps) makes and adds several [N, V] arrays.
    """

    @staticmethod
    def forward(ctx, logits, target, eps):
        rows, classes = logits.shape
        logp = F.log_softmax(logits, 1)
        ctx.save_for_backward(logp, target)
        ctx.eps = eps
        return -((1 - eps) * logp.gather(1, target[:, None]).sum() + eps / classes * logp.sum()) / rows

    @staticmethod
    def backward(ctx, grad):
        logp, target = ctx.saved_tensors
        rows, classes = logp.shape
        probability = logp.exp_().sub_(ctx.eps / classes)
        probability.scatter_add_(1, target[:, None], torch.full((rows, 1), ctx.eps - 1))
        return probability.mul_(grad / rows), None, None
