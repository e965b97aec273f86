"""One training step of a peer: forward and backward, and with --adam the update as well."""

import sys

import torch

from protocol import serve


def serve_training(model, loss_of, foreach):
    """`loss_of()` is the forward pass; `foreach` the faster of PyTorch's two Adams for this model."""
    adam = "--adam" in sys.argv[1:]
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-9, foreach=foreach)

    def step():
        model.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        if adam:
            optimizer.step()
        return loss.detach()

    serve(step)
