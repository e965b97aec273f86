"""The models of transformer.py and encoder_decoder.py as users of PyTorch write them: nn's own layers and loss.

Time-major, which is nn's default and the faster of its two layouts here.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from layers import causal_mask, sinusoidal_positions


class Embedding(nn.Module):
    """Embedding * sqrt(d) + position, [T, B, D]."""

    def __init__(self, vocabulary, d, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, d)
        nn.init.normal_(self.tokens.weight, std=d**-0.5)
        self.register_buffer("positions", sinusoidal_positions(length, d).view(length, 1, d))

    def forward(self, ids):
        return self.tokens(ids) * math.sqrt(self.tokens.embedding_dim) + self.positions


class LanguageModel(nn.Module):
    def __init__(self, layers, d, ffn, heads, vocabulary, length):
        super().__init__()
        self.embedding = Embedding(vocabulary, d, length)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, heads, ffn, dropout=0.0) for _ in range(layers))
        self.output = nn.Linear(d, vocabulary, bias=False)
        self.register_buffer("causal", causal_mask(length))

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, src_mask=self.causal)
        return self.output(x).flatten(0, 1)


class Translator(nn.Module):
    def __init__(self, layers, d, ffn, heads, vocabulary, length):
        super().__init__()
        self.source, self.target = Embedding(vocabulary, d, length), Embedding(vocabulary, d, length)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(d, heads, ffn, dropout=0.0) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(d, heads, ffn, dropout=0.0) for _ in range(layers))
        self.output = nn.Linear(d, vocabulary, bias=False)
        self.register_buffer("causal", causal_mask(length))

    def forward(self, source, target):
        memory = self.source(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.target(target)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=self.causal)
        return self.output(x).flatten(0, 1)


def smoothed_cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels, label_smoothing=0.1)
