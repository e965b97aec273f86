"""Peer: a language model of Transformer encoder layers with causal attention; with --adam the update too.

With --modules it is made of nn's own layers and loss (modules.py), else written out for speed (layers.py).

3 layers, post-norm, d 256, ffn 1024, 4 heads, vocabulary 10,000, 64 sentences of 32 tokens, sinusoidal positions,
output projection untied and without bias, label smoothing 0.1, dropout 0.

What was tried, on 2 AVX-512 cores shared with other work, hence in CPU time of both cores, variants in turn:
    layers (best of 7)        nn.TransformerEncoderLayer time-major 642 ms, batch-major 678; written out with q, k and
                              v as three products 612, as one product and one copy 565 time-major (kept, layers.py),
                              594 batch-major
    loss (best of 7)          with the batch-major layers: F.cross_entropy 624 ms, gradient in place (kept) 594, made
                              in the forward pass already 628
    BLAS (quartile of 10)     OpenBLAS with pthreads 730 ms, with OpenMP 720; keeping freed memory (environment.mjs)
                              700 and 680, at 75 to 175 MB more peak memory
    Adam (best of 20)         foreach=False (kept) 26.4 ms for 7.5 M parameters, foreach=True 28.5, one flat
                              parameter 26.9
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import modules
from layers import (SmoothedCrossEntropy, attention_parameters, causal_mask, embed, feed_forward,
                    feed_forward_parameters, self_attention, sinusoidal_positions)
from training import serve_training

LAYERS, D, FFN, HEADS, VOCABULARY, BATCH, TIME = 3, 256, 1024, 4, 10_000, 64, 32


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, D) * D**-0.5)
        self.output = nn.Parameter(torch.randn(VOCABULARY, D) * D**-0.5)
        self.attention = nn.ModuleList(attention_parameters(D) for _ in range(LAYERS))
        self.feed_forward = nn.ModuleList(feed_forward_parameters(D, FFN) for _ in range(LAYERS))
        self.positions = sinusoidal_positions(TIME, D)
        self.mask = causal_mask(TIME)

    def forward(self, ids):
        x = embed(ids, self.embedding, self.positions)
        for attention, ffn in zip(self.attention, self.feed_forward):
            x = feed_forward(self_attention(x, attention, BATCH, HEADS, self.mask), ffn)
        return F.linear(x, self.output)  # [T*B, V]


MODULES = "--modules" in sys.argv[1:]
model = modules.LanguageModel(LAYERS, D, FFN, HEADS, VOCABULARY, TIME) if MODULES else LanguageModel()
ids = torch.randint(VOCABULARY, (TIME, BATCH))
targets = torch.randint(VOCABULARY, (BATCH * TIME,))
loss = modules.smoothed_cross_entropy if MODULES else (lambda *rows: SmoothedCrossEntropy.apply(*rows, 0.1))
serve_training(model, lambda: loss(model(ids), targets), foreach=False)
