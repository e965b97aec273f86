"""Reference values from PyTorch for monotonic attention and information transport, written from the definitions rather than from fast forms.

    python3 test/translate/make_monotonic.py        (Debian package python3-torch)

writes monotonic.json beside this script: float64, parameters and inputs of four decimals. x is [T, B, D], memory
[S, B, D]; the loss is the sum of every output times its weights.
"""

import json
from pathlib import Path

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

T, S, B, D, H = 4, 5, 2, 4, 2
SOURCE = [5, 3]
TARGET = [4, 3]
THRESHOLDS = [0.9, 0.5]


def main():
    torch.manual_seed(1)
    cases = {kind: case(kind) for kind in ("milk", "mma-il", "mma-h", "itst")}
    path = Path(__file__).parent / "monotonic.json"
    path.write_text(json.dumps({"torch_version": torch.__version__, "cases": cases}, separators=(",", ":")) + "\n")


def case(kind):
    moving = 1 if kind in ("milk", "itst") else H
    names = ["monotonic_q_proj", "monotonic_k_proj", "v_proj", "out_proj"]
    names += [] if kind == "mma-h" else ["q_proj", "k_proj"]
    params = {f"{name}.{part}": normal(*shape) for name in names for part, shape in (("weight", (D, D)), ("bias", (D,)))}
    params["monotonic_bias"] = normal(moving)
    x, memory = normal(T, B, D), normal(S, B, D)
    outputs = transport(params, x, memory) if kind == "itst" else attention(kind, moving, params, x, memory)
    weights = {name: normal(*value.shape).detach() for name, value in outputs.items()}
    sum((outputs[name] * weights[name]).sum() for name in outputs).backward()
    every = {**params, "x": x, "memory": memory}
    return {
        "params": tensors(params), "x": tensor(x), "memory": tensor(memory), "source": SOURCE, "target": TARGET,
        "outputs": tensors(outputs), "weights": tensors(weights),
        "grads": {name: tensor(value.grad) for name, value in every.items()},
    }


def attention(kind, moving, params, x, memory):
    def project(name, states):
        return states @ params[f"{name}.weight"].T + params[f"{name}.bias"]

    q, k = project("monotonic_q_proj", x), project("monotonic_k_proj", memory)
    v = project("v_proj", memory)
    contexts, delays = [], []
    for b in range(B):
        length = SOURCE[b]
        alphas = []
        for h in range(moving):
            size = D // moving
            part = slice(h * size, (h + 1) * size)
            energy = q[:, b, part] @ k[:length, b, part].T / size ** 0.5 + params["monotonic_bias"][h]
            alphas.append(alignment(torch.sigmoid(energy), length))
        alpha = torch.stack(alphas)  # [M, T, length]
        delays.append((alpha * torch.arange(1, length + 1)).sum(-1))
        heads = []
        for h in range(H):
            size = D // H
            part = slice(h * size, (h + 1) * size)
            own = alpha[0 if moving == 1 else h]
            if kind == "mma-h":
                weights = own
            else:
                u = project("q_proj", x)[:, b, part] @ project("k_proj", memory)[:length, b, part].T / size ** 0.5
                weights = lookback(own, u)
            heads.append(weights @ v[:length, b, part])
        contexts.append(torch.cat(heads, -1))
    found = project("out_proj", torch.stack(contexts, 1))
    g = torch.stack(delays)  # [B, M, T]
    lagging, variance = zip(*(latency(g[b, :, :TARGET[b]], SOURCE[b]) for b in range(B)))
    return {"found": found, "delays": g, "lagging": torch.stack(lagging), "variance": torch.stack(variance)}


def transport(params, x, memory):
    """Zhang and Feng (2022), token by token: T = sigmoid(energy), attention softmax(u)·T renormalised over what is read."""

    def project(name, states):
        return states @ params[f"{name}.weight"].T + params[f"{name}.bias"]

    found, costs, distances = [], [], []
    for b in range(B):
        length, delta = SOURCE[b], THRESHOLDS[b]
        q, k = project("monotonic_q_proj", x)[:, b], project("monotonic_k_proj", memory)[:length, b]
        information = torch.sigmoid(q @ k.T / D ** 0.5 + params["monotonic_bias"])  # [T, length]
        read, rows = 0, []
        for i in range(T):
            received = torch.cumsum(information[i], 0)
            enough = [j + 1 for j in range(length) if received[j] >= delta]
            read = max(read, enough[0] if enough else length)
            heads = []
            for h in range(H):
                part = slice(h * D // H, (h + 1) * D // H)
                query = project("q_proj", x)[i, b, part]
                keys = project("k_proj", memory)[:read, b, part]
                weights = torch.softmax(keys @ query / (D // H) ** 0.5, 0) * information[i, :read]
                heads.append(weights / weights.sum() @ project("v_proj", memory)[:read, b, part])
            rows.append(torch.cat(heads))
        found.append(torch.stack(rows))
        cost = 0
        for i in range(TARGET[b]):
            share = information[i] / information[i].sum()
            for j in range(length):
                away = max(abs((j + 1) - (i + 1) * length / TARGET[b]) - 1, 0)
                cost = cost + share[j] * away / (length * TARGET[b])
        costs.append(cost)
        real = information[: TARGET[b]]
        distances.append(torch.dist(real, real / real.sum(1, keepdim=True), p=2))
    return {
        "found": project("out_proj", torch.stack(found, 1)), "cost": torch.stack(costs), "distance": torch.stack(distances),
    }


def alignment(p, length):
    """alpha_i = alpha_{i-1} M_i with M_i[k, j] the probability to go from k to j and stop there; the last one stops."""
    p = torch.cat([p[:, :-1], torch.ones(T, 1)], 1)
    before = torch.eye(1, length)[0]
    rows = []
    for i in range(T):
        moves = torch.stack([
            torch.stack([p[i, j] * torch.prod(1 - p[i, k:j]) if j >= k else torch.zeros(()) for j in range(length)])
            for k in range(length)
        ])
        before = before @ moves
        rows.append(before)
    return torch.stack(rows)


def lookback(alpha, u):
    """Every place to stop with the softmax over what is before it."""
    total = torch.zeros_like(u)
    for k in range(u.shape[1]):
        soft = torch.softmax(u[:, :k + 1], -1)
        total = total + torch.nn.functional.pad(alpha[:, k:k + 1] * soft, (0, u.shape[1] - k - 1))
    return total


def latency(g, length):
    """g [M, |y|]: differentiable average lagging of the weighted mean, and the mean variance between heads."""
    weighted = (torch.softmax(g, 0) * g).sum(0)
    gamma = len(weighted) / length
    later, terms = None, []
    for i, delay in enumerate(weighted):
        later = delay if later is None else torch.maximum(delay, later + 1 / gamma)
        terms.append(later - i / gamma)
    return torch.stack(terms).mean(), g.var(0, unbiased=False).mean()


def normal(*shape):
    return torch.tensor([float(f"{v:.4f}") for v in torch.randn(shape).flatten().tolist()]).reshape(shape).requires_grad_()


def tensors(values):
    return {name: tensor(value) for name, value in values.items()}


def tensor(values):
    return {"shape": list(values.shape), "data": [float(f"{v:.12g}") for v in values.detach().flatten().tolist()]}


main()
