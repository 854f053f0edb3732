"""The loss and the gradient norm of each optimizer step, kept for the report at the end."""
import math
import sys
from typing import Any, Dict, List, Union

from ._trial import current_trial

_MOST_STEPS = 4096
_losses: List[Any] = []
_grad_norms: List[Any] = []


def _kept(value: Any) -> Any:
    """A tensor as it is now, on its device: reading it would wait for the device."""
    return value.detach().clone() if hasattr(value, "detach") else value


def report_step(loss: Any = None, grad_norm: Any = None) -> None:
    """Notes the loss, the mean over the step's samples on this rank, and the gradient norm of an optimizer step.

    Numbers or tensors of one element; None where one is not known. The norm is that of the whole model's mean
    gradient before clipping, as torch.nn.utils.clip_grad_norm_ returns it. `report` and `StepTimer` write what was
    noted, so that dsat-host can see whether a fast configuration still learns the same (docs/guard.md). Call it once
    a step on every rank. Outside a tuning run it does nothing.
    """
    trial = current_trial()
    if trial is None or trial.model_info or len(_losses) == _MOST_STEPS:
        return
    _losses.append(_kept(loss))
    _grad_norms.append(_kept(grad_norm))


def _number(value: Any) -> Union[float, str, None]:
    """JSON has no NaN: such a value is a word. What is no number counts as not known."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        if value is not None:
            print(f"dsat: report_step got no number but {type(value).__name__}: {error}", file=sys.stderr)
        return None
    return number if math.isfinite(number) else str(number)


def noted_steps() -> Dict[str, Any]:
    """`losses` and `grad_norms` of the result file; what no step had is absent."""
    lists = {"losses": _losses, "grad_norms": _grad_norms}
    return {name: [_number(value) for value in values] for name, values in lists.items()
            if any(value is not None for value in values)}
