"""dsat's memory probe: at a rank's end it writes a small file with the rank's peak memory and its batch sizes.

dsat puts this folder first on a trial's PYTHONPATH, so every Python of the trial runs this file at its start. Outside a
trial it does nothing. It imports only modules that Python has loaded already, prints nothing, and its failures never
reach the script. The syntax is valid in Python 2.7 and 3, since a trial may run any Python. docs/probe.md has more.
"""
import atexit
import os
import sys

SCHEMA = 1
# Modules with torch's peak counters and their reset functions: torch.cuda (ROCm too), torch.xpu, torch.npu.
ALLOCATORS = {"torch.cuda.memory": "cuda", "torch.xpu.memory": "xpu", "intel_extension_for_pytorch.xpu.memory": "xpu",
              "torch_npu.npu.memory": "npu"}
# The module in which torch makes batches, and the number of batch sizes that the file can hold.
LOADERS, MOST_BATCH_SIZES = "torch.utils.data.dataloader", 8
# The modules with DeepSpeed's engines. dsat_engine_probe.py and dsat_step_probe.py watch them, and dsat_pipeline.py
# measures the second.
ENGINE, PIPELINE = "deepspeed.runtime.engine", "deepspeed.runtime.pipe.engine"
# The environment variable with the rank of this process or of one above it. It is set when torch is imported.
CLAIM = "DSAT_PROBE_RANK"


def place():
    """The rank by the environment: launchers set RANK and LOCAL_RANK, a pod sets only RANK."""
    return os.environ.get("RANK", "") + "/" + os.environ.get("LOCAL_RANK", "")


