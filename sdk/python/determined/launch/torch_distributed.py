"""python3 -m determined.launch.torch_distributed [torchrun's options] SCRIPT...:
torchrun over this machine's devices."""
import sys

from . import _start

MODULE = "determined.launch.torch_distributed"


def _says_where_to_meet(option):
    name = option.partition("=")[0].replace("-", "_")
    return name in ("__master_port", "__standalone", "__nnodes") or name.startswith("__rdzv_")


def main(arguments=None):
    own, words = _start.split_options(sys.argv[1:] if arguments is None else arguments, always=True)
    words = _start.command(words, MODULE)
    devices = _start.slots()
    if _start.launcher("torchrun"):
        # torchrun does not read MASTER_PORT.
        where = [] if any(map(_says_where_to_meet, own)) else ["--master_port", _start.port()]
        _start.become(["torchrun", "--nproc_per_node", str(max(1, len(devices))), *where, *own, "--no_python", *words])
    if len(devices) > 1:
        sys.exit(f"{MODULE}: torchrun is not in PATH, and there are {len(devices)} devices: install torch's programs")
    _start.become(words)


if __name__ == "__main__":
    main()
