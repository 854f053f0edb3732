"""python3 -m determined.pytorch.dsat asha deepspeed.yaml . is dsat-host asha deepspeed.yaml ."""
from dsat.autotune import main

if __name__ == "__main__":
    main()