class Probe(object):
    def __init__(self, trial_dir):
        self.folder = os.path.join(trial_dir, "probe")
        self.pid = os.getpid()
        self.place = place()
        self.rank = os.environ.get("RANK")
        # Helpers of a rank (compilers, spawned workers) start with its variables.
        self.is_helper = self.place != "/" and os.environ.get(CLAIM) == self.place
        self.group = None  # the process group of this process, after its end
        self.earlier = {}  # kind of device -> largest (allocated, reserved) before the counters were reset
        self.batches = {}  # requested batch size -> (most samples in one batch, number of batches)
        self.engines = self.steps = None  # DeepSpeed's engines and their steps, once their module is imported

    def claim(self):
        os.environ[CLAIM] = self.place

    def leave(self):
        """Runs at exit (atexit)."""
        try:
            name, report = self.report()
            if name is not None and peak_of(as_json(report)) >= self.peak_before(name):
                self.write(name, as_json(report))
            steps = self.steps and name in ("rank0.json", "pid%d.json" % os.getpid()) and self.steps.report()
            if steps:
                self.write("steps.json", steps)
        except BaseException:  # even a second Ctrl-C: the script has ended, so no error may show
            pass

    def peak_before(self, name):
        """The peak of an earlier process of this rank: a helper, or an earlier step of the script."""
        try:
            with open(os.path.join(self.folder, name)) as file:
                return peak_of(file.read())
        except Exception:  # there is no such file
            return 0

    def write(self, name, text):
        # A temporary file is renamed, so that the host never sees a half-written one.
        temporary = os.path.join(self.folder, ".%s.%d" % (name, os.getpid()))
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.fchmod(file, os.fstat(file).st_mode & 0o777 | 0o400)  # readable for the host, whatever the umask
            os.write(file, text.encode("ascii", "replace"))
        finally:
            os.close(file)
        os.rename(temporary, os.path.join(self.folder, name))

    def report(self):
        """The name and the contents of this process's file; no name: the process is no rank."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None, None
        group = process_group() or (self.group if self.group is not None and self.group.pid == os.getpid() else None)
        is_forked = os.getpid() != self.pid  # it has its parent's state, the process group too
        is_inner = is_forked or ((self.is_helper or is_worker()) and group is None)
        if is_inner and place() == self.place:
            return None, None
        device = self.device(torch)
        rank = number(group.get_rank() if group else
                      variable("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", of_slurm_step("SLURM_PROCID")) or self.rank)
        # A launcher does its work in other processes.
        if device is None and group is None and "LOCAL_RANK" not in os.environ and is_smaller_than_a_child():
            return None, None
        size = (group.get_world_size() if group else
                variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", of_slurm_step("SLURM_STEP_NUM_TASKS")))
        engine = sys.modules.get("deepspeed")
        return ("pid%d" % os.getpid() if rank is None else "rank%d" % rank) + ".json", [
            ("schema", SCHEMA),
            ("rank", rank),
            ("world_size", number(size)),
            ("pid", os.getpid()),
            ("torch", getattr(torch, "__version__", None)),
            ("deepspeed", getattr(engine, "__version__", None)),
            ("driver", driver_version() if device is not None else None),
            ("device", device),
            ("process", process_memory() if device is None else None),
            ("batches", self.loaded_batches()),
        ] + self.engines_report()

    def loaded_batches(self):
        often = sorted(self.batches.items(), key=lambda batch: -batch[1][1])[:MOST_BATCH_SIZES]
        return [(str(size), [("samples", samples), ("count", count)]) for size, (samples, count) in often] or None

    def engines_report(self):
        try:
            report = [("engines", self.engines and self.engines.report()),
                      ("checkpoint", self.engines and self.engines.checkpoint and (self.engines.checkpoint,))]
        except Exception:
            report = []
        return [(name, value) for name, value in report if value]

    def device(self, torch):
        """The most used device of this process; None: it uses none."""
        used = []
        for kind in sorted(set(ALLOCATORS.values())):
            module = getattr(torch, kind, None)
            try:
                if module is None or not module.is_initialized():
                    continue
                used += [self.device_memory(kind, module, index) for index in range(module.device_count())]
            except Exception:  # another version of torch
                continue
        used = [device for device in used if dict(device)["max_allocated_bytes"] > 0]
        return max(used, key=lambda device: dict(device)["max_allocated_bytes"]) if used else None

    def device_memory(self, kind, module, index):
        stats = module.memory_stats(index)
        allocated, reserved = peaks(stats, self.earlier.get(kind))
        return [
            ("type", kind),
            ("total_bytes", total_memory(module, index)),
            ("max_allocated_bytes", allocated),
            ("max_reserved_bytes", reserved),
            ("allocator_retries", stats.get("num_alloc_retries")),
            ("ooms", stats.get("num_ooms")),
        ]

    def keep_peaks(self, module):
        """Keeps torch's peaks before DeepSpeed's memory reports reset them."""
        reset, kind = module.reset_peak_memory_stats, ALLOCATORS[module.__name__]

        def reset_peak_memory_stats(*arguments, **named):
            try:
                # A rank uses one device, so the values for any device are combined.
                stats = module.memory_stats(*arguments, **named)
                self.earlier[kind] = peaks(stats, self.earlier.get(kind))
            except Exception:
                pass
            return reset(*arguments, **named)

        stand_for(reset, reset_peak_memory_stats)
        module.reset_peak_memory_stats = reset_peak_memory_stats

    def keep_group(self, module):
        """Keeps the process group, which a rank may end early; only the group shows that a worker is a rank."""
        destroy = module.destroy_process_group

        def destroy_process_group(*arguments, **named):
            try:
                if module.is_initialized():
                    self.group = EndedGroup(module.get_rank(), module.get_world_size())
            except Exception:
                pass
            return destroy(*arguments, **named)

        stand_for(destroy, destroy_process_group)
        module.destroy_process_group = destroy_process_group

    def count_samples(self, module):
        """Counts samples per batch: if the data set is smaller than a batch, the engine still counts it as full."""
        iterator = module._BaseDataLoaderIter
        next_index = iterator._next_index

        def _next_index(batches):
            index = next_index(batches)
            try:
                size = number(batches._index_sampler.batch_size)
                if size is not None and isinstance(index, (list, tuple)):
                    samples, count = self.batches.get(size, (0, 0))
                    self.batches[size] = max(samples, len(index)), count + 1
            except Exception:  # another kind of sampler, or no batches
                pass
            return index

        stand_for(next_index, _next_index)
        iterator._next_index = _next_index

    def after_import(self, module):
        self.claim()  # not earlier: a wrapper in Python starts the training with its own variables
        # Functions run in reverse order, so ours must be registered after the allocator's.
        atexit.unregister(self.leave)
        atexit.register(self.leave)
        if hasattr(module, "reset_peak_memory_stats"):
            self.keep_peaks(module)
        if hasattr(module, "destroy_process_group"):
            self.keep_group(module)
        if hasattr(module, "_BaseDataLoaderIter"):
            self.count_samples(module)
        if module.__name__ == ENGINE:
            self.engines = load("dsat_engine_probe").Engines(module)
            self.steps = load("dsat_step_probe").Steps(module.DeepSpeedEngine)
        elif module.__name__ == PIPELINE:
            if self.steps is not None:
                self.steps.watch_pipeline(module.PipelineEngine)
            load("dsat_pipeline").Pipelines(module)  # around the other, because it may end the process


class EndedGroup(object):
    def __init__(self, rank, size):
        self.rank, self.size, self.pid = rank, size, os.getpid()

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.size


def load(name):
    """A module of the hook's folder, which is not on sys.path."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, os.path.join(_folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stand_for(function, wrapper):
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(wrapper, attribute, getattr(function, attribute))
    wrapper.__wrapped__ = function


