"""Peer: an encoder-decoder Transformer as for translating full sentences; with --adam the update too.

6 + 6 layers, post-norm, d 256, ffn 1024, 4 heads, vocabulary 10,000 on both sides (separate embeddings, output
projection untied and without bias), 64 sentences of 32 source and 32 target tokens, sinusoidal positions, label
smoothing 0.1, dropout 0. Only the target's self-attention is masked (causal). Layers and loss are those tuned for
transformer.py.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import modules
from layers import (SmoothedCrossEntropy, attention_parameters, causal_mask, cross_attention, embed, feed_forward,
                    feed_forward_parameters, self_attention, sinusoidal_positions)
from training import serve_training

LAYERS, D, FFN, HEADS, VOCABULARY, BATCH, TIME = 6, 256, 1024, 4, 10_000, 64, 32


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source_embedding = nn.Parameter(torch.randn(VOCABULARY, D) * D**-0.5)
        self.target_embedding = nn.Parameter(torch.randn(VOCABULARY, D) * D**-0.5)
        self.output = nn.Parameter(torch.randn(VOCABULARY, D) * D**-0.5)
        self.encoder = nn.ModuleList(
            nn.ModuleList([attention_parameters(D), feed_forward_parameters(D, FFN)]) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(
            nn.ModuleList([attention_parameters(D), attention_parameters(D), feed_forward_parameters(D, FFN)])
            for _ in range(LAYERS))
        self.positions = sinusoidal_positions(TIME, D)
        self.causal = causal_mask(TIME)

    def forward(self, source, target):
        memory = embed(source, self.source_embedding, self.positions)
        for attention, ffn in self.encoder:
            memory = feed_forward(self_attention(memory, attention, BATCH, HEADS), ffn)
        x = embed(target, self.target_embedding, self.positions)
        for attention, cross, ffn in self.decoder:
            x = self_attention(x, attention, BATCH, HEADS, self.causal)
            x = cross_attention(x, memory, cross, BATCH, HEADS)
            x = feed_forward(x, ffn)
        return F.linear(x, self.output)  # [T*B, V]


MODULES = "--modules" in sys.argv[1:]
model = modules.Translator(LAYERS, D, FFN, HEADS, VOCABULARY, TIME) if MODULES else Translator()
source = torch.randint(VOCABULARY, (TIME, BATCH))
target = torch.randint(VOCABULARY, (TIME, BATCH))
labels = torch.randint(VOCABULARY, (BATCH * TIME,))
loss = modules.smoothed_cross_entropy if MODULES else (lambda *rows: SmoothedCrossEntropy.apply(*rows, 0.1))
serve_training(model, lambda: loss(model(source, target), labels), foreach=False)
