"""python3 -m determined.launch.deepspeed [[deepspeed's options] --] SCRIPT...:
DeepSpeed's launcher over the devices of this machine."""
import sys

from . import _start

MODULE = "determined.launch.deepspeed"
# The launcher accepts one of these options, not two.
_PLACES = ("--include", "-i", "--exclude", "-e", "--num_gpus", "--num_nodes")


def main(arguments=None):
    own, words = _start.split_options(sys.argv[1:] if arguments is None else arguments)
    words = _start.command(words, MODULE)
    devices = _start.slots()
    port = _start.port()
    if _start.launcher("deepspeed"):
        says_where = any(option.partition("=")[0] in _PLACES for option in own)
        is_known = devices and all(d.isdigit() for d in devices)
        where = ["--include", "localhost:" + ",".join(devices)] if is_known and not says_where else []
        _start.become(["deepspeed", *own, *where, "--master_port", port, "--no_python", "--no_local_rank", *words])
    if _start.launcher("torchrun"):
        _start.become(["torchrun", "--no_python", "--nproc_per_node",
                      str(max(1, len(devices))), "--master_port", port, *words])
    if len(devices) > 1:
        sys.exit(f"{MODULE}: neither deepspeed nor torchrun is in PATH, "
                 f"and there are {len(devices)} devices: install one")
    _start.become(words)


if __name__ == "__main__":
    main()