class Watch(object):
    """A finder on sys.meta_path that finds nothing itself but notices when parts of torch or DeepSpeed are imported."""

    def __init__(self, probe):
        self.probe = probe
        # torch_npu registers the end of its allocator last.
        self.names = set(ALLOCATORS) | {"torch_npu", "torch.distributed.distributed_c10d", LOADERS, ENGINE, PIPELINE}

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                self.call_after(spec)
                return spec
        return None

    def call_after(self, spec):
        try:
            loader = spec.loader
            execute = loader.exec_module

            def exec_module(module):
                is_first = spec.name in self.names  # another finder may have asked for this spec meanwhile
                self.names.discard(spec.name)
                try:
                    vars(loader).pop("exec_module", None)
                except Exception:
                    pass
                try:
                    execute(module)
                except BaseException:  # the script may import it again
                    self.names.update([spec.name] if is_first else [])
                    raise
                try:
                    if is_first:
                        self.probe.after_import(module)
                except Exception:
                    pass

            loader.exec_module = exec_module
        except Exception:  # another kind of loader: the peaks count from the last reset
            pass


def process_group():
    """torch.distributed if it has a process group, else None."""
    group = sys.modules.get("torch.distributed")
    try:
        return group if group is not None and group.is_available() and group.is_initialized() else None
    except Exception:
        return None


def is_worker():
    """Whether this process was started by Python's multiprocessing."""
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    return parent is not None and parent() is not None


def peaks(stats, earlier):
    """(allocated, reserved) of torch's memory_stats, or the earlier values if these are larger."""
    now = stats.get("allocated_bytes.all.peak", 0), stats.get("reserved_bytes.all.peak", 0)
    return tuple(map(max, now, earlier or now))


def variable(*names):
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def of_slurm_step(name):
    """`name` if srun starts several tasks; the shell and batch script of an allocation have such variables too."""
    return name if (number(os.environ.get("SLURM_STEP_NUM_TASKS")) or 0) > 1 else ""


def number(value):
    try:
        value = int(value)
    except Exception:
        return None
    return value if 0 <= value < 10**9 else None


def total_memory(module, index):
    total = module.get_device_properties(index).total_memory
    try:
        return int(total * module.get_per_process_memory_fraction(index))
    except Exception:  # not in older versions
        return total


def driver_version():
    """The version of the accelerator's driver in the kernel: NVIDIA's, or AMD's where it is not the kernel's own."""
    for path in ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version"):
        try:
            with open(path) as file:
                words = [word for word in file.readline().split() if word[:1].isdigit() and "." in word]
            if words:
                return words[0][:64]
        except Exception:  # there is no such driver
            pass
    return None


def is_smaller_than_a_child():
    import resource

    largest = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return largest[0] < largest[1]


def process_memory():
    """For a process without device: its peak and its smallest memory limit; None: no limit is set."""
    try:
        memory = status_bytes()
        limits = [("RLIMIT_DATA", soft_limit("Max data size"), memory["VmPeak"] - memory["VmSize"] + memory["VmData"]),
                  ("RLIMIT_AS", soft_limit("Max address space"), memory["VmPeak"]),
                  ("cgroup", cgroup_share(), memory["VmHWM"])]
        name, limit, peak = min((entry for entry in limits if entry[1]), key=lambda entry: entry[1])
    except Exception:  # no limit is set, or this is not Linux
        return None
    # A refused request still enlarges the address space, so the estimate may exceed the limit.
    return [("limit", name), ("limit_bytes", limit), ("peak_bytes", min(peak, limit))]


