"""Peer: an update of the paper's forecaster as a PyTorch training loop does it.

800 samples of a random permutation of 1,500 days × 300 stocks; their windows of 60 days × 5 fields are gathered from the
panel [stocks, days, 5], made relative to the last close and volume, normalised per column and clipped; GRU of 2 × 32,
three outputs of which the first is trained, gradients clipped by value, Adam.

What was tried (best of 15, the machine not idle): one advanced index into the panel (kept) against stacking slices, which
is far slower; windows time-major from the start (kept) against transposing afterwards: no difference to be seen.
"""

import torch
from torch import nn

from protocol import serve

STOCKS, DAYS, FIELDS, WINDOW, BATCH, HIDDEN, LAYERS, TASKS = 300, 1560, 5, 60, 800, 32, 2, 3
CLOSE, VOLUME = 1, 4


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(FIELDS, HIDDEN, LAYERS)
        self.output = nn.Linear(HIDDEN, TASKS)

    def forward(self, x):
        states, _ = self.gru(x)  # [T, B, hidden]
        return self.output(states[-1])  # [B, K]


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
panel = torch.rand(STOCKS, DAYS, FIELDS) + 0.5
labels = torch.randn(STOCKS, DAYS, TASKS)
centre, scale = torch.randn(WINDOW, 1, FIELDS) * 0.1, torch.rand(WINDOW, 1, FIELDS) + 0.5
offsets = torch.arange(-WINDOW + 1, 1).unsqueeze(1)  # [T, 1]
days = DAYS - WINDOW
order, at = torch.randperm(STOCKS * days), 0


def step():
    global order, at
    if at + BATCH > len(order):
        order, at = torch.randperm(STOCKS * days), 0
    chosen = order[at : at + BATCH]
    at += BATCH
    stock, day = chosen // days, chosen % days + WINDOW - 1
    x = panel[stock.unsqueeze(0), day.unsqueeze(0) + offsets]  # [T, B, 5]
    last = x[-1, :, [CLOSE, CLOSE, CLOSE, CLOSE, VOLUME]]
    x = ((x / last - 1 - centre) / scale).clamp_(-3, 3)
    model.zero_grad(set_to_none=True)
    loss = (model(x)[:, 0] - labels[stock, day, 0]).square().mean()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 3)
    optimizer.step()
    return loss.detach()


serve(step)
