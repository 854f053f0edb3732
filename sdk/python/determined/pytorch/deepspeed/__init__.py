"""determined.pytorch.deepspeed: trial classes with DeepSpeed's engine. Needs torch and deepspeed."""
from ... import _absent
from ._config import overwrite_deepspeed_config
from ._context import DeepSpeedTrialContext
from ._mpu import ModelParallelUnit, make_data_parallel_mpu, make_deepspeed_mpu
from ._trial import DeepSpeedTrial

__all__ = ["DeepSpeedTrial", "DeepSpeedTrialContext", "ModelParallelUnit", "make_data_parallel_mpu",
           "make_deepspeed_mpu", "overwrite_deepspeed_config"]
__getattr__ = _absent.attributes(__name__)