def status_bytes():
    with open("/proc/self/status") as file:
        fields = (line.split() for line in file if line.startswith("Vm"))
        return dict((words[0].rstrip(":"), int(words[1]) * 1024) for words in fields)


def soft_limit(name):
    with open("/proc/self/limits") as file:
        for line in file:
            if line.startswith(name):
                words = line[len(name):].split()
                return int(words[0]) if words[0].isdigit() else None
    return None


def cgroup_share():
    """The smallest limit of this process's control groups, divided by the ranks of the machine."""
    smallest = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # a larger limit is none
    share = None
    with open("/proc/self/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in groups:
        if controllers == "":
            root, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        while True:
            try:
                with open(root + path.rstrip("/") + "/" + name) as file:
                    smallest, share = min((smallest, share), (int(file.read()),) * 2)
            except Exception:  # "max", or an unreadable group
                pass
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    ranks = number(variable("LOCAL_WORLD_SIZE", "LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "WORLD_SIZE")) or 1
    return share and share // ranks


def peak_of(text):
    """The peak in a report; 0: there is none."""
    for key in ('"max_allocated_bytes": ', '"peak_bytes": '):
        if key in text:
            return number(text.split(key, 1)[1].split(",")[0].rstrip("}")) or 0
    return 0


def as_json(value):
    """Writes pairs, numbers, version texts and, in tuples, paths as JSON. The json module may not be loaded."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return "{" + ", ".join('"%s": %s' % (key, as_json(inner)) for key, inner in value) + "}"
    if isinstance(value, int):
        return "%d" % value
    if isinstance(value, tuple):
        return '"%s"' % "".join(c if c.isalnum() and c < "~" or c in "/+-._ " else "\\u%04x" % ord(c) for c in value[0])
    return '"%s"' % "".join(c for c in str(value)[:64] if c.isalnum() or c in "+-._")


def start(trial_dir):
    probe = Probe(trial_dir)
    atexit.register(probe.leave)
    if sys.version_info >= (3, 8):
        sys.meta_path.insert(0, Watch(probe))
    else:
        probe.claim()


def inject(file):
    """In a study that injects configurations. dsat_inject.py lies in the folder of this file, still on the path."""
    if sys.version_info >= (3, 8):
        import dsat_inject

        watch = Watch(dsat_inject.Injection(file))
        watch.names = {"deepspeed"}
        sys.meta_path.insert(0, watch)


def describe_trial_around(folder):
    """Launchers pass on PYTHONPATH to other hosts, but not dsat's variables. There the hook is in a trial's folder."""
    trial = os.path.dirname(folder)
    trials = os.path.dirname(trial)
    if os.path.basename(trials) != "trials":
        return
    os.environ["DSAT_TRIAL_ID"] = os.path.basename(trial)
    for name, path in (("DSAT_TRIAL_DIR", trial), ("DSAT_DS_CONFIG", os.path.join(trial, "ds_config.json")),
                       ("DSAT_HPARAMS", os.path.join(trial, "hparams.json")),
                       ("DSAT_EXPERIMENT", os.path.join(os.path.dirname(trials), "experiment.json"))):
        if os.path.exists(path):
            os.environ[name] = path
    if os.path.exists(os.path.join(folder, "dsat_inject.py")):
        os.environ["DSAT_INJECT"] = os.path.join(trial, "ds_config.json")


_folder = os.path.dirname(os.path.abspath(__file__))
try:
    if not os.environ.get("DSAT_TRIAL_DIR"):
        describe_trial_around(_folder)
    if os.environ.get("DSAT_TRIAL_DIR"):
        start(os.environ["DSAT_TRIAL_DIR"])
    if os.environ.get("DSAT_INJECT"):
        inject(os.environ["DSAT_INJECT"])
except Exception:
    pass

# This file hides another sitecustomize, which Debian has and the user may have. So the folder is removed from the path
# and the other file is imported. Its exceptions reach Python as usual.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _folder]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401
