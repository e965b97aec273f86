"""Peer: an update of a wait-3 translation model with Adam.

3 + 3 of nn's own layers, post-norm, d 256, ffn 512, 4 heads, one table of 5,978 entries for both languages and the
output, unidirectional encoder, 146 pairs of 13 source and 14 target tokens. Dropout 0.3 on embeddings and residual
branches and nowhere else: nn's layers would also drop attention weights and hidden units, which costs time.
"""

import torch
from torch import nn

from layers import causal_mask
from modules import Embedding, smoothed_cross_entropy
from training import serve_training

LAYERS, D, FFN, HEADS, VOCABULARY, PAIRS, SOURCE, TARGET, WAIT, DROPOUT = 3, 256, 512, 4, 5978, 146, 13, 14, 3, 0.3


def without_inner_dropout(layer):
    layer.self_attn.dropout = 0.0
    if isinstance(layer, nn.TransformerDecoderLayer):
        layer.multihead_attn.dropout = 0.0
    layer.dropout.p = 0.0
    return layer


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = Embedding(VOCABULARY, D, SOURCE)
        self.target = Embedding(VOCABULARY, D, TARGET)
        self.target.tokens = self.source.tokens
        self.drop = nn.Dropout(DROPOUT)
        layer = (D, HEADS, FFN, DROPOUT)
        self.encoder = nn.ModuleList(without_inner_dropout(nn.TransformerEncoderLayer(*layer)) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(without_inner_dropout(nn.TransformerDecoderLayer(*layer)) for _ in range(LAYERS))
        self.register_buffer("past", causal_mask(SOURCE))
        self.register_buffer("written", causal_mask(TARGET))
        # Target position i sees the source positions j <= i + WAIT - 1.
        self.register_buffer("read", torch.full((TARGET, SOURCE), float("-inf")).triu(WAIT))

    def forward(self, source, target):
        memory = self.drop(self.source(source))
        for layer in self.encoder:
            memory = layer(memory, src_mask=self.past)
        x = self.drop(self.target(target))
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=self.written, memory_mask=self.read)
        return nn.functional.linear(x, self.source.tokens.weight).flatten(0, 1)


model = Translator()
source = torch.randint(4, VOCABULARY, (SOURCE, PAIRS))
target = torch.randint(4, VOCABULARY, (TARGET, PAIRS))
labels = torch.randint(4, VOCABULARY, (TARGET * PAIRS,))
serve_training(model, lambda: smoothed_cross_entropy(model(source, target), labels), foreach=False)
