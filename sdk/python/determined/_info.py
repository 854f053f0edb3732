"""`get_cluster_info()`: Determined's description of a task, filled in for one machine."""
import os

from dsat import current_trial

from . import _study


class RendezvousInfo:
    def __init__(self, container_addrs, container_rank, container_slot_counts):
        self.container_addrs = container_addrs
        self.container_rank = container_rank
        self.container_slot_counts = container_slot_counts


class TrialInfo:
    """The trial: `trial_id`, `experiment_id`, `trial_seed`, `hparams`."""

    def __init__(self, trial_id, experiment_id, trial_seed, hparams, config,
                 steps_completed=0, trial_run_id=0, debug=False):
        self.trial_id = trial_id
        self.experiment_id = experiment_id
        self.trial_seed = trial_seed
        self.hparams = hparams
        self._config = config
        self._steps_completed = steps_completed
        self._trial_run_id = trial_run_id
        self._debug = debug


class ResourcesInfo:
    def __init__(self, gpu_uuids):
        self.gpu_uuids = gpu_uuids


class ClusterInfo:
    """One machine as a cluster: one container, one agent, no master."""

    def __init__(self, trial, slots, latest_checkpoint):
        host = os.environ.get("MASTER_ADDR", "127.0.0.1")
        identity = _study.cluster_id()
        self.master_url = "http://127.0.0.1:8080"
        self.cluster_id = identity
        self.agent_id = os.uname().nodename
        self.slot_ids = slots
        self.task_id = f"{trial.experiment_id}.{trial.trial_id}"
        self.allocation_id = f"{self.task_id}.1"
        self.session_token = ""
        self.task_type = "TRIAL"
        self.master_cert_name = None
        self.master_cert_file = None
        self.latest_checkpoint = latest_checkpoint
        self._trial = trial
        self._rendezvous = RendezvousInfo([host], 0, [len(slots)])

    @property
    def trial(self):
        return self._trial

    @property
    def user_data(self):
        return self._trial._config.get("data", {})

    @property
    def container_addrs(self):
        return self._rendezvous.container_addrs

    @property
    def container_slot_counts(self):
        return self._rendezvous.container_slot_counts

    @property
    def container_rank(self):
        return self._rendezvous.container_rank

    @property
    def gpu_uuids(self):
        text = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return [part for part in text.split(",") if part]


def get_cluster_info():
    """The ClusterInfo of the experiment; None outside of one, as in Determined outside of its cluster."""
    if not _study.is_managed():
        return None
    from .core._checkpoint import unfinished_checkpoint

    config = _study.experiment_config()
    sizes = (os.environ.get(name) for name in ("LOCAL_WORLD_SIZE", "LOCAL_SIZE", "WORLD_SIZE"))
    local_size = next(filter(None, sizes), "1")
    slots = list(range(int(local_size) if local_size.isdigit() else 1))
    checkpoint = None if current_trial() is not None else unfinished_checkpoint(_study.folder())
    trial = TrialInfo(_study.trial_id(), 1, _study.seed(config), config["hyperparameters"], config)
    return ClusterInfo(trial, slots, checkpoint)
