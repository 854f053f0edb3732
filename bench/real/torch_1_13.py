"""What DeepSpeed 0.14.5 takes from torch 2 and torch 1.13 on processors lacks; a script imports it.

- Two collectives of ZeRO stage 3 that gloo has from torch 2.0 on, here made of broadcast and reduce.
- A function that the flops profiler wraps in every trial of an autotuner: its name is enough, as no job calls it.
- Memory for OpenBLAS before the job's own: at the first product of matrices it wants 128 MiB, and where a data limit
  refuses them, 0.3.21 asks again for ever: a trial that is out of memory would hang instead of failing.
With another torch it changes nothing, and another process group than gloo keeps torch's own collectives.
"""
import torch
from torch import distributed
from torch.nn import functional


class _All:
    """Several pieces of work as one handle."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


def _group_and_root(group):
    group = group or distributed.group.WORLD
    return group, lambda rank: distributed.get_global_rank(group, rank)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    group, root = _group_and_root(group)
    parts = output_tensor.view(-1).chunk(distributed.get_world_size(group))
    own = parts[distributed.get_rank(group)]
    if own.data_ptr() != input_tensor.data_ptr():
        own.copy_(input_tensor.reshape(-1))
    handle = _All([distributed.broadcast(part, root(rank), group=group, async_op=True)
                   for rank, part in enumerate(parts)])
    return handle if async_op else handle.wait()


def reduce_scatter_tensor(output, input, op=distributed.ReduceOp.SUM, group=None, async_op=False):
    group, root = _group_and_root(group)
    parts, own = input.view(-1).chunk(distributed.get_world_size(group)), distributed.get_rank(group)
    for rank, part in enumerate(parts):
        reduced = part.clone()
        distributed.reduce(reduced, root(rank), op=op, group=group)
        if rank == own:
            output.view(-1).copy_(reduced)
    return _All([]) if async_op else None


if torch.__version__.startswith("1."):
    for ours in (all_gather_into_tensor, reduce_scatter_tensor):
        theirs = getattr(distributed, ours.__name__)

        def choose(*tensors, ours=ours, theirs=theirs, **options):
            return (ours if distributed.get_backend(options.get("group")) == "gloo" else theirs)(*tensors, **options)

        setattr(distributed, ours.__name__, choose)
    functional.scaled_dot_product_attention = functional._scaled_dot_product_attention
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))  # small ones need no such memory
