"""Reference values from PyTorch for the forecasting models, each written anew from its published equations.

    python3 test/forecast/make_models.py        (Debian package python3-torch)

writes models.json beside this script: float64, parameters and inputs of four decimals. x is [T, B, F], flat [B, F*T] for
the MLP; out is the representation before the output layer; loss = sum(out * loss_w).
"""

import json
from pathlib import Path

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

T, B, F, H = 5, 6, 3, 4
DAYS = [7, 7, 7, 7, 9, 9]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = kind(F, H, 2)

    def forward(self, x):
        states, _ = self.net(x)
        return states[-1]


class Alstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(F, H)
        self.rnn = nn.GRU(H, H, 2)
        self.attention = nn.Linear(H, H // 2)
        self.score = nn.Linear(H // 2, 1, bias=False)

    def forward(self, x):
        states, _ = self.rnn(torch.tanh(self.input(x)))
        weights = torch.softmax(self.score(torch.tanh(self.attention(states))), dim=0)
        return torch.cat([states[-1], (weights * states).sum(0)], dim=1)


class Sfm(nn.Module):
    """D = H states, K frequencies; rows of the gates: input, state forget, frequency forget, candidate, output."""

    K, P = 3, 2

    def __init__(self):
        super().__init__()
        self.input = nn.Linear(F, 4 * H + self.K)
        self.recurrent = nn.Linear(H, 4 * H + self.K, bias=False)
        self.amplitude = nn.Module()
        self.amplitude.weight = nn.Parameter(torch.zeros(self.K))
        self.amplitude.bias = nn.Parameter(torch.zeros(H))
        self.projection = nn.Linear(H, self.P)

    def forward(self, x):
        def gate(z):
            return torch.clamp(0.2 * z + 0.5, 0, 1)

        h = torch.zeros(B, H)
        memory = torch.zeros(B, H, self.K, dtype=torch.complex128)
        omega = 2 * torch.pi * torch.arange(self.K) / self.K
        for t in range(T):
            z = self.input(x[t]) + self.recurrent(h)
            i, state, frequency, candidate, o = torch.split(z, [H, H, self.K, H, H], dim=1)
            forget = torch.einsum("bd,bk->bdk", gate(state), gate(frequency))
            wave = torch.exp(1j * omega * (t + 1))
            memory = forget * memory + torch.einsum("bd,k->bdk", (gate(i) * torch.tanh(candidate)).to(wave.dtype), wave)
            power = (memory * memory.conj()).real
            h = gate(o) * torch.tanh(power @ self.amplitude.weight + self.amplitude.bias)
        return self.projection(h)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        for layer, (size, width) in enumerate([(F * T, 5), (5, 4)]):
            linear = nn.Linear(size, width)
            linear.norm = nn.BatchNorm1d(width)
            self.add_module(str(layer), linear)

    def forward(self, x):
        for layer in self.children():
            x = nn.functional.leaky_relu(layer.norm(layer(x)), 0.1)
        return x


class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(F, H, 2)
        self.transformation = nn.Linear(H, H)
        self.a = nn.Parameter(torch.zeros(2 * H))
        self.fc = nn.Linear(H, H)

    def forward(self, x):
        h = self.rnn(x)[0][-1]
        out = torch.zeros(B, H)
        for day in sorted(set(DAYS)):
            own = [b for b in range(B) if DAYS[b] == day]
            hidden, moved = h[own], self.transformation(h[own])
            n = len(own)
            pairs = torch.cat([moved.expand(n, n, H), moved[:, None].expand(n, n, H)], dim=2)  # [i, j]: W h_j; W h_i
            attention = torch.softmax(nn.functional.leaky_relu(pairs @ self.a), dim=1)
            mixed = nn.functional.leaky_relu(self.fc(attention @ hidden + hidden))
            out = out.index_put((torch.tensor(own),), mixed)
        return out


def main():
    torch.manual_seed(1)
    cases = {
        "gru": case(Recurrent(nn.GRU), T, B, F, strip="net."),
        "lstm": case(Recurrent(nn.LSTM), T, B, F, strip="net."),
        "alstm": case(Alstm(), T, B, F),
        "sfm": case(Sfm(), T, B, F),
        "mlp": case(Mlp(), B, F * T),
        "gat": case(Gat(), T, B, F),
    }
    cases["gat"]["days"] = DAYS
    path = Path(__file__).parent / "models.json"
    path.write_text(json.dumps({"torch_version": torch.__version__, "cases": cases}, separators=(",", ":")) + "\n")


def case(net, *shape, strip=""):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(rounded(torch.randn(parameter.shape) * 0.5))
    params = {name.removeprefix(strip): tensor(p) for name, p in net.named_parameters()}
    before = {name: tensor(b) for name, b in net.named_buffers() if b.dim() > 0}
    x = rounded(torch.randn(shape)).requires_grad_()
    out = net(x)
    w = rounded(torch.randn(out.shape))
    (out * w).sum().backward()
    after = {name: tensor(b) for name, b in net.named_buffers() if b.dim() > 0}
    found = {"params": params, "x": tensor(x), "out": tensor(out), "loss_w": tensor(w), "grad_x": tensor(x.grad),
             "grads": {name.removeprefix(strip): tensor(p.grad) for name, p in net.named_parameters()}}
    if before:
        with torch.no_grad():
            evaluated = tensor(net.eval()(x))
        found |= {"buffers": before, "buffers_after": after, "evaluated": evaluated}
    return found


def rounded(values):
    return torch.tensor([float(f"{v:.4f}") for v in values.flatten().tolist()]).reshape(values.shape)


def tensor(values):
    return {"shape": list(values.shape), "data": [float(f"{v:.12g}") for v in values.detach().flatten().tolist()]}


main()
