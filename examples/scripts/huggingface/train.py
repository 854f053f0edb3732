#!/usr/bin/env python3
"""Trains a small GPT-2 from scratch with Hugging Face's Trainer, on random tokens: nothing is downloaded."""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

import dsat

SEQUENCE = 512


class RandomTokens(torch.utils.data.Dataset):
    """Stands for a data set."""

    def __init__(self, vocabulary):
        self.tokens = torch.randint(vocabulary, (512, SEQUENCE))

    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        tokens = self.tokens[index % len(self.tokens)]
        return {"input_ids": tokens, "labels": tokens}


def main():
    # In a trial nothing is left to do here: dsat-host has rewritten the command line. With overwrites in an experiment
    # file it is what keeps the batch sizes of both in step.
    arguments = dsat.get_hf_args_with_overwrites(sys.argv[1:], dsat.get_hparams())
    (training,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(arguments)
    config = GPT2Config(n_positions=SEQUENCE)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=training, train_dataset=RandomTokens(config.vocab_size))
    with dsat.dsat_reporting_context():
        trainer.train()


if __name__ == "__main__":
    main()
