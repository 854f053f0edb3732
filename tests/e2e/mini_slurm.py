"""A real Slurm of four nodes on one machine, private to a folder, for tests and for trying things out.

    python3 mini_slurm.py start DIR     then: export SLURM_CONF=DIR/slurm.conf
    python3 mini_slurm.py stop DIR

Daemons, keys, sockets and logs stay in DIR and on 127.0.0.1; nothing of a Slurm that the machine has is read or
changed. The nodes n1 to n4 claim processors, memory and two GPUs each that need not be there. Needs Debian's
slurmctld, slurmd, slurm-client and munge. Processes are ended by the ids that this module started or found below DIR.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from waiting import wait_until

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


# Nothing that needs control groups, hardware or a database; schedules at once, gives up soon.
LIMITS = {
    "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none", "SwitchType": "switch/none", "MpiDefault": "none",
    "SlurmdParameters": "config_overrides", "SchedulerType": "sched/backfill",
    "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=10000,sched_interval=1,bf_interval=1",
    "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory", "DefMemPerCPU": 64, "SlurmdTimeout": 60,
    "MessageTimeout": 20, "TCPTimeout": 10, "KillWait": 2, "UnkillableStepTimeout": 10, "CompleteWait": 0,
    "InactiveLimit": 0, "OverTimeLimit": 0, "MinJobAge": 300, "ReturnToService": 2, "JobRequeue": 1,
}


def why_not(private=None):
    """Why no cluster can run here, or none with a folder of each node's own; empty: it can."""
    missing = [name for name in DAEMONS if shutil.which(name, path=PATH) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (scripts/install-deps)"
    if os.getuid() != 0:
        return "slurmd changes users, which only root may"
    if private:
        mounts = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
        return mounts.stderr.strip()  # of a container or a bare chroot that may not mount
    return ""


def claim_ports(count):
    """(base, claim): `count` ports from `base` on that nobody listens on, and no other cluster's for as long as `claim`
    is open: one that has found ports free listens there only seconds later."""
    first = os.getpid() * 16 % 14000
    for base in [17000 + (first + 16 * i) % 14000 for i in range(800)]:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0mini-slurm-{base}")
            for port in range(base, base + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return base, claim
        except OSError:
            claim.close()
    raise RuntimeError("no free ports")


class MiniSlurm:
    """`conf` replaces or adds lines of slurm.conf, None leaves one out; `partitions`: further ones, as it writes them.
    Nodes have something of their own mounted on the folder `private`, as if it were not shared."""

    def __init__(self, folder, nodes=4, cpus=8, memory_mb=4096, gpus=2, conf=None, partitions=(), private=None):
        self.dir = Path(folder).resolve()
        self.conf = self.dir / "slurm.conf"
        self.size = (nodes, cpus, memory_mb, gpus)
        self.more_conf, self.partitions, self.private = conf or {}, partitions, private
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.processes, self.claim = {}, None

    # What a shell needs to use this cluster and no other.
    def environment(self, **more):
        others = re.compile(r"(SLURM|SBATCH|SRUN|SQUEUE|SCANCEL|SALLOC)D?_")
        clean = {k: v for k, v in os.environ.items() if not others.match(k)}
        return {**clean, "SLURM_CONF": str(self.conf), "PATH": PATH, **more}

    def run(self, *argv, check=True):
        done = subprocess.run([str(a) for a in argv], env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        if check and done.returncode != 0:
            raise RuntimeError(f"{argv}: {done.stderr or done.stdout}")
        return done.stdout.strip()

    def start(self):
        for part in ("state", "spool", "log", "dev", "munge"):
            (self.dir / part).mkdir(parents=True, exist_ok=True)
        self.write_conf()
        (self.dir / "munge").chmod(0o711)
        key = self.dir / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.spawn("munged", "munged", "--foreground", "--force", f"--socket={self.dir}/munge/socket",
                   f"--key-file={key}", f"--pid-file={self.dir}/munge/pid", f"--log-file={self.dir}/log/munged.log",
                   f"--seed-file={self.dir}/munge/seed", "--num-threads=2")
        wait_until((self.dir / "munge" / "socket").exists, "munged")
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        wait_until(lambda: self.idle_nodes() == len(self.names), "all nodes idle")
        return self

    def check_daemons(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                printed = (self.dir / "log" / f"{name}.out").read_text(errors="replace").strip()
                raise RuntimeError(f"{name} ended with status {process.returncode}: {printed[-500:]}")

    def idle_nodes(self):
        self.check_daemons()
        states = self.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%t", check=False).split()
        return sum(state in ("idle", "mix", "alloc") for state in states)

    def spawn(self, name, *argv):
        with open(self.dir / "log" / f"{name}.out", "ab") as out:
            environment = {**os.environ, "PATH": PATH}
            environment.pop("SLURM_CONF", None)
            self.processes[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                    start_new_session=True, env=environment)

    def start_controller(self):
        self.spawn("slurmctld", "slurmctld", "-D", "-f", str(self.conf))
        wait_until(self.controller_is_up, "slurmctld")

    def controller_is_up(self):
        self.check_daemons()
        return " is UP" in self.run("scontrol", "ping", check=False)

    # It writes its jobs down within seconds; one that is killed before does not know them.
    def wait_until_saved(self):
        jobs = self.run("squeue", "--noheader", "--states=RUNNING", "--sort=-i", "--format=%i").split()
        self.run("scontrol", "update", f"JobId={jobs[0]}", "Comment=to be saved")
        state, now = self.dir / "state" / "job_state", time.time()
        wait_until(lambda: state.exists() and state.stat().st_mtime > now, "the controller's state is saved")

    def kill_controller(self):
        self.end("slurmctld")

    def start_node(self, name):
        daemon = ["slurmd", "-D", "-f", str(self.conf), "-N", name]
        if self.private:
            hide = f'mount -t tmpfs none "{self.private}" && exec "$@"'
            daemon = ["unshare", "--mount", "sh", "-c", hide, "sh", *daemon]
        self.spawn(name, *daemon)

    # As if it had lost its power: the daemon, its step managers and the jobs' processes on it.
    def kill_node(self, name):
        self.end(name)
        # Once more, since one that was just being started is seen only then.
        while processes := self.of_node(name):
            # All at one moment: a shell that sees its command die would still write that down.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in processes:
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        pass

    # Killed, and known to be: the controller itself would see it after half a minute.
    def lose_node(self, name):
        self.kill_node(name)
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=lost its power")

    def return_node(self, name):
        self.start_node(name)
        wait_until(lambda: self.state_of(name) in ("idle", "mix", "alloc"), f"{name} is back")

    def state_of(self, name):
        return self.run("sinfo", "--noheader", f"--nodes={name}", "--partition=main", "--format=%t", check=False)

    def end(self, name):
        process = self.processes.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()

    # Processes that a node's slurmd has started: step managers keep its log or spool open, jobs have its name among
    # their variables. Managers first: they would report how their jobs ended.
    def of_node(self, name):
        managers, jobs = [], []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                program = os.readlink(entry / "exe")
                files = [os.readlink(f) for f in (entry / "fd").iterdir()] if "slurmstepd" in program else []
            except OSError:
                continue
            if any(f == f"{self.dir}/log/{name}.log" for f in files):
                managers.append(int(entry.name))
            elif {f"SLURM_CONF={self.conf}".encode(), f"SLURMD_NODENAME={name}".encode()} <= set(environment):
                jobs.append(int(entry.name))
        return managers + jobs

    def stop(self):
        if "slurmctld" in self.processes:
            self.run("scancel", "--user=root", check=False)
            end = time.monotonic() + 5
            while time.monotonic() < end and self.run("squeue", "--noheader", check=False):
                time.sleep(0.1)
        for name in self.names:
            self.kill_node(name)
        self.end("slurmctld")
        self.end("munged")
        if self.claim:
            self.claim.close()

    def write_conf(self):
        nodes, cpus, memory_mb, gpus = self.size
        base, self.claim = claim_ports(nodes + 1)
        host = socket.gethostname().split(".")[0]
        for i in range(gpus):
            device = self.dir / "dev" / f"gpu{i}"
            if not device.is_symlink():
                device.symlink_to("/dev/null")  # a regular file would leave CUDA_VISIBLE_DEVICES unset
        gres = f" Gres=gpu:{gpus}" if gpus else ""
        if gpus:
            devices = f"{self.dir}/dev/gpu[0-{gpus - 1}]"
            (self.dir / "gres.conf").write_text(f"NodeName=n[1-{nodes}] Name=gpu File={devices}\n")
        # By name: to find one out, slurmd wants control groups mounted, which a container may not have.
        (self.dir / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
            "ConstrainCores=no\nConstrainDevices=no\nConstrainRAMSpace=no\n")
        conf = {**self.daemons_conf(base, host), **LIMITS, **({"GresTypes": "gpu"} if gpus else {}), **self.more_conf}
        lines = [f"{key}={value}" for key, value in conf.items() if value is not None]
        for i, name in enumerate(self.names):
            (self.dir / "spool" / name).mkdir(parents=True, exist_ok=True)
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={base + 1 + i} CPUs={cpus} "
                         f"RealMemory={memory_mb}{gres} State=UNKNOWN")
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP")
        self.conf.write_text("\n".join([*lines, *self.partitions]) + "\n")

    # Where the daemons live, and how they know each other.
    def daemons_conf(self, port, host):
        return {
            "ClusterName": "mini", "SlurmctldHost": f"{host}(127.0.0.1)", "SlurmctldPort": port, "SlurmUser": "root",
            "SlurmdUser": "root", "AuthType": "auth/munge", "CredType": "cred/munge",
            "AuthInfo": f"socket={self.dir}/munge/socket,cred_expire=5",  # the pause before a requeued job may start
            "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny", "StateSaveLocation": f"{self.dir}/state",
            "SlurmdSpoolDir": f"{self.dir}/spool/%n", "SlurmctldPidFile": f"{self.dir}/slurmctld.pid",
            "SlurmdPidFile": f"{self.dir}/%n.pid", "SlurmctldLogFile": f"{self.dir}/log/slurmctld.log",
            "SlurmdLogFile": f"{self.dir}/log/%n.log",
        }


def stop_folder(folder):
    """Ends the cluster of a folder that another process started: its daemons name the folder in their arguments."""
    cluster = MiniSlurm(folder)
    for name in cluster.names:
        cluster.kill_node(name)
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if any(str(cluster.dir).encode() in word for word in words) and int(entry.name) != os.getpid():
                if re.search(r"/(munged|slurmctld|slurmd|slurmstepd)", os.readlink(entry / "exe")):
                    os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("start", "stop"):
        sys.exit(__doc__)
    if sys.argv[1] == "start":
        print(f"export SLURM_CONF={MiniSlurm(sys.argv[2]).start().conf}")
    else:
        stop_folder(sys.argv[2])
