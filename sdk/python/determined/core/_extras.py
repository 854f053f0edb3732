"""The profiler of system metrics and the experimental context. They have no effect; a call is logged once."""
from .._absent import Refusing
from .._once import say_once


class ProfilerContext(Refusing):
    def on(self, sampling_interval=1, samples_per_report=10):
        say_once("core_context.profiler.on() takes no samples here: use your system's tools, or context.set_profiler()")

    def off(self):
        pass


class ExperimentalCoreContext(Refusing):
    def report_task_using_checkpoint(self, checkpoint):
        say_once("report_task_using_checkpoint() is not kept: there is no registry here")

    def report_task_using_model_version(self, model_version):
        say_once("report_task_using_model_version() is not kept: there is no registry here")
