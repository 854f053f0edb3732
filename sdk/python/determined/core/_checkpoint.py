"""CheckpointContext: a checkpoint is a folder with a random id and a metadata.json, in one storage.

A pointer file in the study's folder names the last checkpoint and whether the training is complete. An incomplete
training that starts again continues from `get_cluster_info().latest_checkpoint`.
"""
import contextlib
import enum
import json
import logging
import os
import pathlib
import shutil
import uuid

from dsat import Error, current_trial

from .. import _study
from .._absent import Refusing
from ._train import as_json

logger = logging.getLogger("determined.core")
METADATA_FILE = "metadata.json"
OWN_STORAGE = "checkpoints"  # in the study's folder
# The pointers: of the study's own storage, and of any other. The study's own comes first, because a script may write
# exports elsewhere, from which a training cannot continue.
_OWN_POINTER = os.path.join(OWN_STORAGE, "latest.json")
_OTHER_POINTER = "latest_checkpoint.json"


class DownloadMode(enum.Enum):
    """Who copies: one rank of each machine for all, or each rank for itself."""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write(path, value):
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(as_json(value), file, indent=2)
        file.write("\n")
    os.replace(temporary, path)


def _unfinished(folder):
    """The folder of the last checkpoint of an incomplete training; None: there is none."""
    for pointer in (_OWN_POINTER, _OTHER_POINTER):
        path = os.path.join(folder, pointer)
        latest = _read(path)
        storage, name = latest.get("storage", ""), latest.get("storage_id")
        if latest.get("completed") or not isinstance(storage, str) or not isinstance(name, str):
            continue
        checkpoint = pathlib.Path(os.path.dirname(path), storage, name)
        if checkpoint.is_dir():
            return checkpoint
    return None


def unfinished_checkpoint(folder):
    """The id of the last checkpoint of an incomplete training; None: there is none."""
    checkpoint = _unfinished(folder)
    return checkpoint and checkpoint.name


def _point_to(folder, storage, name, completed):
    folder, storage = os.path.realpath(folder), os.path.realpath(storage)
    latest = {"storage_id": name, "completed": completed}
    if storage == os.path.realpath(os.path.join(folder, OWN_STORAGE)):
        return _write(os.path.join(folder, _OWN_POINTER), latest)
    if os.path.commonpath([folder, storage]) == folder:  # the pointer stays valid when the study is moved
        storage = os.path.relpath(storage, folder)
    return _write(os.path.join(folder, _OTHER_POINTER), {"storage": storage, **latest})


def mark_completed(folder):
    for pointer in (_OWN_POINTER, _OTHER_POINTER):
        path = os.path.join(folder, pointer)
        latest = _read(path)
        if latest:
            _write(path, {**latest, "completed": True})


class CheckpointContext(Refusing):
    def __init__(self, distributed, storage):
        self._distributed = distributed
        self._storage = pathlib.Path(storage)
        self._training_is_completed = False

    def on_completed(self):
        """Marks the training as complete: later checkpoints are not continued from."""
        self._training_is_completed = True
        mark_completed(_study.folder())

    def _folder(self, storage_id):
        name = os.fspath(storage_id) if isinstance(storage_id, os.PathLike) else str(storage_id)
        if not name or os.path.basename(name) != name or name in (".", ".."):
            raise Error(f"{name!r} is no id of a checkpoint: an id is a name without folders")
        return self._storage / name

    def _existing(self, storage_id):
        folder = self._folder(storage_id)
        if folder.is_dir():
            return folder
        latest = _unfinished(_study.folder())  # the training has to find it in any storage
        if latest is None or latest.name != folder.name:
            raise Error(f"checkpoint {storage_id} is not in {self._storage}")
        return latest

    def _new_id(self, shard, method):
        if not shard and self._distributed.rank != 0:
            raise RuntimeError(f"checkpoint.{method}(shard=False) is for rank 0; with shard=True every rank calls it")
        name = str(uuid.uuid4()) if self._distributed.rank == 0 else None
        return self._distributed.broadcast(name) if shard else name

    @contextlib.contextmanager
    def store_path(self, metadata=None, *, shard=False):
        """Yields (folder, id). The files written to the folder are the checkpoint. With shard=True all ranks write."""
        self._check_metadata(metadata)
        name = self._new_id(shard, "store_path")
        folder = self._folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder, name
        self._finish(folder, name, metadata, shard)

    def upload(self, ckpt_dir, metadata=None, *, shard=False, selector=None):
        """Copies a folder into a new checkpoint and returns its id.

        With shard=True each rank gives its own folder, or None.
        """
        self._check_metadata(metadata)
        name = self._new_id(shard, "upload")
        sources = self._distributed.allgather(ckpt_dir is not None) if shard else [ckpt_dir is not None]
        if not any(sources):
            raise RuntimeError("checkpoint.upload(None): there is no folder to keep")
        folder = self._folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        if ckpt_dir is not None:
            _copy(pathlib.Path(ckpt_dir), folder, selector)
        elif selector is not None:
            raise RuntimeError("checkpoint.upload(None, selector=...): there is nothing to select from")
        self._finish(folder, name, metadata, shard)
        return name

    def _finish(self, folder, name, metadata, shard):
        """Writes the merged metadata on rank 0, after every rank has written."""
        parts = self._distributed.allgather(metadata or {}) if shard else [metadata or {}]
        merged = {}
        for part in parts:
            for key, value in part.items():
                if key in merged and merged[key] != value:
                    raise RuntimeError(
                        f"checkpoint metadata '{key}' is {merged[key]!r} on one rank and {value!r} on another")
                merged[key] = value
        if self._distributed.rank == 0:
            _write(folder / METADATA_FILE, merged)
            if _study.is_managed() and current_trial() is None:  # only the full training continues
                _point_to(_study.folder(), self._storage, name, self._training_is_completed)
            logger.info("checkpoint %s", folder)
        if shard:
            self._distributed.allgather(None)  # every rank waits until the checkpoint is complete

    @staticmethod
    def _check_metadata(metadata):
        if metadata is not None and not isinstance(metadata, dict):
            raise Error(f"metadata of a checkpoint is a dictionary, not {metadata!r}")

    @contextlib.contextmanager
    def restore_path(self, storage_id, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None):
        """Yields the folder of a checkpoint. It is on this machine, so nothing is copied or left out."""
        DownloadMode(download_mode)
        yield self._existing(storage_id)

    def download(self, storage_id, ckpt_dir, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None):
        """Copies a checkpoint to `ckpt_dir`. One rank of a machine does so for all, unless the mode differs."""
        shared = DownloadMode(download_mode) == DownloadMode.LocalWorkersShareDownload
        source = self._existing(storage_id)
        if not shared or self._distributed.local_rank == 0:
            target = pathlib.Path(ckpt_dir)
            target.mkdir(parents=True, exist_ok=True)
            _copy(source, target, selector)
        if shared:
            self._distributed.allgather(None)  # the other ranks wait for the files

    def get_metadata(self, storage_id):
        return _read(self._existing(storage_id) / METADATA_FILE)

    def delete(self, storage_id):
        shutil.rmtree(self._existing(storage_id))


def _copy(source, target, selector):
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix() + ("/" if path.is_dir() else "")
        if path.is_dir():
            if selector is None:
                (target / name).mkdir(parents=True, exist_ok=True)
        elif selector is None or selector(name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            temporary = target / f"{name}.{os.getpid()}"  # several ranks may copy the same file
            shutil.copy2(path, temporary)
            os.replace(temporary, target / name)
